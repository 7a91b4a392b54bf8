package redfish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"drover/hardware/bmc"
	"drover/pools"
)

// Server is a machine with an iLO of its own.
type Server struct {
	Serial  string      `json:"serial,omitempty"`
	UUID    string      `json:"uuid,omitempty"` // lower case; the firmware sends it as DHCP option 97
	Product string      `json:"product,omitempty"`
	MACs    []pools.MAC `json:"macs"` // of the machine, never of the iLO
}

// ID returns the serial number of the machine, or its UUID when there is none.
func (s Server) ID() string { return cmp.Or(s.Serial, s.UUID) }

func (s *Server) add(text string) error {
	mac, ok, err := bmc.CardMAC(text)
	if len(s.MACs) == bmc.MaxCards {
		return fmt.Errorf("more than %d network cards", bmc.MaxCards)
	}
	if ok && !slices.Contains(s.MACs, mac) {
		s.MACs = append(s.MACs, mac)
	}
	return err
}

// XMLData reads the page /xmldata?item=All of an iLO, which needs no login. The page of
// iLO 3 has no network cards.
func (s *Client) XMLData(ctx context.Context) (Server, error) {
	anonymous := *s
	anonymous.User, anonymous.Password = "", ""
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

// Server reads the machine of an iLO 4, 5 or 6 over Redfish.
func (s *Client) Server(ctx context.Context) (server Server, err error) {
	err = bmc.ReadInventory(ctx, s.Login, func(ctx context.Context) (err error) {
		server, err = s.server(ctx)
		return err
	})
	return server, err
}

func (s *Client) server(ctx context.Context) (Server, error) {
	at, t, err := s.system(ctx, "")
	if err != nil {
		return Server{}, err
	}
	server := Server{
		Serial: t.Get("SerialNumber").Text(), UUID: strings.ToLower(t.Get("UUID").Text()), Product: t.Get("Model").Text(),
	}
	if server.ID() == "" {
		return Server{}, fmt.Errorf("%w: %s%s has neither a serial number nor a UUID", bmc.ErrUnreadable, s.Address, at)
	}
	if err := s.cards(ctx, at, t, &server); err != nil {
		return Server{}, err
	}
	return server, nil
}

// cards collects the MACs of the machine. iLO 5 and 6 have a collection of interfaces;
// firmware 1.10 has the link to it in the vendor's fields. iLO 4 has adapters with ports,
// and a list of all MACs. The interfaces of the iLO itself are in other collections.
func (s *Client) cards(ctx context.Context, at string, t Tree, server *Server) error {
	for _, m := range t.Get("HostCorrelation", "HostMACAddress").List() {
		if err := server.add(m.Text()); err != nil {
			return fmt.Errorf("%w: %s: %w", bmc.ErrUnreadable, s.Address, err)
		}
	}
	for _, c := range []struct{ link, fallback string }{
		{cmp.Or(
			t.Get("EthernetInterfaces").link(),
			t.Get("Oem", "Hpe", "Links", "EthernetInterfaces").link(),
			t.Get("Oem", "Hpe", "EthernetInterfaces").link(),
		), ""},
		{cmp.Or(
			t.Get("Oem", "Hp", "links", "NetworkAdapters").link(),
			t.Get("Oem", "Hp", "Links", "NetworkAdapters").link(),
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

func (s *Client) cardsOf(ctx context.Context, at string, server *Server) error {
	links, err := s.Collection(ctx, at)
	if err != nil {
		return err
	}
	for _, link := range links {
		t, err := s.Get(ctx, link)
		if err != nil {
			return err
		}
		texts := []string{cmp.Or(t.Get("PermanentMACAddress").Text(), t.Get("MACAddress").Text())}
		for _, port := range t.Get("PhysicalPorts").List() {
			texts = append(texts, port.Get("MacAddress").Text())
		}
		for _, text := range texts {
			if err := server.add(text); err != nil {
				return fmt.Errorf("%w: %s%s: %w", bmc.ErrUnreadable, s.Address, link, err)
			}
		}
	}
	return nil
}
