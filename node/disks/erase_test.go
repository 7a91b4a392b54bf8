package disks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"drover/pools"
)

var errPower = errors.New("the power fails")

// TestPowerFails: after a loss of power at any instant of an erase, nothing is mounted before a
// later boot has ended it; also when the machine goes back to its former tenant, or is to keep.
func TestPowerFails(t *testing.T) {
	var stages []string
	count := used(t, blank)
	count.cut = func(stage string) error { stages = append(stages, stage); return nil }
	count.ways, count.chunk = plain(), 4<<20
	if _, _, _, err := count.boot(tenantB, data); err != nil || len(stages) < 9 {
		t.Fatalf("got %v, %q", err, stages)
	}
	keep := tenantB
	keep.Change = pools.DiskKeep
	for at, stage := range stages {
		for i, next := range []Tenant{tenantB, tenantA, keep} {
			if stage == "chunk" && i != at%3 {
				continue
			}
			m := used(t, blank)
			m.ways, m.chunk = plain(), count.chunk
			n := 0
			m.cut = func(string) error {
				if n++; n > at {
					return errPower
				}
				return nil
			}
			what := fmt.Sprintf("%s (%d), then %s %s", stage, at, next.Name, next.Change)
			if _, done, _, err := m.boot(tenantB, data); err == nil || len(done)+len(m.did) > 0 {
				t.Fatalf("%s: got %q, %v, did %q", what, done, err, m.did)
			}
			m.cut = nil
			begun := at > 0
			_, done, warnings, err := m.boot(next, data)
			if err != nil || warnings != "" || len(done) != 1 {
				t.Errorf("%s: got %q, %q, %v", what, done, warnings, err)
			}
			if has := bytes.Contains(m.content(blank), []byte(secret)); begun && has || !begun && has == (next.Name == tenantB.Name && next.Change == pools.DiskWipe) {
				t.Errorf("%s: has the data: %v", what, has)
			}
		}
	}
}

// TestTorn: the power fails while the first MiB is written: any part of it may be there.
func TestTorn(t *testing.T) {
	for _, n := range []int{512, 1024, 4096, markAt, markAt + 512, firstPartition} {
		m := used(t, blank)
		m.ways = plain()
		m.cut = func(stage string) error {
			if stage != "head" {
				return nil
			}
			head := m.content(blank)[:firstPartition]
			clear(head[:min(n, markAt)])
			m.writeAt(blank, head, 0)
			return errPower
		}
		if _, _, _, err := m.boot(tenantB, data); !errors.Is(err, errPower) {
			t.Fatalf("got %v", err)
		}
		m.cut = nil
		if erased, done, warnings, err := m.boot(tenantB, data); err != nil || len(erased) != 1 || len(done) != 1 || warnings != "" {
			t.Errorf("%d bytes: got %q, %q, %q, %v", n, erased, done, warnings, err)
		}
	}
}

// plain is the way that each disk has.
func plain() []way { return []way{{"overwritten with zeros", "clear", true, overwrite}} }

// TestWays: a way that the device does not have, or only says to have, is followed by the next.
// Without any the boot ends.
func TestWays(t *testing.T) {
	nothing := func(context.Context, *eraser) error { return nil }
	none := func(context.Context, *eraser) error { return errors.New("not supported") }
	noise := func(_ context.Context, e *eraser) error {
		for at := int64(0); at < e.disk.size; at += 1 << 20 {
			if _, err := e.f.WriteAt(bytes.Repeat([]byte("noise"), 1<<20)[:min(1<<20, e.disk.size-at)], at); err != nil {
				return err
			}
		}
		return nil
	}
	ways := []way{{"none", "purge", false, none}, {"lies", "purge", false, nothing}, {"lies of zeros", "clear", true, nothing}}
	m := used(t, blank)
	m.ways = ways
	before := m.content(blank)
	if _, _, _, err := m.boot(tenantB, data); err == nil || len(m.did) > 0 ||
		!strings.Contains(err.Error(), "none: not supported; lies: the device reports success, and has the same data as before at byte") ||
		!strings.Contains(err.Error(), "lies of zeros: the device reports success, and has data at byte") {
		t.Errorf("got %v, did %q", err, m.did)
	}
	if !bytes.Equal(before[firstPartition:], m.content(blank)[firstPartition:]) {
		t.Error("the data has changed")
	}
	// A cryptographic erase leaves noise, also in place of the table and the mark.
	m.ways = append(slices.Clip(ways), way{"noise", "purge", false, noise})
	erased, done, warnings, err := m.boot(tenantB, data)
	if err != nil || len(erased) != 1 || !strings.Contains(erased[0], "noise (purge)") || warnings != "" || len(done) != 1 || bytes.Contains(m.content(blank), []byte(secret)) {
		t.Errorf("got %q, %q, %q, %v", erased, done, warnings, err)
	}
}

