package web_test

import (
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"testing"

	"drover/pools"
	problems "drover/web/answer"
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
		reads(client.Images), reads(client.Leases), reads(client.Addresses), reads(client.Boots), reads(client.Unknown), reads(client.Chassis),
		reads(client.PowerJobs), reads(client.PowerJob), reads(client.Audit), reads(client.Tokens), reads(client.Config), reads(client.Plan),
		reads(client.Status), reads(client.Version),
		changes(client.AddNode), changes(client.PatchNode), changes(client.RemoveNode), changes(client.ChangeNodes), changes(client.SetNextBoot),
		changes(client.ClearNextBoot), changes(client.ForgetBoots), changes(client.EndLease), changes(client.ForgetUnknown),
		changes(client.SyncChassis), changes(client.Power), changes(client.CreateToken), changes(client.RotateToken), changes(client.RevokeToken),
		changes(client.ReloadConfig), changes(client.CheckConfig), changes(client.RestoreState),
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

// TestClient: the client reads, changes, and has the errors of the server.
func TestClient(t *testing.T) {
	s := listen(t, true)
	c, ctx := s.api(secret), t.Context()
	nodes, err := client.Get(ctx, c, client.Nodes, url.Values{"tag": {"gpu"}})
	if err != nil || len(nodes) != 1 || nodes[0].Name != "m2" || nodes[0].Status.State != pools.NodeNew {
		t.Errorf("got %+v, %v", nodes, err)
	}
	if plan, err := client.Get(ctx, c, client.Plan, url.Values{"node": {"m2"}}); err != nil || plan.Image != "debian-12" || plan.Origins["image"].Line != 6 {
		t.Errorf("got %+v, %v", plan, err)
	}
	node := pools.PoolNode{Pool: "storage", Node: pools.Node{Name: "n/3", MACs: []pools.MAC{{2}}, IP: nodes[0].IP.Next()}}
	var e *client.Error
	if _, err := client.Send(ctx, c, client.AddNode, node); !errors.As(err, &e) || e.Status != 400 || e.Problem.Code != problems.CodeBody || e.Problem.Field == "" {
		t.Errorf("a bad name: %v", err)
	}
	node.Name = "n3"
	if n, err := client.Send(ctx, c, client.AddNode.Try(), node); err != nil || n.Name != "n3" {
		t.Errorf("got %+v, %v", n, err)
	}
	if _, err := client.Get(ctx, c, client.Node.Of("n3"), nil); !errors.As(err, &e) || e.Status != 404 {
		t.Errorf("a try has added the node: %v", err)
	}
	if _, err := client.Send(ctx, c, client.AddNode, node); err != nil {
		t.Fatal(err)
	}
	call := client.Call{Method: http.MethodGet, Path: string(client.Node.Of("n3"))}
	header, err := c.Do(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	call = client.Call{Method: http.MethodPatch, Path: call.Path, In: client.Patch{"tags": []string{"gpu"}}, IfMatch: header.Get("ETag")}
	if _, err := c.Do(ctx, call); err != nil {
		t.Error(err)
	}
	if _, err := c.Do(ctx, call); !errors.As(err, &e) || e.Status != 412 {
		t.Errorf("a change of another node: %v", err)
	}
	if _, err := client.Get(ctx, s.api("wrong"), client.Nodes, nil); !errors.As(err, &e) || e.Status != 401 {
		t.Errorf("a wrong token: %v", err)
	}
	var gone *client.UnreachableError
	if _, err := client.Get(ctx, &client.Client{Base: "http://127.0.0.1:1"}, client.Nodes, nil); !errors.As(err, &gone) {
		t.Errorf("nobody there: %v", err)
	}
}
