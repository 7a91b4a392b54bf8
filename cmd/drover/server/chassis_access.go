package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"drover/pools"
	"drover/pools/ilo"
)

// DefaultUser is the user that management processors are delivered with.
const DefaultUser = "Administrator"

// maxPassword bounds the file of a password, in bytes.
const maxPassword = 4096

// WithPort adds a port to a host that has none.
func WithPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// access opens the management processors that a config names.
type access struct {
	farm     *pools.Farm
	hosts    *ilo.HostKeys
	certs    *ilo.CertPins
	timeouts ilo.Timeouts
}

// NewPins are the pinned keys and certificates in a directory. say is told of
// new ones.
func NewPins(dir string, say func(address, fingerprint string)) (*ilo.HostKeys, *ilo.CertPins) {
	return &ilo.HostKeys{Path: filepath.Join(dir, "known_hosts"), OnNew: say}, &ilo.CertPins{Path: filepath.Join(dir, "known_certs"), OnNew: say}
}

// secret reads a password from a file that the config names.
func (a access) secret(file string) (ilo.Secret, error) {
	s, err := ReadPassword(a.farm.Path(file))
	if err != nil {
		return "", fmt.Errorf("passwordFile: %w", err)
	}
	return s, nil
}

// login is for the SSH of a chassis.
func (a access) login(c pools.Chassis) (ilo.Login, error) {
	password, err := a.secret(c.PasswordFile)
	return ilo.Login{
		Address: WithPort(c.Address, "22"), User: c.User, Password: password,
		HostKey: c.HostKey, HostKeys: a.hosts, Legacy: c.Legacy, Prompt: c.Prompt, Timeouts: a.timeouts,
	}, err
}

// site is for the REST of a chassis. Close it.
func (a access) site(c pools.Chassis) (*ilo.Site, error) {
	return a.open(c.Address, c.User, c.PasswordFile, c.TLSPin, c.Legacy)
}

// bmc is for the Redfish of one machine. Close it.
func (a access) bmc(p *pools.NodePower) (*ilo.Site, error) {
	return a.open(p.Address, p.User, p.PasswordFile, p.TLSPin, p.Legacy)
}

func (a access) open(address, user, passwordFile, pin string, legacy bool) (*ilo.Site, error) {
	password, err := a.secret(passwordFile)
	if err != nil {
		return nil, err
	}
	if user == "" {
		user = DefaultUser
	}
	s := &ilo.Site{Address: address, User: user, Password: password, TLSPin: pin, TLSPins: a.certs, Legacy: legacy, Timeouts: a.timeouts}
	return s, s.Open()
}

// NamingOf returns the rules that name the nodes of a chassis.
func NamingOf(c pools.Chassis) ilo.Naming {
	return ilo.Naming{Chassis: c.Name, Pool: c.Pool, Name: c.NameTemplate, IP: c.IPTemplate, Tags: c.Tags, NIC: c.NIC}
}

// read asks a chassis what it holds. The transcript is there after SSH alone.
func (a access) read(ctx context.Context, c pools.Chassis) (*ilo.Inventory, string, error) {
	if c.Via == pools.ViaREST {
		site, err := a.site(c)
		if err != nil {
			return nil, "", err
		}
		defer site.Close()
		inv, err := ilo.ScrapeREST(ctx, site)
		return inv, "", err
	}
	login, err := a.login(c)
	if err != nil {
		return nil, "", err
	}
	return ilo.Scrape(ctx, login)
}

// ReadPassword reads a password from a file that holds nothing but one line.
func ReadPassword(file string) (ilo.Secret, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPassword+1))
	text := bytes.TrimRight(data, "\r\n")
	switch {
	case err != nil:
		return "", err
	case len(text) == 0 || len(data) > maxPassword || bytes.ContainsAny(text, "\r\n\x00"):
		return "", errors.New(file + " does not hold a password: want one line")
	}
	return ilo.Secret(text), nil
}
