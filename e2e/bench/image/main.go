// Image measures "drover image build" beside mksquashfs: the same tree, compressor, level
// and block size, in turn. The tree is the node image, unpacked.
//
// A build does more than mksquashfs: it writes kernel and initrd, reads the tree in an
// order of its own, computes digests, and waits until everything is on the disk. It is
// measured with an empty directory of images, and with one that has an initrd of the same
// contents, of an image with another name.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"drover/e2e/bench/kit"
	"drover/e2e/bench/stats"
	"drover/e2e/buildcache"
	"drover/imagebuild"
)

func main() { kit.Main("bench-image", run) }

// The limits: of the time of mksquashfs, of one process in bytes, and of files in bytes.
const (
	maxRatio    = 1.5
	maxResident = 160e6
	maxSquashfs = 260e6
	maxInitrd   = 12e6
)

// options are the flags.
type options struct {
	rounds, level int
	json          string
}

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench-image", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.rounds, "rounds", 5, "how often; medians are shown")
	f.IntVar(&o.level, "level", imagebuild.DefaultLevel, "of zstd")
	f.StringVar(&o.json, "json", "", "`file` for the figures, as JSON")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.rounds < 1 {
		return o, fmt.Errorf("want no arguments, and 1 round or more")
	}
	return o, nil
}

// Cost is what one run takes.
type Cost struct {
	Wall     float64 `json:"wall"`     // seconds
	CPU      float64 `json:"cpu"`      // seconds, of all processes
	Resident float64 `json:"resident"` // bytes, of the largest process
}

// Report has the figures of all rounds.
type Report struct {
	Level    int               `json:"level"`
	Load     []string          `json:"load"`  // average of the host at the begin of each round
	Costs    map[string][]Cost `json:"costs"` // by name, one for each round
	Squashfs int64             `json:"squashfs"`
	Initrd   int64             `json:"initrd"`
	Peer     int64             `json:"peer"` // squashfs of mksquashfs
}

// The rows of the table.
const (
	peer   = "mksquashfs"
	first  = "drover, first build"
	second = "drover, initrd there"
)

// bench is a benchmark under way.
type bench struct {
	options
	drover, init string
	dir, tree    string
	report       Report
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("needs root, to unpack a tree with its owners")
	}
	cache, err := buildcache.CacheDir()
	if err != nil {
		return err
	}
	b := bench{options: o, report: Report{Level: o.level, Costs: map[string][]Cost{}}}
	if b.dir, err = os.MkdirTemp(cache, ".bench-image-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := b.prepare(ctx, stderr); err != nil {
		return err
	}
	for i := range o.rounds {
		load := stats.LoadAverage()
		b.report.Load = append(b.report.Load, load)
		fmt.Fprintf(stderr, "round %d of %d; load average of the host %s\n", i+1, o.rounds, load)
		if err := b.round(ctx); err != nil {
			return err
		}
	}
	if err := kit.Save(o.json, b.report); err != nil {
		return err
	}
	return b.report.print(stdout)
}

// prepare builds the programs, and unpacks the node image with its kernel.
func (b *bench) prepare(ctx context.Context, stderr io.Writer) error {
	source, err := buildcache.NodeImage(ctx, stderr)
	if err != nil {
		return err
	}
	if b.drover, _, err = kit.FindDrover(ctx, b.dir, ""); err != nil {
		return err
	}
	b.init = filepath.Join(b.dir, "bin", "drover-init")
	if err := kit.Compile(ctx, b.init, "drover/cmd/drover-init"); err != nil {
		return err
	}
	whole := filepath.Join(b.dir, "whole")
	if err := b.build(ctx, "bench", whole, "oci:"+source, "--keep-boot").Run(); err != nil {
		return err
	}
	image, err := imagebuild.Open(whole).Lookup("bench")
	if err != nil {
		return err
	}
	b.report.Initrd = image.Files[imagebuild.InitrdFile].Size // with microcode, which is not in the root file system
	b.tree = filepath.Join(b.dir, "tree")
	if out, err := exec.CommandContext(ctx, "unsquashfs", "-quiet", "-no-progress", "-dest", b.tree,
		filepath.Join(image.Path, imagebuild.SquashfsFile)).CombinedOutput(); err != nil {
		return fmt.Errorf("unsquashfs: %w\n%s", err, out)
	}
	return os.RemoveAll(whole)
}

