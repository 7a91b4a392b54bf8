package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"drover/pools/boots"
)

// Drover is the drover program, run as an operator runs it, in the rack's network.
type Drover struct {
	Binary  string
	Config  string
	State   string
	Images  string
	Loaders string
	API     string // address of the people-facing listener, as in the config

	rack *Rack
	proc *Process
}

// StartDrover starts d and waits until it answers that it is ready. It may be
// called again after [Drover.Stop].
func (r *Rack) StartDrover(ctx context.Context, d *Drover) error {
	d.rack = r
	cmd := exec.Command(d.Binary, "serve", "-c", d.Config, "--state", d.State, "--images", d.Images, "--loaders", d.Loaders)
	var err error
	if d.proc, err = r.Start("drover", cmd); err != nil {
		return err
	}
	for {
		why := d.ready(ctx)
		if why == nil {
			return nil
		}
		select {
		case <-d.proc.Done():
			return fmt.Errorf("drover ended: %w", errors.Join(d.proc.err, errors.New(d.Tail(20))))
		case <-ctx.Done():
			return fmt.Errorf("drover is not ready: %w", errors.Join(why, ctx.Err()))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Observe returns a server of the rack that something else has started: only its API can be
// called.
func (r *Rack) Observe(d Drover) *Drover {
	d.rack = r
	return &d
}

// ready asks /readyz.
func (d *Drover) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.API+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	if token, err := os.ReadFile(d.TokenFile()); err == nil { // for names and causes in the answer
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := d.rack.HTTPClient().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // only to explain
		return fmt.Errorf("/readyz: %s: %s", resp.Status, body)
	}
	return nil
}

// Stop ends the server as an init system does: SIGTERM, and time to finish.
func (d *Drover) Stop() error { return d.proc.Stop(20 * time.Second) }

// Kill ends the server at once.
func (d *Drover) Kill() error { return d.proc.Stop(0) }

// Pid returns the process id of the server.
func (d *Drover) Pid() int { return d.proc.Pid }

// Log returns the file with the server's log.
func (d *Drover) Log() string { return d.proc.Log }

// Tail returns the last n lines of the server's log.
func (d *Drover) Tail(n int) string {
	b, err := os.ReadFile(d.proc.Log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}

// Boots returns the boots that the server knows of.
func (d *Drover) Boots(ctx context.Context) ([]boots.Record, error) {
	var boots []boots.Record
	return boots, d.Call(ctx, http.MethodGet, "/api/v1/boots", nil, &boots)
}

// Call sends body as JSON to the REST API, with the bearer token that the
// server made, and reads the answer into out; out may be nil.
func (d *Drover) Call(ctx context.Context, method, path string, body, out any) error {
	token, err := os.ReadFile(d.TokenFile())
	if err != nil {
		return err
	}
	sent, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+d.API+path, bytes.NewReader(sent))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	resp, err := d.rack.HTTPClient().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", method, path, err)
	case resp.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(got))
	case out == nil:
		return nil
	}
	return json.Unmarshal(got, out)
}

// TokenFile returns the file with the bearer token of the server's API.
func (d *Drover) TokenFile() string { return filepath.Join(d.State, "api.token") }
