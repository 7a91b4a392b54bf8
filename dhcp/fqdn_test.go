package dhcp_test

import (
	"testing"

	"drover/pools/resolve"
)

func TestFQDN(t *testing.T) {
	with := func(domain string, options ...resolve.Option) farmFunc {
		return func(p *resolve.Plan) { p.Subnet.Domain, p.Options = domain, options }
	}
	for _, tt := range []struct {
		name  string
		farm  farmFunc
		asked string
		want  string
	}{
		{"as text", with("example.org"), "\x00\x00\x00me", "\x08\xff\xffweb1.example.org"},
		{"as in DNS", with("example.org"), "\x04\x00\x00\x02me\x00", "\x0c\xff\xff\x04web1\x07example\x03org\x00"},
		{"the server is to update DNS", with("example.org"), "\x01\x00\x00me", "\x0a\xff\xffweb1.example.org"},
		{"nobody is to", with("example.org"), "\x08\x00\x00me", "\x08\xff\xffweb1.example.org"},
		{"no name", with("example.org"), "\x04\x00\x00", "\x0c\xff\xff\x04web1\x07example\x03org\x00"},
		{"no domain, as text", with(""), "\x00\x00\x00me", "\x08\xff\xffweb1"},
		{"no domain, as in DNS", with(""), "\x04\x00\x00me", "\x0c\xff\xff\x04web1"},
		{"the domain of a tag", with("example.org", resolve.Option{Code: 15, Data: []byte("tag.example")}), "\x00\x00\x00me", "\x08\xff\xffweb1.tag.example"},
		{"a domain of one dot too many", with("example..org."), "\x04\x00\x00", "\x0c\xff\xff\x04web1\x07example\x03org\x00"},
		{"not asked", with("example.org"), "", ""},
		{"cut off", with("example.org"), "\x01\x00", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := newServer()
			s.Farm = tt.farm
			in := message(web1, discover, option(55, 1, 3, 12)) // 81 need not be listed
			if tt.asked != "" {
				in.Options[81] = []byte(tt.asked)
			}
			r, _ := s.Reply(on(t, in), noon)
			if got := string(r.Options[81]); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if got := string(r.Options[12]); got != "web1" {
				t.Errorf("host name: got %q", got)
			}
		})
	}
}
