package ilo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"drover/pools"
)

// Server is a machine with an iLO of its own.
type Server struct {
	Serial  string      `json:"serial,omitempty"`
	UUID    string      `json:"uuid,omitempty"` // lower case; what its firmware sends as DHCP option 97
	Product string      `json:"product,omitempty"`
	Manager string      `json:"manager,omitempty"` // "Integrated Lights-Out 4 (iLO 4)"
	Power   State       `json:"power"`
	MACs    []pools.MAC `json:"macs"` // of the machine, never of the iLO
}

// ID is what the machine is known by: its serial number, else its UUID.
func (s Server) ID() string { return cmp.Or(s.Serial, s.UUID) }

func (s *Server) add(text string) error {
	mac, ok, err := cardMAC(text)
	if ok && !slices.Contains(s.MACs, mac) {
		s.MACs = append(s.MACs, mac)
	}
	return err
}

// ScrapeXMLData asks an iLO for the page that it shows to anyone,
// /xmldata?item=All. iLO 3 shows no network cards there.
func ScrapeXMLData(ctx context.Context, s *Site) (Server, error) {
	anonymous := *s
	anonymous.User, anonymous.Password = "", "" // it is not asked for
	data, err := anonymous.fetch(ctx, http.MethodGet, "/xmldata?item=All", nil)
	if err != nil {
		return Server{}, err
	}
	server, err := ParseXMLData(data)
	if err != nil {
		return Server{}, fmt.Errorf("%s: %w", s.Address, err)
	}
	return server, nil
}

// ScrapeRedfish asks an iLO 4, 5 or 6 over Redfish.
func ScrapeRedfish(ctx context.Context, s *Site) (Server, error) {
	at, t, err := s.system(ctx)
	if err != nil {
		return Server{}, err
	}
	server := Server{
		Serial: t.get("SerialNumber").text(), UUID: strings.ToLower(t.get("UUID").text()), Product: t.get("Model").text(),
	}
	server.Power, _ = parseState(powerWord(t))
	if server.ID() == "" {
		return Server{}, fmt.Errorf("%w: %s%s has neither a serial number nor a UUID", ErrUnreadable, s.Address, at)
	}
	if err := s.cards(ctx, at, t, &server); err != nil {
		return Server{}, err
	}
	return server, nil
}

// system finds the computer system behind a Redfish service.
func (s *Site) system(ctx context.Context) (at string, t tree, err error) {
	links, err := s.collection(ctx, "/redfish/v1/Systems/")
	switch {
	case err != nil:
		return "", tree{}, err
	case len(links) != 1:
		return "", tree{}, fmt.Errorf("%w: %s has %d systems, want one", ErrUnreadable, s.Address, len(links))
	}
	err = s.call(ctx, http.MethodGet, links[0], nil, &t)
	return links[0], t, err
}

// cards gathers the MACs. iLO 5 and 6 have a collection of interfaces (1.10 put
// the link to it among the vendor's), iLO 4 has adapters with ports and a list
// of all MACs. The managers' interfaces, which are the iLO's own, are in other
// places.
func (s *Site) cards(ctx context.Context, at string, t tree, server *Server) error {
	for _, m := range t.get("HostCorrelation", "HostMACAddress").list() {
		if err := server.add(m.text()); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrUnreadable, s.Address, err)
		}
	}
	for _, c := range []struct{ link, fallback string }{
		{cmp.Or(
			t.get("EthernetInterfaces").link(),
			t.get("Oem", "Hpe", "Links", "EthernetInterfaces").link(),
			t.get("Oem", "Hpe", "EthernetInterfaces").link(),
		), ""},
		{cmp.Or(
			t.get("Oem", "Hp", "links", "NetworkAdapters").link(),
			t.get("Oem", "Hp", "Links", "NetworkAdapters").link(),
		), strings.TrimSuffix(at, "/") + "/NetworkAdapters/"},
	} {
		if c.link == "" && len(server.MACs) > 0 {
			continue
		}
		link := cmp.Or(c.link, c.fallback)
		if link == "" {
			continue
		}
		if err := s.cardsOf(ctx, link, server); err != nil && !errors.Is(err, errMissing) {
			return err
		}
	}
	return nil
}

func (s *Site) cardsOf(ctx context.Context, at string, server *Server) error {
	links, err := s.collection(ctx, at)
	if err != nil {
		return err
	}
	for _, link := range links {
		var t tree
		if err := s.call(ctx, http.MethodGet, link, nil, &t); err != nil {
			return err
		}
		texts := []string{cmp.Or(t.get("PermanentMACAddress").text(), t.get("MACAddress").text())}
		for _, port := range t.get("PhysicalPorts").list() {
			texts = append(texts, port.get("MacAddress").text())
		}
		for _, text := range texts {
			if err := server.add(text); err != nil {
				return fmt.Errorf("%w: %s%s: %w", ErrUnreadable, s.Address, link, err)
			}
		}
	}
	return nil
}
