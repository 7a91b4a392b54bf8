package ilosim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// SSHServer is a chassis that listens for SSH.
type SSHServer struct {
	Addr        string // 127.0.0.1:34567
	Fingerprint string // of the host key, SHA256:...

	chassis  *Chassis
	listener net.Listener
	config   *ssh.ServerConfig
	stopping context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// ServeSSH listens on addr, such as 127.0.0.1:0, until Close. The host key is
// new.
func (c *Chassis) ServeSSH(addr string) (*SSHServer, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return c.ServeSSHOn(l)
}

// ServeSSHOn is [Chassis.ServeSSH] on a listener, which may be in another network
// namespace. It is closed in the end, also when this fails.
func (c *Chassis) ServeSSHOn(l net.Listener) (*SSHServer, error) {
	key, err := c.Profile.hostKey()
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := &SSHServer{
		Addr: l.Addr().String(), Fingerprint: ssh.FingerprintSHA256(key.PublicKey()),
		chassis: c, listener: l, config: c.sshConfig(),
	}
	s.config.AddHostKey(key)
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.running.Go(s.accept)
	return s, nil
}

// Close ends the listener and all connections.
func (s *SSHServer) Close() error {
	s.stop()
	err := s.listener.Close()
	s.running.Wait()
	return err
}

// sshConfig accepts the user's password, by either method.
func (c *Chassis) sshConfig() *ssh.ServerConfig {
	config := &ssh.ServerConfig{Config: c.Profile.algorithms(), ServerVersion: "SSH-2.0-mpSSH_0.2.1"}
	check := func(user, password string) (*ssh.Permissions, error) {
		time.Sleep(c.LoginDelay)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.logins++
		if user != c.User || password != c.Password {
			return nil, errors.New("wrong password")
		}
		c.sessions++
		return nil, nil
	}
	ask := func(m ssh.ConnMetadata, question ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
		answers, err := question("", "", []string{"Password: "}, []bool{false})
		if err != nil || len(answers) != 1 {
			return nil, errors.New("no answer")
		}
		return check(m.User(), answers[0])
	}
	if c.Profile != Interactive {
		config.PasswordCallback = func(m ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			return check(m.User(), string(password))
		}
	}
	config.KeyboardInteractiveCallback = ask
	return config
}

func (s *SSHServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		if s.chassis.happens(SessionLimit) {
			conn.Close()
			continue
		}
		s.running.Go(func() {
			defer context.AfterFunc(s.stopping, func() { conn.Close() })()
			defer conn.Close()
			s.serve(conn)
		})
	}
}

// serve is one connection.
func (s *SSHServer) serve(conn net.Conn) {
	if s.chassis.happens(Silent) {
		<-s.stopping.Done()
		return
	}
	config := *s.config
	if s.chassis.happens(StallLogin) {
		stall := func() (*ssh.Permissions, error) {
			<-s.stopping.Done()
			return nil, errors.New("too late")
		}
		config.PasswordCallback = func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) { return stall() }
		config.KeyboardInteractiveCallback = func(ssh.ConnMetadata, ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) { return stall() }
	}
	sc, channels, requests, err := ssh.NewServerConn(conn, &config)
	if err != nil {
		return
	}
	defer sc.Close()
	go ssh.DiscardRequests(requests)
	for nc := range channels {
		if nc.ChannelType() != "session" {
			_ = nc.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		ch, requests, err := nc.Accept()
		if err != nil {
			return
		}
		s.running.Go(func() { (&session{s, conn, ch}).serve(requests) })
	}
}

// session is one channel.
type session struct {
	server *SSHServer
	conn   net.Conn
	ch     ssh.Channel
}

func (s *session) serve(requests <-chan *ssh.Request) {
	c := s.server.chassis
	for r := range requests {
		switch r.Type {
		case "exec":
			if c.happens(ExecCloses) {
				s.conn.Close()
				return
			}
			var command struct{ Text string }
			if ssh.Unmarshal(r.Payload, &command) != nil || c.happens(NoExec) {
				_ = r.Reply(false, nil)
				continue
			}
			_ = r.Reply(true, nil)
			s.server.running.Go(func() { s.exec(command.Text) })
		case "shell", "pty-req":
			ok := !c.happens(NoShell)
			_ = r.Reply(ok, nil)
			if ok && r.Type == "shell" {
				s.server.running.Go(s.shell)
			}
		default:
			_ = r.Reply(false, nil)
		}
	}
}

// exec runs one command as the manager does: it echoes the command, and closes
// without an exit status.
func (s *session) exec(command string) {
	defer s.ch.Close()
	c := s.server.chassis
	if c.happens(ExecEmpty) {
		return
	}
	if s.write(command+"\r\r\n") == nil {
		_ = s.answer(command, 0)
	}
}

// shell is the interactive command line: it echoes input, and waits for a key
// after each page.
func (s *session) shell() {
	defer s.ch.Close()
	l := s.server.chassis.Format
	if s.write("\r\nType 'HELP' to see the commands.\r\n\r\n"+l.prompt()) != nil {
		return
	}
	for {
		command, err := s.typed()
		if err != nil {
			return
		}
		if strings.EqualFold(strings.TrimSpace(command), "exit") {
			s.conn.Close()
			return
		}
		if s.write("\r\n") != nil || s.answer(command, l.Pager) != nil || s.write(l.prompt()) != nil {
			return
		}
	}
}

// typed reads a line and echoes it.
func (s *session) typed() (string, error) {
	var line strings.Builder
	for {
		key, err := s.key()
		switch {
		case err != nil:
			return "", err
		case key == '\r' || key == '\n':
			return line.String(), nil
		}
		line.WriteByte(key)
		if err := s.write(string(key)); err != nil {
			return "", err
		}
	}
}

func (s *session) key() (byte, error) {
	var b [1]byte
	_, err := s.ch.Read(b[:])
	return b[0], err
}

func (s *session) write(text string) error {
	_, err := s.ch.Write([]byte(text))
	return err
}

// answer runs a command and writes its output, page by page.
func (s *session) answer(command string, page int) error {
	c := s.server.chassis
	select {
	case <-time.After(c.CommandDelay):
	case <-s.server.stopping.Done():
		return s.server.stopping.Err()
	}
	text := c.run(command)
	if strings.Contains(text, "---- -----") && len(text) > 4 {
		// Half of the table: the last row of it is torn.
		switch {
		case c.happens(StallMidTable):
			_ = s.write(c.Format.lines(text[:len(text)/2]))
			<-s.server.stopping.Done()
			return s.server.stopping.Err()
		case c.happens(CutMidTable):
			_ = s.write(c.Format.lines(text[:len(text)/2]))
			s.conn.Close()
			return net.ErrClosed
		}
	}
	if page <= 0 {
		return s.write(c.Format.lines(text))
	}
	for i, line := range strings.SplitAfter(text, "\n") {
		if i > 0 && i%page == 0 {
			if err := s.ask(); err != nil {
				return err
			}
		}
		if err := s.write(c.Format.lines(line)); err != nil {
			return err
		}
	}
	return nil
}

// ask is the pager. No recording of the manager's own is published; this one
// follows common pagers.
func (s *session) ask() error {
	if err := s.write("-- More --"); err != nil {
		return err
	}
	if _, err := s.key(); err != nil {
		return err
	}
	return s.write(fmt.Sprintf("\r%10s\r", ""))
}
