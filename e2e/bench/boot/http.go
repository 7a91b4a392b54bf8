package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"drover/e2e/bench/stats"
	"drover/e2e/lab"
)

// The servers have one processor, the clients another.
const (
	serverCPU = 0
	clientCPU = 1
)

// HTTPRow has the rounds with one number of connections, for -json.
type HTTPRow struct {
	Connections int                      `json:"connections"`
	Rounds      map[string][]HTTPFigures `json:"rounds"` // by server
	Rate        stats.Ratio              `json:"rate"`   // drover's to nginx'
	CPU         stats.Ratio              `json:"cpu"`
}

// HTTPFigures are the figures of one server in one round.
type HTTPFigures struct {
	Rate   float64 `json:"rate"`   // GB/s
	CPU    float64 `json:"cpu"`    // processor seconds of the server per GB
	Others float64 `json:"others"` // share of the time in which its processor did other work
}

// median returns the median of each figure, separately.
func (r *HTTPRow) median(server string) (f HTTPFigures) {
	of := func(get func(HTTPFigures) float64) float64 { return stats.Median(column(r.Rounds[server], get)) }
	f.Rate = of(func(f HTTPFigures) float64 { return f.Rate })
	f.CPU = of(func(f HTTPFigures) float64 { return f.CPU })
	f.Others = of(func(f HTTPFigures) float64 { return f.Others })
	return f
}

// compare sets the ratios.
func (r *HTTPRow) compare() {
	ratio := func(get func(HTTPFigures) float64) stats.Ratio {
		return stats.Compare(column(r.Rounds["drover"], get), column(r.Rounds["nginx"], get))
	}
	r.Rate = ratio(func(f HTTPFigures) float64 { return f.Rate })
	r.CPU = ratio(func(f HTTPFigures) float64 { return f.CPU })
}

// cpuJudged reports whether the limit for processor time applies to the row. With few
// connections a server waits for its client most of the time, and the figure depends on how
// often it wakes up.
func (r *HTTPRow) cpuJudged() bool { return r.Connections >= 8 }

// ahead reports whether drover is better in each figure that has a limit.
func (r *HTTPRow) ahead() bool { return r.Rate.Median >= 1 && (r.CPU.Median <= 1 || !r.cpuJudged()) }

func column(rows []HTTPFigures, get func(HTTPFigures) float64) (values []float64) {
	for _, f := range rows {
		values = append(values, get(f))
	}
	return values
}

// webServer is a measured server.
type webServer struct {
	name string
	addr netip.AddrPort
	proc *lab.Process
}

