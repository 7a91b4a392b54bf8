package sshcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"

	"drover/hardware/bmc"
)

// The size of the requested terminal. It is wide, so that no line is wrapped, and high,
// so that the pager stops rarely.
const (
	terminalRows    = 1000
	terminalColumns = 511
)

// shell is the interactive command line.
type shell struct {
	client *ssh.Client
	in     io.WriteCloser
	out    chan []byte   // closed at the end
	gone   chan struct{} // closed when no goroutine reads out any more
	prompt string        // the first one that was shown
}

// newShell requests a terminal and waits for the first prompt.
func newShell(ctx context.Context, client *ssh.Client, prompt string) (*shell, error) {
	defer context.AfterFunc(ctx, func() { client.Close() })()
	s, err := newSession(ctx, client)
	if err != nil {
		return nil, err
	}
	sh := &shell{client: client, prompt: strings.TrimSpace(prompt), out: make(chan []byte), gone: make(chan struct{})}
	out, err := s.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if sh.in, err = s.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.RequestPty("vt100", terminalRows, terminalColumns, ssh.TerminalModes{}); err != nil {
		return nil, fmt.Errorf("%w: it gives neither exec nor a terminal", bmc.ErrUnreachable)
	}
	if err := s.Shell(); err != nil {
		return nil, fmt.Errorf("%w: it gives neither exec nor a shell", bmc.ErrUnreachable)
	}
	go sh.read(out)
	if _, err = sh.expect(ctx); err != nil {
		close(sh.gone)
		return nil, err
	}
	return sh, nil
}

// read passes on the output until the connection ends.
func (s *shell) read(out io.Reader) {
	defer close(s.out)
	for {
		buf := make([]byte, 4096)
		n, err := out.Read(buf)
		if err != nil && n == 0 {
			return
		}
		select {
		case s.out <- buf[:n]:
		case <-s.gone:
			return
		}
	}
}

// run types a command and returns the output up to the next prompt.
func (s *shell) run(ctx context.Context, command string) (string, error) {
	defer context.AfterFunc(ctx, func() { s.client.Close() })()
	if _, err := io.WriteString(s.in, command+"\r"); err != nil {
		return "", err
	}
	text, err := s.expect(ctx)
	return s.prompt + " " + text, err
}

// expect waits for a prompt. It presses the space bar for the pager.
func (s *shell) expect(ctx context.Context) (string, error) {
	var text []byte
	asked := 0 // where the pager's last question ended
	for {
		select {
		case chunk, ok := <-s.out:
			if !ok {
				return "", errors.New("in the middle of an answer")
			}
			text = append(text, chunk...)
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if len(text) > bmc.MaxAnswer {
			s.client.Close()
			return "", fmt.Errorf("%w: it says more than %d bytes", bmc.ErrUnreadable, bmc.MaxAnswer)
		}
		last := lastLine(text[asked:])
		if IsPager(last) {
			asked = len(text)
			if _, err := io.WriteString(s.in, " "); err != nil {
				return "", err
			}
		}
		if s.isPrompt(strings.TrimSpace(last)) {
			return string(text), nil
		}
	}
}

// isPrompt reports whether a line is the prompt. After the first prompt only the same
// text counts as one, so that output that resembles a prompt does not end an answer.
func (s *shell) isPrompt(last string) bool {
	if s.prompt != "" {
		return last == s.prompt
	}
	rest, ok := CutPrompt(last)
	if ok = ok && strings.TrimSpace(rest) == ""; ok {
		s.prompt = last
	}
	return ok
}

// lastLine returns the last line as a terminal would show it.
func lastLine(text []byte) string {
	const longest = 256 // no prompt is longer
	s := string(text[max(0, len(text)-longest):])
	s = s[strings.LastIndexByte(s, '\n')+1:]
	return Visible(s)
}

// leave logs out, which frees the manager's session at once.
func (s *shell) leave() {
	_, _ = io.WriteString(s.in, "exit\r")
	close(s.gone)
}