// build returns the command that builds an image of a source.
func (b *bench) build(ctx context.Context, name, images, source string, flags ...string) *exec.Cmd {
	args := append([]string{"image", "build", "--name", name, "--images", images, "--init", b.init, "--level", strconv.Itoa(b.level)}, flags...)
	return exec.CommandContext(ctx, b.drover, append(args, source)...)
}

// round measures each row once.
func (b *bench) round(ctx context.Context) error {
	squashfs, images := filepath.Join(b.dir, "peer.squashfs"), filepath.Join(b.dir, "images")
	if err := b.measure(peer, exec.CommandContext(ctx, "mksquashfs", b.tree, squashfs, "-comp", "zstd",
		"-Xcompression-level", strconv.Itoa(b.level), "-b", "131072", "-noappend", "-quiet", "-no-progress")); err != nil {
		return err
	}
	info, err := os.Stat(squashfs)
	if err != nil {
		return err
	}
	b.report.Peer = info.Size()
	if err := os.RemoveAll(images); err != nil {
		return err
	}
	for _, row := range []struct{ name, image string }{{first, "bench"}, {second, "again"}} {
		if err := b.measure(row.name, b.build(ctx, row.image, images, "dir:"+b.tree, "--keep-boot")); err != nil {
			return err
		}
	}
	image, err := imagebuild.Open(images).Lookup("bench")
	b.report.Squashfs = image.Files[imagebuild.SquashfsFile].Size
	return err
}

// measure runs a command and adds what it took to a row. Everything that it wrote is on
// the disk before and after, so that no command pays for another one.
func (b *bench) measure(row string, cmd *exec.Cmd) error {
	syscall.Sync()
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall := time.Since(start)
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", row, err, out)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	b.report.Costs[row] = append(b.report.Costs[row], Cost{Wall: wall.Seconds(), Resident: float64(usage.Maxrss) * 1024,
		CPU: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()})
	return nil
}

// column returns one figure of all rounds of a row.
func (r *Report) column(row string, figure func(Cost) float64) []float64 {
	var list []float64
	for _, c := range r.Costs[row] {
		list = append(list, figure(c))
	}
	return list
}

// print prints the table and the limits. A limit that is not kept is an error.
func (r *Report) print(w io.Writer) error {
	wall := func(c Cost) float64 { return c.Wall }
	cpu := func(c Cost) float64 { return c.CPU }
	resident := func(c Cost) float64 { return c.Resident }
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "zstd %d\twall\tCPU\tresident\tratio\n", r.Level)
	for _, row := range []string{peer, first, second} {
		fmt.Fprintf(tw, "%s\t%.1f s\t%.1f s\t%.0f MB\t%.2f\n", row, stats.Median(r.column(row, wall)), stats.Median(r.column(row, cpu)),
			stats.Median(r.column(row, resident))/1e6, stats.Compare(r.column(row, wall), r.column(peer, wall)).Median)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d processors, load averages of the host %s\n", runtime.NumCPU(), strings.Join(r.Load, ", "))
	fmt.Fprintf(w, "squashfs %.1f MB (%s: %.1f MB), initrd %.1f MB\n\n", float64(r.Squashfs)/1e6, peer, float64(r.Peer)/1e6, float64(r.Initrd)/1e6)
	failed := 0
	for _, limit := range []struct {
		name     string
		got, max float64
		unit     string
	}{
		{first + ", of the time of " + peer, stats.Compare(r.column(first, wall), r.column(peer, wall)).Median, maxRatio, ""},
		{second + ", of the time of " + peer, stats.Compare(r.column(second, wall), r.column(peer, wall)).Median, maxRatio, ""},
		{"resident", stats.Median(r.column(first, resident)) / 1e6, maxResident / 1e6, " MB"},
		{"squashfs", float64(r.Squashfs) / 1e6, maxSquashfs / 1e6, " MB"},
		{"initrd", float64(r.Initrd) / 1e6, maxInitrd / 1e6, " MB"},
	} {
		verdict := "PASS"
		if limit.got > limit.max {
			verdict = "FAIL"
			failed++
		}
		fmt.Fprintf(w, "%s  %s: %.2f%s, at most %.1f%s\n", verdict, limit.name, limit.got, limit.unit, limit.max, limit.unit)
	}
	if failed > 0 {
		return fmt.Errorf("%d limits are not kept", failed)
	}
	return nil
}