// measureHTTP runs both servers all the time, and measures them in turn.
func (b *bench) measureHTTP(ctx context.Context, r *Report) (err error) {
	w, err := b.openWire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	servers, file, err := b.startWebServers(ctx, w)
	if err != nil {
		return err
	}
	for _, s := range servers {
		if err := file.check(ctx, w.clients, s.addr); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	r.HTTP = make([]HTTPRow, len(b.conns))
	for i, n := range b.conns {
		r.HTTP[i] = HTTPRow{Connections: n, Rounds: map[string][]HTTPFigures{}}
	}
	rows := make([]*HTTPRow, len(r.HTTP))
	for i := range r.HTTP {
		rows[i] = &r.HTTP[i]
	}
	for round := range 3 * b.rounds {
		if round == b.rounds { // the result may be noise: more rounds for rows where drover is not ahead; all rounds count
			rows = slices.DeleteFunc(rows, func(r *HTTPRow) bool { return r.ahead() })
		}
		for _, row := range rows {
			if err := b.pullBoth(ctx, w, servers, file, round, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// pullBoth adds a round to a row.
func (b *bench) pullBoth(ctx context.Context, w *wire, servers []webServer, file webFile, round int, row *HTTPRow) error {
	// The order alternates, so that no server always follows the other.
	order := slices.Clone(servers)
	if round%2 == 1 {
		slices.Reverse(order)
	}
	for _, s := range order {
		time.Sleep(settle)
		f, err := b.pull(ctx, w, s, file, row.Connections)
		if err != nil {
			return fmt.Errorf("%s, %d connections: %w", s.name, row.Connections, err)
		}
		row.Rounds[s.name] = append(row.Rounds[s.name], f)
		b.say("round %d: %-6s %2d connections  %5.2f GB/s  %.3f s CPU per GB  others %2.0f %%", round+1, s.name, row.Connections, f.Rate, f.CPU, 100*f.Others)
	}
	row.compare()
	return nil
}

// pull measures one server with a number of connections.
func (b *bench) pull(ctx context.Context, w *wire, s webServer, file webFile, conns int) (f HTTPFigures, err error) {
	if err := ctx.Err(); err != nil {
		return f, err
	}
	p := &puller{server: s.addr, path: file.path, size: file.size, from: clientIPs()[:conns], warm: warmUp, length: b.pullTime()}
	var began, ended usage
	p.begin = func() { began = take(s.proc.Pid) }
	p.end = func() { ended = take(s.proc.Pid) }
	if err := w.atClient(p.run); err != nil {
		return f, err
	}
	if err := errors.Join(began.err, ended.err); err != nil {
		return f, err
	}
	gb := float64(p.bytes) / 1e9
	cpu, took := (ended.run - began.run).Seconds(), ended.at.Sub(began.at).Seconds()
	f = HTTPFigures{Rate: gb / took, CPU: cpu / gb, Others: max(0, ((ended.busy-began.busy).Seconds()-cpu)/took)}
	return f, nil
}

const (
	warmUp = 200 * time.Millisecond
	// settle is the time in which a server notices that the clients of the round before
	// have gone: drover sends no machine an image twice at a time.
	settle = 200 * time.Millisecond
)

func (b *bench) pullTime() time.Duration {
	if b.quick {
		return 500 * time.Millisecond
	}
	return time.Second
}

// usage is the processor time of a server so far.
type usage struct {
	at        time.Time
	run, busy time.Duration
	err       error
}

func take(pid int) (u usage) {
	run, rerr := stats.RunTime(pid)
	busy, berr := stats.BusyTime(fmt.Sprint(serverCPU))
	return usage{time.Now(), run, busy, errors.Join(rerr, berr)}
}

// startWebServers starts both with the same file.
func (b *bench) startWebServers(ctx context.Context, w *wire) ([]webServer, webFile, error) {
	file, err := makeImage(filepath.Join(b.dir, "http-images"))
	if err != nil {
		return nil, file, err
	}
	var servers []webServer
	for _, s := range []struct {
		name  string
		port  uint16
		start func(dir string, addr netip.AddrPort, file webFile) (*lab.Process, error)
	}{
		{"drover", 8001, func(dir string, addr netip.AddrPort, file webFile) (*lab.Process, error) {
			return b.startWebDrover(w.servers, dir, addr, file)
		}},
		{"nginx", 8002, func(dir string, addr netip.AddrPort, file webFile) (*lab.Process, error) {
			return b.startWebNginx(w.servers, dir, addr, file)
		}},
	} {
		addr := netip.AddrPortFrom(serverIP, s.port)
		proc, err := s.start(filepath.Join(b.dir, "http-"+s.name), addr, file)
		if err != nil {
			return nil, file, fmt.Errorf("%s: %w", s.name, err)
		}
		if err := answers(ctx, w.clients, proc, addr); err != nil {
			return nil, file, fmt.Errorf("%s: %w", s.name, err)
		}
		servers = append(servers, webServer{s.name, addr, proc})
	}
	return servers, file, nil
}

// answers waits until a server answers by HTTP.
func answers(ctx context.Context, from *lab.Rack, p *lab.Process, addr netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr.String()+"/", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := from.HTTPClient().Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("does not answer on %s: %w", addr, err)
		case <-p.Done():
			return fmt.Errorf("ended; see %s (-keep leaves it)", p.Log)
		case <-tick.C:
		}
	}
}
