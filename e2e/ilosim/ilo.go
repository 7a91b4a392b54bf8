package ilosim

import (
	"fmt"
	"net/http"
	"strings"
)

// ILO is a server with a management processor of its own. Its power and its
// faults are those of the one node of a chassis inside.
type ILO struct {
	Generation int    // 3 to 6
	Model      string // default ProLiant DL360
	Serial     string
	UUID       string
	MACs       []string
	BMC        string // the processor's own MAC, which is none of the server's

	NoXMLData bool // the page that needs no login is switched off
	Erratum   bool // iLO 5 1.10: the link to the interfaces is among the vendor's

	chassis *Chassis
}

// NewILO returns a server that is off. MACs and serial are made from seed.
func NewILO(generation int, seed byte) *ILO {
	i := &ILO{
		Generation: generation, Model: "ProLiant DL360 Gen9", Serial: fmt.Sprintf("CZ36%02X80J1", seed),
		UUID: fmt.Sprintf("37333036-3831-5A43-%04X-303538304A31", seed), BMC: fmt.Sprintf("9C:8C:6E:FF:FF:%02X", seed),
		chassis: New(seed, 1, 1, 0),
	}
	for n := range 2 {
		i.MACs = append(i.MACs, fmt.Sprintf("9C:8C:6E:%02X:00:%02X", seed, n))
	}
	return i
}

// Chassis returns the chassis that holds the server's power state and faults;
// its node is c1n1.
func (i *ILO) Chassis() *Chassis { return i.chassis }

// Handler returns the iLO's HTTP interface.
func (i *ILO) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /xmldata", i.xmlData)
	if i.Generation >= 4 {
		mux.Handle("/redfish/", i.login(i.redfish()))
	}
	return mux
}

const sessions = "/redfish/v1/SessionService/Sessions/"

// login requires a login for Redfish; xmldata needs none.
func (i *ILO) login(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/") {
			// An iLO requires the slash at the end, and redirects with 308.
			http.Redirect(w, r, r.URL.Path+"/", http.StatusPermanentRedirect)
			return
		}
		if r.URL.Path == "/redfish/v1/" { // needs no login, nor does a new session
			writeJSON(w, http.StatusOK, object{"Links": object{"Sessions": object{"@odata.id": sessions}}})
			return
		}
		if i.chassis.admit(w, r) {
			h.ServeHTTP(w, r)
		}
	})
}

func (i *ILO) xmlData(w http.ResponseWriter, r *http.Request) {
	if i.NoXMLData || !strings.EqualFold(r.URL.Query().Get("item"), "all") {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, `<?xml version="1.0"?><RIMP><HSI><SBSN>%-16s</SBSN><SPN>%s</SPN><UUID>%s</UUID><SP>1</SP><cUUID>%s</cUUID>`+
		`<VIRTUAL><STATE>Inactive</STATE></VIRTUAL>`, i.Serial, i.Model, strings.ReplaceAll(i.UUID, "-", ""), i.UUID)
	if i.Generation >= 4 {
		fmt.Fprintf(w, "<NICS><NIC><PORT>1</PORT><DESCRIPTION>iLO %d</DESCRIPTION><LOCATION>Embedded</LOCATION><MACADDR>%s</MACADDR><IPADDR>10.1.1.1</IPADDR><STATUS>OK</STATUS></NIC>",
			i.Generation, strings.ToLower(i.BMC))
		for n, m := range i.MACs {
			fmt.Fprintf(w, "<NIC><PORT>%d</PORT><DESCRIPTION>HP Ethernet 1Gb 4-port 331i Adapter</DESCRIPTION><LOCATION>Embedded</LOCATION><MACADDR>%s</MACADDR><IPADDR>N/A</IPADDR><STATUS>Unknown</STATUS></NIC>",
				n+1, strings.ToLower(m))
		}
		fmt.Fprint(w, "</NICS>")
	}
	fmt.Fprintf(w, "</HSI><MP><ST>1</ST><PN>Integrated Lights-Out %d (iLO %d)</PN><FWRI>2.10</FWRI></MP></RIMP>", i.Generation, i.Generation)
}

