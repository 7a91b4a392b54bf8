package declared_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"drover/pools"
	"drover/pools/config/declared"
	"drover/pools/config/mistake"
)

// rule is a farm of Machines with one MAC each: "bad" is a mistake, two of a MAC are in
// conflict, and a node of the file has the MAC "file".
func rule(all []*declared.Object) error {
	var errs mistake.Errors
	first := map[string]*declared.Object{}
	for _, o := range all {
		mac := string(o.Spec)
		at := pools.Origin{File: o.String()}
		other := first[mac]
		switch {
		case mac == `{"pool":"bad"}`:
			errs = append(errs, &mistake.Error{Origin: at, Msg: "bad"})
		case other != nil:
			errs = append(errs, &mistake.Error{Origin: at, Msg: "twice", Other: pools.Origin{File: other.String()}})
		default:
			first[mac] = o
		}
	}
	return errs.Err()
}

// TestChoose tries random changes one after another: what is in force is always valid, what
// was in force and did not change stays so, and each object that is not in force as it is
// has a reason.
func TestChoose(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var last []*declared.Object
	desired := map[string]*declared.Object{}
	macs := []string{"a", "b", "c", "d", "bad"}
	for round := range 2000 {
		for range 1 + random.IntN(3) {
			name := fmt.Sprintf("m%d", random.IntN(6))
			if random.IntN(4) == 0 {
				delete(desired, name)
				continue
			}
			spec := fmt.Sprintf(`{"pool":%q}`, macs[random.IntN(len(macs))])
			desired[name] = declared.New(declared.Key{Kind: pools.KindMachine, Name: name}, int64(round), []byte(spec))
		}
		all := slices.Collect(maps.Values(desired))
		c, err := declared.Choose(all, last, rule)
		if err != nil {
			t.Fatal(err)
		}
		if err := rule(c.InForce); err != nil {
			t.Fatalf("round %d: %s are in force: %v", round, text(c.InForce), err)
		}
		for _, o := range all {
			_, wrong := c.Wrong[o.Key]
			if now := c.Find(o.Key); wrong == (now != nil && now.Same(o)) {
				t.Fatalf("round %d: %s of %s is wrong: %t, and in force is %v", round, o.Key, text(all), wrong, now)
			}
		}
		for _, o := range last {
			if d := desired[o.Name]; d != nil && d.Same(o) && (c.Find(o.Key) == nil || !c.Find(o.Key).Same(o)) {
				t.Fatalf("round %d: %s was in force, has not changed, and is no more: %s after %s", round, o.Key, text(all), text(last))
			}
		}
		if len(c.Kept) > 0 || len(c.Dropped) > 0 {
			t.Fatalf("round %d: kept %v, dropped %v", round, c.Kept, c.Dropped)
		}
		last = c.InForce
	}
}

func text(all []*declared.Object) string {
	var words []string
	for _, o := range all {
		words = append(words, o.Name+" "+string(o.Spec))
	}
	return strings.Join(words, ", ")
}
