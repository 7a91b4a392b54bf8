package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"golang.org/x/crypto/bcrypt"

	"drover/e2e/buildcache"
	"drover/e2e/fixture"
)

// oidcSecret is the secret of drover at its provider.
const oidcSecret = "the secret of drover at Dex"

// The people of the provider.
const password = "the password of everyone"

var people = map[string][]string{
	"vera@example.org": {"watchers"}, "otto@example.org": {"watchers", "web-team"}, "ada@example.org": {"farm-admins"}, "eve@example.org": {"others"},
}

// dex runs a Dex that leads browsers back to a server, and returns its issuer.
func dex(t *testing.T, back string) (issuer string) {
	t.Helper()
	if !fixture.Must() {
		fixture.Missing(t, "Dex: set DROVER_E2E=1 to build it")
	}
	program, err := buildcache.Dex(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t) // for a port that is free
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for mail, groups := range people {
		name, _, _ := strings.Cut(mail, "@")
		all = append(all, map[string]any{"email": mail, "hash": string(hash), "username": name, "userID": name, "groups": groups})
	}
	issuer = "http://" + address + "/dex"
	text, err := json.Marshal(map[string]any{ // YAML, too
		"issuer": issuer, "storage": map[string]string{"type": "memory"}, "web": map[string]string{"http": address},
		"oauth2": map[string]bool{"skipApprovalScreen": true}, "enablePasswordDB": true, "staticPasswords": all,
		"staticClients": []any{map[string]any{"id": "drover", "name": "drover", "secret": oidcSecret, "redirectURIs": []string{back + "/login/callback"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "dex.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	log := &fixture.Log{}
	cmd := exec.CommandContext(t.Context(), program, "serve", file)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Log("Dex says:\n" + log.String())
		}
	})
	fixture.Retry(t, "Dex answers", func() error {
		resp, err := http.Get(issuer + "/.well-known/openid-configuration")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %s", resp.Status)
		}
		return nil
	})
	return issuer
}

// TestDexLogin: people log in at Dex, with the roles of their groups, and the audit names
// them. The page and Dex have different names, so they are different sites for the browser.
func TestDexLogin(t *testing.T) {
	l := listen(t)
	back := "http://localhost:" + l.Addr().String()[strings.LastIndex(l.Addr().String(), ":")+1:]
	issuer := dex(t, back)
	f := newFarmAt(t, 8, l, fmt.Sprintf(`, oidc: {issuer: %q, clientID: drover, clientSecret: {fromFile: oidc.secret}, url: %q, roles: [
  {name: watchers, role: viewer}, {name: web-team, role: operator, pools: [gpu]}, {name: farm-admins, role: admin}]}`, issuer, back))
	f.url = back
	form := "/change?do=next&pick=" + url.QueryEscape(name(0))
	for _, tt := range []struct{ mail, shown, form string }{
		{"vera@example.org", "vera@example.org, viewer", "needs the role operator"},
		{"otto@example.org", "otto@example.org, operator", "is for machines of the pools"},
		{"ada@example.org", "ada@example.org, admin", "This will change 1"},
	} {
		t.Run(tt.mail, func(t *testing.T) {
			b := Start(t, f.url)
			b.atDex(tt.mail, "/nodes?pool=compute")
			b.Until("the list of nodes", `document.getElementById("live") !== null && location.pathname + location.search === "/nodes?pool=compute"`)
			b.says(tt.shown)
			b.ignore(issuer)
			b.Quiet("the login")
			b.Run(chromedp.Navigate(f.url + form))
			if tt.form != "needs the role operator" {
				b.Run(chromedp.SetValue("#in-next", "local"), chromedp.Click(`button[value="preview"]`))
			}
			b.says(tt.form)
			if tt.form == "This will change 1" {
				b.Run(chromedp.Click(`button[value="do"]`))
				b.Until("the node", `location.pathname === "/nodes/`+name(0)+`"`)
			}
		})
	}
	t.Run("no role", func(t *testing.T) {
		b := Start(t, f.url)
		b.atDex("eve@example.org", "/")
		b.says("No group of eve@example.org has a role here")
	})
	all, err := f.Store.Audit.List(10)
	if err != nil || len(all) != 1 || !strings.HasPrefix(all[0].Actor, "oidc ada@example.org from 127.0.0.1:") {
		t.Errorf("the audit has %+v, %v", all, err)
	}
}

// atDex opens a page of the farm, and logs in at Dex.
func (b *Tab) atDex(mail, path string) {
	b.t.Helper()
	b.Run(chromedp.Navigate(b.url+path), chromedp.Click(`a[href^="/login/oidc"]`))
	b.Until("Dex's form", `document.getElementById("login") !== null`)
	b.Run(chromedp.SendKeys("#login", mail), chromedp.SendKeys("#password", password), chromedp.Submit("#password"))
}

// ignore removes the errors of another server's pages.
func (b *Tab) ignore(server string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.errors = slices.DeleteFunc(b.errors, func(e string) bool { return strings.Contains(e, server) })
}

// says waits until the page has a text.
func (b *Tab) says(text string) {
	b.t.Helper()
	b.Until("it says "+text, fmt.Sprintf("document.body !== null && document.body.innerText.includes(%q)", text))
}
