package declared_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config/declared"
	"drover/pools/config/mistake"
)

// tagged is [rule] for Machines that may need a Tag, "a needs t7", and are "odd": then there is a
// mistake that names no object.
func tagged(all []*declared.Object) error {
	var errs mistake.Errors
	tags := map[string]bool{}
	for _, o := range all {
		tags[o.Name] = tags[o.Name] || o.Kind == pools.KindTag
		_, tag, needs := strings.Cut(strings.Trim(string(o.Spec), `{}"`), " needs ")
		if needs && !tags[tag] || strings.Contains(string(o.Spec), "odd") {
			errs = append(errs, &mistake.Error{Msg: "of no object"})
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(o *declared.Object) bool { return o.Kind != pools.KindMachine })
	if err, ok := rule(all).(mistake.Errors); ok {
		errs = append(errs, err...)
	}
	return errs.Err()
}

// machines returns n Machines, of which each has a MAC of its own. Those in other have that.
func machines(n int, other map[int]string) (all []*declared.Object) {
	for i := range n {
		mac, ok := other[i]
		if !ok {
			mac = fmt.Sprintf("mac%d", i)
		}
		all = append(all, declared.New(declared.Key{Kind: pools.KindMachine, Name: fmt.Sprintf("m%d", i)}, 1, fmt.Appendf(nil, `{"pool":%q}`, mac)))
	}
	return all
}

func tags(n int) (all []*declared.Object) {
	for i := range n {
		all = append(all, declared.New(declared.Key{Kind: pools.KindTag, Name: fmt.Sprintf("t%d", i)}, 1, []byte(`{}`)))
	}
	return all
}

// TestChooseMany: of many changes each that fits is made, and the number of checks is small.
func TestChooseMany(t *testing.T) {
	for _, n := range []int{3, 65, 100, 5000} {
		last := machines(n, nil)
		swapped := map[int]string{0: "mac1", 1: "mac0"}
		moved := map[int]string{}
		for i := range n {
			moved[i] = fmt.Sprintf("mac%d", (i+1)%n)
		}
		for name, tt := range map[string]struct {
			desired, last []*declared.Object
			want          string // wrong, kept, and dropped
			checks        int
		}{
			"all are right":                      {machines(n, nil), nil, "[] [] []", 1},
			"one is wrong":                       {machines(n, map[int]string{n / 2: "bad"}), nil, fmt.Sprintf("[m%d] [] []", n/2), 6},
			"one is wrong, of no object":         {machines(n, map[int]string{n / 2: "odd"}), nil, fmt.Sprintf("[m%d] [] []", n/2), 60},
			"each way of being wrong":            {machines(n, map[int]string{0: "bad", 1: "odd", 2: "mac0"}), nil, "[m0 m1] [] []", 60},
			"the MAC of one before it":           {machines(n, map[int]string{n - 1: "mac1"}), nil, fmt.Sprintf("[m%d] [] []", n-1), 8},
			"the MAC of one in force":            {slices.Concat(last, machines(n+1, map[int]string{n: "mac0"})[n:]), last, fmt.Sprintf("[m%d] [] []", n), 6},
			"a changed one gets a MAC in force":  {machines(n, map[int]string{0: "mac1"}), last, "[m0] [] []", 6},
			"two MACs exchanged":                 {machines(n, swapped), last, "[] [] []", 1},
			"two MACs exchanged, and an odd one": {slices.Concat(machines(n, swapped), machines(n+1, map[int]string{n: "odd"})[n:]), last, fmt.Sprintf("[m%d] [] []", n), 60},
			"all MACs moved on, and an odd one":  {slices.Concat(machines(n, moved), machines(n+1, map[int]string{n: "odd"})[n:]), last, fmt.Sprintf("[m%d] [] []", n), 60},
			"one deleted Tag is needed":          {machines(2, map[int]string{1: "x needs t1"}), slices.Concat(tags(n), machines(2, map[int]string{1: "x needs t1"})), "[] [Tag t1] []", 60},
			"renamed, and a deleted Tag is needed": {
				slices.Concat(last[1:], machines(n+2, map[int]string{n: "mac0", n + 1: "x needs t1"})[n:]),
				slices.Concat(tags(n), last, machines(n+2, map[int]string{n + 1: "x needs t1"})[n+1:]), "[] [Tag t1] []", 60,
			},
			"all deleted, and an odd change": {machines(1, map[int]string{0: "odd"}), last, "[m0] [] []", 8},
		} {
			t.Run(fmt.Sprint(name, " of ", n), func(t *testing.T) {
				checks := 0
				c, err := declared.Choose(tt.desired, tt.last, func(all []*declared.Object) error { checks++; return tagged(all) })
				if err != nil {
					t.Fatal(err)
				}
				wrong := []string{}
				for k := range c.Wrong {
					wrong = append(wrong, k.Name)
				}
				slices.Sort(wrong)
				if got := fmt.Sprint(wrong, c.Kept, c.Dropped); got != tt.want {
					t.Errorf("wrong, kept and dropped are %.200s, want %s", got, tt.want)
				}
				if checks > tt.checks {
					t.Errorf("%d checks, want at most %d", checks, tt.checks)
				}
				if err := tagged(c.InForce); err != nil {
					t.Errorf("in force is a mistake: %v", err)
				}
			})
		}
	}
}

// TestChooseFileCounts: what the config file took is dropped, and nothing beside it.
func TestChooseFileCounts(t *testing.T) {
	for _, n := range []int{3, 100, 5000} {
		all := machines(n, nil)
		check := func(all []*declared.Object) error {
			errs, _ := rule(all).(mistake.Errors)
			for _, o := range all {
				if string(o.Spec) == `{"pool":"mac1"}` {
					errs = append(errs, &mistake.Error{Origin: pools.Origin{File: "drover.yaml", Line: 1}, Msg: "taken", Other: pools.Origin{File: o.String()}})
				}
			}
			return errs.Err()
		}
		c, err := declared.Choose(all, all, check)
		if err != nil || len(c.InForce) != n-1 || fmt.Sprint(c.Dropped) != "[Machine m1]" || len(c.Wrong[all[1].Key]) != 1 {
			t.Errorf("of %d: %d in force, dropped %v, %v, %v", n, len(c.InForce), c.Dropped, c.Wrong, err)
		}
		// Its newest version is not the one that is in force, and is right.
		mended := machines(n, map[int]string{1: "mended", 2: "odd"})
		c, err = declared.Choose(mended, all, func(all []*declared.Object) error {
			if err := check(all); err != nil {
				return err
			}
			return tagged(all)
		})
		if err != nil || len(c.InForce) != n || len(c.Dropped) > 0 || len(c.Wrong) != 1 || !c.Find(all[1].Key).Same(mended[1]) || !c.Find(all[2].Key).Same(all[2]) {
			t.Errorf("of %d: %d in force, dropped %v, %v, %v", n, len(c.InForce), c.Dropped, c.Wrong, err)
		}
		if _, err := declared.Choose(all, nil, func([]*declared.Object) error {
			return mistake.Errors{{Origin: pools.Origin{File: "drover.yaml", Line: 7}, Msg: "of the file"}}
		}); err == nil || err.Error() != "drover.yaml:7: of the file" {
			t.Errorf("a mistake of the file: %v", err)
		}
	}
}