// TestDefaultWays: a file is erased by the first way that files have.
func TestDefaultWays(t *testing.T) {
	m := used(t, blank, "sda")
	var lines []string
	m.tenant = tenantB
	p := m.preparer()
	p.Erasing = func(line string) { lines = append(lines, line) }
	if _, err := p.Change(t.Context(), nil); err != nil || len(lines) != 5 || !slices.Contains(lines, path+": erasing the data of cluster a") || !strings.HasPrefix(lines[4], "sda, nvme0n1: the data of cluster a is erased: ") {
		t.Errorf("got %q, %v", lines, err)
	}
	if !isZero(m.content(blank)) {
		t.Error("a byte is left")
	}
}

// TestChangedMeanwhile: a disk that another system writes to after the scan is not erased.
func TestChangedMeanwhile(t *testing.T) {
	m := used(t, blank)
	m.tenant = tenantB
	p := m.preparer()
	have, _, _ := p.await(t.Context(), nil, true)
	m.remark(blank, func(k *tenantMark) { k.Node = "web9" })
	before := m.hash(blank)
	if _, err := p.eraseAll(t.Context(), have); err == nil || !strings.Contains(err.Error(), "another system has changed it meanwhile") || m.hash(blank) != before {
		t.Errorf("got %v", err)
	}
}

// TestNVMeFormat: the format of the blocks stays, and other namespaces are not erased.
func TestNVMeFormat(t *testing.T) {
	page := func(at map[int]byte) []byte {
		b := make([]byte, 4096)
		for i, v := range at {
			b[i] = v
		}
		return b
	}
	one, two := page(map[int]byte{0: 1}), page(map[int]byte{0: 1, 4: 2})
	for _, tt := range []struct {
		controller, active, space map[int]byte
		want                      uint32
		err                       string
	}{
		{map[int]byte{256: 2, 524: 4}, nil, map[int]byte{26: 0, 29: 0}, 0x400, ""},
		{map[int]byte{256: 2, 524: 4}, nil, map[int]byte{26: 0x31, 29: 0xa}, 0x400 | 1 | 1<<4 | 2<<5 | 1<<8 | 1<<12, ""},
		{map[int]byte{256: 2, 524: 7}, nil, nil, 0x400, ""},
		{map[int]byte{256: 2, 524: 6, 76: 2}, nil, nil, 0, "other namespaces"},
		{map[int]byte{256: 2, 524: 5}, map[int]byte{0: 1, 4: 2}, nil, 0, "other namespaces"},
		{map[int]byte{256: 2}, nil, nil, 0, "no cryptographic erase"},
		{map[int]byte{524: 4}, nil, nil, 0, "cannot format"},
	} {
		active := one
		if tt.active != nil {
			active = two
		}
		got, err := nvmeFormatOf(page(tt.controller), active, page(tt.space))
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%v: got %#x, %v, want %#x, %q", tt.controller, got, err, tt.want, tt.err)
		}
	}
}

// FuzzMark: a mark comes from a disk that anyone may have written.
func FuzzMark(f *testing.F) {
	b, err := tenantMark{Node: "web1", Tenant: "cluster a", Disk: "1", Proof: "2"}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(markHead))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMark(b)
		if m == nil {
			return
		}
		again, encodeErr := m.encode()
		if err != nil || encodeErr == nil && !bytes.Equal(bytes.TrimRight(again, "\x00"), bytes.TrimRight(b, "\x00")) {
			t.Errorf("%q: got %+v, %v, again %q", b, m, err, again)
		}
	})
}
