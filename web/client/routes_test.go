package client_test

import (
	"net/http"
	"reflect"
	"testing"

	"drover/web/api"
	"drover/web/client"
)

// typed is what the client says about a route.
type typed struct {
	method, path string
	in, out      reflect.Type // nil: none
}

func reads[T any](p client.Path[T]) typed {
	return typed{http.MethodGet, string(p), nil, reflect.TypeFor[T]()}
}

func changes[In, Out any](c client.Change[In, Out]) typed {
	either := func(t reflect.Type) reflect.Type {
		if t == reflect.TypeFor[client.None]() {
			return nil
		}
		return t
	}
	return typed{c.Method, c.Path, either(reflect.TypeFor[In]()), either(reflect.TypeFor[Out]())}
}

// TestClientRoutes: the client has each route of the API, with the types of the table.
func TestClientRoutes(t *testing.T) {
	all := map[string]typed{}
	for _, r := range []typed{
		reads(client.Nodes), reads(client.Node), reads(client.Pools), reads(client.Tags), reads(client.Clusters), reads(client.JoinToken),
		reads(client.Images), reads(client.Channels), reads(client.Leases), reads(client.Addresses), reads(client.Boots), reads(client.Unknown), reads(client.Chassis),
		reads(client.PowerJobs), reads(client.PowerJob), reads(client.Audit), reads(client.Tokens), reads(client.Config), reads(client.Plan),
		reads(client.Status), reads(client.Version), reads(client.ConfigHistory), reads(client.ConfigVersion), reads(client.Retired),
		changes(client.AddNode), changes(client.PatchNode), changes(client.RemoveNode), changes(client.ChangeNodes), changes(client.SetNextBoot),
		changes(client.ClearNextBoot), changes(client.ForgetBoots), changes(client.EndLease), changes(client.ForgetUnknown),
		changes(client.SyncChassis), changes(client.Power), changes(client.CreateToken), changes(client.RotateToken), changes(client.RevokeToken),
		changes(client.Promote), changes(client.Rollback), changes(client.MarkImage), changes(client.ReloadConfig), changes(client.CheckConfig), changes(client.RestoreState),
		changes(client.AnswerConfig), changes(client.RollbackConfig), changes(client.ForgetRetired),
	} {
		all[r.method+" "+r.path] = r
	}
	typeOf := func(v any) reflect.Type {
		if v == nil {
			return nil
		}
		return reflect.TypeOf(v)
	}
	for _, r := range (&api.API{}).Routes() {
		name := r.Method + " " + r.Path
		got, ok := all[name]
		want := typed{r.Method, r.Path, typeOf(r.Body), typeOf(r.Answer)}
		if r.Patch {
			want.in = reflect.TypeFor[client.Patch]()
		}
		if !ok || got != want {
			t.Errorf("%s: the client has %+v, the table %+v", name, got, want)
		}
		delete(all, name)
	}
	for name := range all {
		t.Errorf("the table has no %s", name)
	}
}
