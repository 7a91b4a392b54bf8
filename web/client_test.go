package web_test

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"drover/pools"
	problems "drover/web/answer"
	"drover/web/client"
)

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
