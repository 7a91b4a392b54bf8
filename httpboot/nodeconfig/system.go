package nodeconfig

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drover/internal/unitfile"
	"drover/pools"
	"drover/pools/crontab"
)

// The files of drover's own.
const (
	netplanFile = "/etc/netplan/70-drover.yaml"
	envFile     = "/etc/drover/node.env"
)

// written begins each file that drover makes.
const written = "# Written by drover from the config of the node.\n"

// network adds the operator's network as a file of netplan. It is JSON, which is YAML, too.
// netplan refuses files with secrets that others can read, and warns about the rest.
func (m *making) network(c *pools.NodeConfig) error {
	if len(m.plan.Network) == 0 {
		return nil
	}
	rendered, err := m.render("network", map[string]any(m.plan.Network))
	if err != nil {
		return err
	}
	network := rendered.(map[string]any)
	for key, value := range map[string]string{"version": "2", "renderer": "networkd"} {
		if _, has := network[key]; !has {
			network[key] = value
		}
	}
	text, err := json.MarshalIndent(map[string]any{"network": network}, "", "  ")
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	m.addOwn(c, netplanFile, "0600", written+string(text)+"\n")
	return nil
}

// render executes the templates in the strings of a tree.
func (m *making) render(path string, v any) (any, error) {
	switch v := v.(type) {
	case string:
		text, err := pools.Render(path, v, m.plan)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return text, nil
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = m.render(fmt.Sprintf("%s[%d]", path, i), item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		tree := make(map[string]any, len(v))
		for key, item := range v {
			var err error
			if tree[key], err = m.render(path+"."+key, item); err != nil {
				return nil, err
			}
		}
		return tree, nil
	}
	return v, nil
}

// cron adds a timer and a service of systemd for each line of cron, so that the image needs
// no cron.
func (m *making) cron(c *pools.NodeConfig) error {
	if len(m.plan.Cron) == 0 {
		return nil
	}
	c.Units = maps.Clone(c.Units)
	if c.Units == nil {
		c.Units = map[string]pools.Unit{}
	}
	for _, line := range m.plan.Cron {
		e, err := crontab.Parse(line)
		if err != nil {
			return fmt.Errorf("cron: %w", err)
		}
		name := fmt.Sprintf("drover-cron-%x", sha256.Sum256([]byte(line)))[:len("drover-cron-")+12]
		about := strings.TrimRight(strings.ReplaceAll(line, "%", "%%"), `\ `) // a backslash at its end would continue the line
		service := written + "[Unit]\nDescription=cron: " + about + "\n\n[Service]\nType=oneshot\nUser=" + e.User +
			"\nEnvironmentFile=-" + envFile + "\nExecStart=/bin/sh -c " + unitfile.Quote(e.Command) + "\n"
		if e.Boot {
			c.Units[name+".service"] = pools.Unit{Content: service + "\n[Install]\nWantedBy=multi-user.target\n", Enable: true}
			continue
		}
		timer := written + "[Unit]\nDescription=cron: " + about + "\n\n[Timer]\nAccuracySec=1s\nOnCalendar=" +
			strings.Join(e.Calendar, "\nOnCalendar=") + "\n\n[Install]\nWantedBy=timers.target\n"
		c.Units[name+".service"] = pools.Unit{Content: service}
		c.Units[name+".timer"] = pools.Unit{Content: timer, Enable: true}
	}
	return nil
}

// resolver adds the name servers and search domains of the operator: for the boot network
// card in place of those of DHCP, and for systemd-resolved as a whole, so that they count
// with a network of the operator's own, too.
func (m *making) resolver(c *pools.NodeConfig) {
	var own, dhcp string
	if len(m.plan.DNS) > 0 {
		var servers []string
		for _, a := range m.plan.DNS {
			servers = append(servers, a.String())
		}
		own += "DNS=" + strings.Join(servers, " ") + "\n"
		dhcp += "UseDNS=no\n"
	}
	if len(m.plan.Search) > 0 {
		own += "Domains=" + strings.Join(m.plan.Search, " ") + "\n"
		dhcp += "UseDomains=no\n"
	}
	if own == "" {
		return
	}
	m.addOwn(c, "/etc/systemd/resolved.conf.d/70-drover.conf", "0644", written+"[Resolve]\n"+own)
	m.addOwn(c, pools.BootNetwork+".d/resolver.conf", "0644",
		written+"[Network]\n"+own+"\n[DHCPv4]\n"+dhcp+"\n[DHCPv6]\n"+dhcp+"\n[IPv6AcceptRA]\n"+dhcp)
}

// environment adds the variables of the operator for units: EnvironmentFile= of systemd and
// "." of a shell read them alike.
func (m *making) environment(c *pools.NodeConfig) {
	if len(m.plan.Env) == 0 {
		return
	}
	var text strings.Builder
	text.WriteString(written)
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`)
	for _, name := range slices.Sorted(maps.Keys(m.plan.Env)) {
		fmt.Fprintf(&text, "%s=\"%s\"\n", name, escape.Replace(m.plan.Env[name]))
	}
	m.addOwn(c, envFile, "0644", text.String())
}
