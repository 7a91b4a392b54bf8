package main

import (
	"context"
	"crypto/hpke"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"drover/internal/wait"
	"drover/node/client"
	"drover/node/cmdline"
	"drover/node/report"
	"drover/pools"
)

// machine is one machine. What follows mac is of its current boot.
type machine struct {
	swarm *swarm
	relay *relay
	index int
	mac   pools.MAC
	slow  bool
	mad   bool // its steps are not in the figures

	addr           netip.Addr
	loader, from   string   // name, and host of the server
	script         string   // URL
	kernel, initrd []string // URLs, of one server after the other
	args           cmdline.Args
	started        time.Time // the kernel
	web            *http.Client
	srv            *client.Server
	rep            *report.Reporter
	key            hpke.PrivateKey
	config         pools.NodeConfig
}

func machineMAC(i int) pools.MAC {
	return pools.MAC{0x52, 0x54, 0, 0x99, byte(i >> 8), byte(i)}
}

// violation is an error that no reset may heal: somebody got what is another's.
type violation struct{ error }

func (v violation) Unwrap() error { return v.error }

// step is a step of a boot.
type step struct {
	name string
	do   func(*machine, context.Context) error
}

func steps() []step {
	return []step{
		{name: "dhcp-rom", do: (*machine).leaseROM},
		{name: "loader", do: (*machine).readLoader},
		{name: "dhcp-ipxe", do: (*machine).leaseIPXE},
		{name: "script", do: (*machine).readScript},
		{name: "kernel", do: (*machine).readKernel},
		{name: "initrd", do: (*machine).readInitrd},
		{name: "dhcp-init", do: (*machine).leaseInit},
		{name: "image", do: (*machine).readImage},
		{name: "config", do: (*machine).claim},
		{name: "events", do: (*machine).flush},
	}
}

// resetTime is the time from a failed step to the next DISCOVER: firmware takes longer.
const resetTime = time.Second

// run boots the machine until it is up. A step that fails resets it.
func (m *machine) run(ctx context.Context) error {
	for {
		err := m.boot(ctx, steps())
		m.end()
		if _, bad := errors.AsType[violation](err); err == nil || bad {
			return err
		}
		if ctx.Err() != nil || wait.Sleep(ctx, resetTime) != nil {
			return fmt.Errorf("not up in time: %w", err)
		}
		m.again("reset")
		m.swarm.note(m, err)
	}
}

// boot runs steps of a boot, and records how long each took.
func (m *machine) boot(ctx context.Context, all []step) error {
	for _, s := range all {
		m.swarm.gate.pass(ctx, m.index, s.name)
		begin := time.Now()
		if err := s.do(m, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if !m.mad {
			m.swarm.took(s.name, time.Since(begin))
		}
	}
	return nil
}

// end ends what a boot has left.
func (m *machine) end() {
	if m.rep != nil {
		m.rep.Stop()
		m.rep = nil
	}
	if m.web != nil {
		m.web.CloseIdleConnections()
	}
}

// again counts a repetition.
func (m *machine) again(what string) {
	if m.mad {
		what = "mad"
	}
	m.swarm.repeated(what)
}

// client returns an HTTP client with the machine's address.
func (m *machine) client(pin []byte) *http.Client {
	c := client.NewHTTP(pin)
	c.Transport.(*http.Transport).DialContext = m.dial
	return c
}

// dial connects from the machine's address.
func (m *machine) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: m.addr.AsSlice()}}
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &card{Conn: conn, m: m}, nil
}

// card is a connection of a machine: it counts bytes, and is slow if the machine is.
type card struct {
	net.Conn
	m *machine
}

// A slow machine receives slowRate bytes per second.
const (
	slowRate = 1 << 20
	slowRead = 32 << 10
)

func (c *card) Read(b []byte) (int, error) {
	if c.m.slow {
		b = b[:min(len(b), slowRead)]
	}
	n, err := c.Conn.Read(b)
	c.m.swarm.bytes.Add(int64(n))
	if c.m.slow {
		time.Sleep(time.Duration(n) * time.Second / slowRate)
	}
	return n, err
}

// owners knows the machine of each address: no address may have two.
type owners struct {
	mu sync.Mutex
	of map[netip.Addr]pools.MAC
}

// holds records that a machine has leased an address.
func (s *swarm) holds(m *machine, a netip.Addr) error {
	s.owners.mu.Lock()
	defer s.owners.mu.Unlock()
	if other, ok := s.owners.of[a]; ok && other != m.mac {
		return violation{fmt.Errorf("%s is given to %s and to %s", a, other, m.mac)}
	}
	s.owners.of[a] = m.mac
	return nil
}
