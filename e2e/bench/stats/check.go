package stats

import (
	"errors"
	"fmt"
)

// A Check is one thing that drover has to be.
type Check struct {
	Name string  `json:"name"`
	Got  float64 `json:"got"`
	Want float64 `json:"want"`
	Most bool    `json:"most"` // Want is the most that it may be, else the least
	Pass bool    `json:"pass"`
	Note string  `json:"note,omitempty"` // what Got is worth
}

// String is the line of a report.
func (c Check) String() string {
	outcome, bound := "FAIL", "at least"
	if c.Pass {
		outcome = "PASS"
	}
	if c.Most {
		bound = "at most"
	}
	line := fmt.Sprintf("%s  %s: %.4g (want %s %.4g)", outcome, c.Name, c.Got, bound, c.Want)
	if c.Note != "" {
		line += "; " + c.Note
	}
	return line
}

// AtLeast is a check of a single figure.
func AtLeast(name string, got, want float64) Check {
	return Check{Name: name, Got: got, Want: want, Pass: got >= want}
}

// AtMost takes zero for "not measured".
func AtMost(name string, got, want float64) Check {
	return Check{Name: name, Got: got, Want: want, Most: true, Pass: got > 0 && got <= want}
}

// Failure is the error of a run in which drover failed; nil when it did not.
func Failure(checks []Check) error {
	var errs []error
	for _, c := range checks {
		if !c.Pass {
			errs = append(errs, errors.New(c.Name))
		}
	}
	if errs != nil {
		return fmt.Errorf("drover fails in %d of %d: %w", len(errs), len(checks), errors.Join(errs...))
	}
	return nil
}
