package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// day is what flags of durations call d: clocks that are set forward or back do not count.
const day = 24 * time.Hour

// duration is the value of a flag that takes days too.
type duration time.Duration

// DurationFlag adds a flag for a duration such as 90s, 12h, 7d or 1d12h.
func DurationFlag(f *pflag.FlagSet, d *time.Duration, name string, standard time.Duration, usage string) {
	*d = standard
	f.Var((*duration)(d), name, usage)
}

// Set reads a duration.
func (d *duration) Set(text string) error {
	days, rest, ok := strings.Cut(text, "d")
	if !ok {
		days, rest = "0", text
	}
	n, err := strconv.ParseUint(days, 10, 16) // 179 years fit
	var v time.Duration
	if err == nil && (rest != "" || !ok) {
		v, err = time.ParseDuration(rest)
	}
	if err != nil || ok && v < 0 {
		return fmt.Errorf("%q is not a duration: write 90s, 12h, 7d or 1d12h", text)
	}
	*d = duration(time.Duration(n)*day + v)
	return nil
}

// String returns hours rather than days. For none it is 0, which the help leaves out.
func (d *duration) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

// Type is what the help shows.
func (d *duration) Type() string { return "duration" }