// redfish is the service of iLO 4 to 6, which list network cards in different
// places.
func (i *ILO) redfish() http.Handler {
	mux := http.NewServeMux()
	get := func(path string, v func() object) {
		mux.HandleFunc("GET "+path+"{$}", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, v()) })
	}
	mux.HandleFunc("POST "+sessions+"{$}", i.chassis.openSession)
	mux.HandleFunc("DELETE "+sessions+"{token}/", i.chassis.closeSession)
	get("/redfish/v1/Systems/", func() object {
		return object{"Members": []object{{"@odata.id": "/redfish/v1/Systems/1/"}}}
	})
	get("/redfish/v1/Systems/1/", i.system)
	get("/redfish/v1/Managers/1/EthernetInterfaces/", func() object {
		return object{"Members": []object{{"@odata.id": "/redfish/v1/Managers/1/EthernetInterfaces/1/"}}}
	})
	get("/redfish/v1/Managers/1/EthernetInterfaces/1/", func() object { return object{"MACAddress": i.BMC} })
	if i.Generation == 4 {
		get("/redfish/v1/Systems/1/NetworkAdapters/", func() object {
			return object{"Members": []object{{"@odata.id": "/redfish/v1/Systems/1/NetworkAdapters/1/"}}}
		})
		get("/redfish/v1/Systems/1/NetworkAdapters/1/", func() object {
			var ports []object
			for _, m := range i.MACs {
				ports = append(ports, object{"MacAddress": m})
			}
			return object{"Name": "HP Ethernet 1Gb 4-port 331i Adapter", "PhysicalPorts": ports}
		})
	} else {
		get("/redfish/v1/Systems/1/EthernetInterfaces/", func() object {
			var links []object
			for n := range i.MACs {
				links = append(links, object{"@odata.id": fmt.Sprintf("/redfish/v1/Systems/1/EthernetInterfaces/%d/", n)})
			}
			return object{"Members": links}
		})
		for n, m := range i.MACs {
			get(fmt.Sprintf("/redfish/v1/Systems/1/EthernetInterfaces/%d/", n), func() object {
				if i.chassis.happens(NullMACs) {
					return object{"MACAddress": nil, "PermanentMACAddress": ""}
				}
				return object{"MACAddress": m, "LinkStatus": "LinkUp", "InterfaceEnabled": true}
			})
		}
	}
	mux.HandleFunc("PATCH /redfish/v1/Systems/1/{$}", func(w http.ResponseWriter, r *http.Request) {
		i.chassis.mu.Lock()
		defer i.chassis.mu.Unlock()
		i.chassis.patch(w, r, i.chassis.nodes["c1n1"])
	})
	mux.HandleFunc("POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset/{$}", func(w http.ResponseWriter, r *http.Request) {
		i.chassis.mu.Lock()
		notify := i.chassis.reset(w, r, i.chassis.nodes["c1n1"])
		i.chassis.mu.Unlock()
		notify()
	})
	return mux
}

// system describes the server.
func (i *ILO) system() object {
	i.chassis.mu.Lock()
	defer i.chassis.mu.Unlock()
	v := i.chassis.describe(i.chassis.nodes["c1n1"])
	delete(v, "HostCorrelation")
	v["SerialNumber"], v["UUID"], v["Model"] = i.Serial+" ", i.UUID, i.Model
	reset := "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset/"
	v["Actions"] = object{"#ComputerSystem.Reset": object{"target": reset, "ResetType@Redfish.AllowableValues": []string{"On", "ForceOff", "PushPowerButton"}}}
	boot := v["Boot"].(object)
	boot["BootSourceOverrideTarget@Redfish.AllowableValues"] = boot["BootSourceOverrideSupported"]
	delete(boot, "BootSourceOverrideSupported")
	interfaces := object{"EthernetInterfaces": object{"@odata.id": "/redfish/v1/Systems/1/EthernetInterfaces/"}}
	switch {
	case i.Generation == 4:
		v["Oem"] = object{"Hp": object{"links": object{"NetworkAdapters": object{"href": "/redfish/v1/Systems/1/NetworkAdapters/"}}}}
	case i.Erratum:
		v["Oem"] = object{"Hpe": object{"Links": interfaces}}
	default:
		v["EthernetInterfaces"] = interfaces["EthernetInterfaces"]
	}
	return v
}
