package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"drover/internal/wait"
	"drover/node/client"
	"drover/pools"
)

// rave lets a machine misbehave until ctx ends: each in one way.
func (m *machine) rave(ctx context.Context, i int) {
	ways := []func(*machine, context.Context) error{
		(*machine).discoverOnly, (*machine).loopAtScript, (*machine).breakImage, (*machine).stealConfig, (*machine).powerCut,
	}
	for wait.Sleep(ctx, time.Duration(20+m.swarm.random()*100)*time.Millisecond) == nil {
		err := ways[i%len(ways)](m, ctx)
		m.end()
		if bad, ok := errors.AsType[violation](err); ok {
			m.swarm.fail("mad machine %s: %v", m.mac, bad)
			return
		}
		m.again("mad")
	}
}

// discoverOnly sends a DISCOVER and never a REQUEST.
func (m *machine) discoverOnly(context.Context) error {
	d, err := m.swarm.clients.rom.message(m.mac, [4]byte{1, 2, 3, 4}, nil)
	if err == nil {
		m.relay.send(d)
	}
	return err
}

// loopAtScript fetches the script again and again, as an iPXE without a kernel does.
func (m *machine) loopAtScript(ctx context.Context) error { return m.boot(ctx, steps()[:4]) }

// breakImage breaks off the transfer of the root image.
func (m *machine) breakImage(ctx context.Context) error {
	if err := m.boot(ctx, steps()[:4]); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.args.URL.String()+m.args.Root, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set(pools.WaitHeader, "1")
	resp, err := m.web.Do(req)
	if err != nil {
		return err
	}
	_, err = io.CopyN(io.Discard, resp.Body, 64<<10)
	return errors.Join(err, resp.Body.Close())
}

// stealConfig asks for the config of another machine, with its own nonce and with none.
func (m *machine) stealConfig(ctx context.Context) error {
	if err := m.boot(ctx, steps()[:4]); err != nil {
		return err
	}
	key, err := pools.NewKey()
	if err != nil {
		return err
	}
	victim := machineMAC(int(m.swarm.random() * float64(m.swarm.machines)))
	for _, nonce := range []string{m.args.Nonce, "00000000000000000000000000000000"} {
		thief := &client.Server{Base: m.args.URL, MAC: victim, Nonce: nonce, Client: m.web}
		for _, what := range []string{"config", "join"} {
			var got map[string]any
			if thief.Ask(ctx, what, key, 10*time.Second, &got) == nil {
				return violation{fmt.Errorf("it got the %s of %s", what, victim)}
			}
		}
	}
	return nil
}

// powerCut switches the machine off at some step before its config.
func (m *machine) powerCut(ctx context.Context) error {
	return m.boot(ctx, steps()[:1+int(m.swarm.random()*8)])
}
