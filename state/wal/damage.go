package wal

import (
	"fmt"
	"strings"
)

// Damage counts what Open left out.
type Damage struct {
	Parts int   // records and values
	Bytes int64 // of records
}

// maxDamageLines limits the log lines about damage. There is also a line with the total.
const maxDamageLines = 20

// Damage returns the number of damaged records and values that Open left out.
func (l *Log) Damage() Damage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.damage
}

// lose counts and logs a damaged part that is left out. It returns an error instead if
// the part may have had vital values and AcceptLoss is not set. Call it before Open or
// Import only.
func (l *Log) lose(vital bool, bytes int64, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if vital && !l.AcceptLoss {
		return fmt.Errorf("%s, which may have had %s: %w", text, l.vital(), ErrDamaged)
	}
	l.mu.Lock()
	l.damage.Parts++
	l.damage.Bytes += max(bytes, 0)
	n := l.damage.Parts
	l.mu.Unlock()
	if n <= maxDamageLines {
		l.Logger.Error("the state is damaged; left out", "part", text)
	}
	return nil
}

// vital names the values of the tables with Vital.
func (l *Log) vital() string {
	var names []string
	for _, id := range l.order() {
		if v := l.Tables[id].Vital; v != "" {
			names = append(names, v)
		}
	}
	return strings.Join(names, ", ")
}
