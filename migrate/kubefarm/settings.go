package kubefarm

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"drover/migrate"
	"drover/pools"
)

func pairsOf(v *migrate.Value) []migrate.Pair {
	if v == nil {
		return nil
	}
	return v.Pairs
}

// settings are the readers of LTSP's settings, by name, or by the begin of the name that
// ends in _.
func (r *reader) settings() map[string]func(tag string, v *migrate.Value) {
	return map[string]func(tag string, v *migrate.Value){
		"KERNEL_PARAMETERS": r.kernelArgs, "MENU_TIMEOUT": r.menuTimeout, "DEBUG_SHELL": r.debugShell,
		"FSTAB_": r.fstab, "CRONTAB_": r.cron, "HOSTS_": r.hosts, "DNS_SERVER": r.dns, "SEARCH_DOMAIN": r.search,
		"KUBELET_EXTRA_ARGS_": r.kubeletArgs, "KUBERNETES_LABELS_": r.labelText, "KUBERNETES_TAINTS_": r.taintText,
		"MASK_SYSTEM_SERVICES": r.maskServices,
		"DEFAULT_IMAGE": func(_ string, v *migrate.Value) {
			r.farm.Lost(v.Origin, "the image is the pool's: give machines with another image a pool of their own")
		},
		"HOSTNAME": func(_ string, v *migrate.Value) {
			r.farm.Lost(v.Origin, "the host name is the node's name; drover names unknown machines after their MAC, node-525400123456")
		},
		"TIMEZONE": func(tag string, v *migrate.Value) {
			r.tag(tag).Timezone = v.String()
			r.farm.Taken(v.Origin, inTag(tag, "timezone"), v.String())
		},
	}
}

// others are settings of LTSP about desktops, and about its own programs.
const others = `ADD_IMAGE_EXCLUDES AUTOLOGIN RELOGIN GDM3_CONF LIGHTDM_CONF SDDM_CONF SLICK_CONF BACKGROUND_MAIL BASE_DIR CUPS_SERVER
	DEBUG_LOG DISABLE_SESSION_SERVICES DISABLE_SYSTEM_SERVICES DISPLAY_MANAGER HOME_DIR IGNORE_EPOPTES IMAGE IMAGE_TO_RAM INCLUDE
	KEEP_SESSION_SERVICES KEEP_SYSTEM_SERVICES LIGHTDM_ LOCAL_SWAP LTSPDM_USERS MASK_SESSION_SERVICES MENU MULTISEAT OVERLAY UDEV_SEAT_ NAT NFS_HOME OMIT_FUNCTIONS OMIT_IMAGE_EXCLUDES PASSWORDS_ PWMERGE_ REMOTEAPPS SSH_OPTIONS SSH_SERVER
	OVERWRITE_SSHFS_SERVER RPI_IMAGE IPXE_ GRUB_ X_ XORG_ CONSOLE KEYBOARD LANG LOCALE SOUND_ HTTP_ TFTP_DIR TFTP_ BLACKLIST_MODULES SERVER LTSP_`

// variable is the name of a variable of a shell.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// setting reads one setting of LTSP.
func (r *reader) setting(tag, key string, v *migrate.Value) {
	switch {
	case !variable.MatchString(key):
		r.farm.Unknown(v.Origin, "%q is no name of a setting (quote values with commas)", key)
		return
	case !v.IsPlain() && !v.IsNull():
		r.farm.Unknown(v.Origin, "a text is expected here")
		return
	case v.String() == "":
		r.empty(tag, key, v)
		return
	}
	r.overridden(tag, key, v)
	if strings.Contains(key, "_") && r.hook(tag, key, v, "") {
		return
	}
	for prefix, read := range r.settings() {
		rest, is := strings.CutPrefix(key, prefix)
		if is && (rest == "" && !strings.HasSuffix(prefix, "_") || rest != "" && strings.HasSuffix(prefix, "_")) {
			read(tag, v)
			return
		}
	}
	if slices.ContainsFunc(strings.Fields(others), func(o string) bool {
		return o == key || strings.HasSuffix(o, "_") && strings.HasPrefix(key, o)
	}) {
		r.farm.Lost(v.Origin, "a setting of LTSP about desktops or its own programs, which a node of drover does not run")
		return
	}
	set(&r.tag(tag).Env, key, v.String())
	r.farm.TakenSecret(v.Origin, inTag(tag, "env."+key)+"; a variable for scripts, LTSP has no setting of that name", v.String())
}

// kernelArgs reads kernel arguments. There those of a tag replace those of all nodes.
func (r *reader) kernelArgs(tag string, v *migrate.Value) {
	t := r.tag(tag)
	for word := range strings.FieldsSeq(v.String()) {
		if strings.Contains(word, "${") || strings.ContainsAny(word, `\'$`) {
			r.farm.Lost(v.Origin, "kernel argument %q has characters that loaders change", word)
			continue
		}
		t.KernelArgs.Args = append(t.KernelArgs.Args, word)
	}
	if before := r.before(tag, "KERNEL_PARAMETERS"); len(before) > 0 {
		t.KernelArgs.Replace = true
		r.farm.Bug(v.Origin, "a tag's kernel arguments replaced those of %s, and do so here: write kernelArgs without replace to add them", strings.Join(before, " and "))
		r.farm.Comment("Replaces those of all nodes and of tags before, as there; without replace they add.", "tags", migrate.TagName(tag), "kernelArgs")
	}
	r.farm.TakenSecret(v.Origin, inTag(tag, "kernelArgs"), anys(t.KernelArgs.Args)...)
}

// menuTimeout reads seconds, as GRUB does. LTSP's manual has milliseconds, those of iPXE.
func (r *reader) menuTimeout(tag string, v *migrate.Value) {
	text := v.String()
	if n, err := strconv.Atoi(text); err == nil && n >= 1000 {
		text = strconv.Itoa(n / 1000)
		r.farm.Bug(v.Origin, "GRUB waited for %d seconds there; here they are milliseconds, as in LTSP's manual", n)
	}
	var s pools.Seconds
	if err := s.UnmarshalText([]byte(text)); err != nil {
		r.farm.Unknown(v.Origin, "%q is no number of seconds", v.String())
		return
	}
	r.tag(tag).MenuTimeout = &s
	r.farm.Taken(v.Origin, inTag(tag, "menuTimeout")+"; in seconds", text)
}

// fstab reads a line of fstab.
func (r *reader) fstab(tag string, v *migrate.Value) {
	f := strings.Fields(v.String())
	if len(f) < 3 {
		r.farm.Unknown(v.Origin, "want a line of fstab: SOURCE PATH TYPE OPTIONS")
		return
	}
	m := pools.Mount{Path: f[1], Type: f[2], Options: append(f, "")[3]}
	if f[0] != f[2] { // tmpfs has no source
		m.Source = f[0]
	}
	t, remark := r.tag(tag), ""
	if t.Mounts.Items = append(t.Mounts.Items, m); m.Type == "tmpfs" && !strings.Contains(m.Options, "size=") {
		remark = "; without size= it may take half of the memory"
	}
	r.farm.Taken(v.Origin, inTag(tag, "mounts")+remark, m.Path, m.Type)
}

// flag is an argument of a program: --name=value or --name value.
var flag = regexp.MustCompile(`--?([a-z][a-z0-9-]*)(?:[= ]([^ -][^ ]*))?`)

func (r *reader) kubeletArgs(tag string, v *migrate.Value) {
	for _, m := range flag.FindAllStringSubmatch(v.String(), -1) {
		name, value := m[1], m[2]
		switch name {
		case "node-labels":
			r.labelList(tag, v, value)
		case "register-with-taints":
			r.taintList(tag, v, value)
		case "hostname-override", "kubeconfig", "bootstrap-kubeconfig", "config", "register-node":
			r.farm.Lost(v.Origin, "kubelet argument %s: the join sets it", name)
		default:
			set(&r.tag(tag).KubeletArgs, name, cmp.Or(value, "true"))
		}
	}
	r.farm.Taken(v.Origin, inTag(tag, "kubeletArgs"))
}

func (r *reader) labelText(tag string, v *migrate.Value) { r.labelList(tag, v, v.String()) }
func (r *reader) taintText(tag string, v *migrate.Value) { r.taintList(tag, v, v.String()) }

// labelList reads a=b,c=d.
func (r *reader) labelList(tag string, v *migrate.Value, text string) {
	for pair := range strings.SplitSeq(text, ",") {
		if key, value, _ := strings.Cut(strings.TrimSpace(pair), "="); key != "" {
			set(&r.tag(tag).Labels, key, value)
		}
	}
	r.farm.Taken(v.Origin, inTag(tag, "labels"))
}

// taintList reads key=value:effect,key:effect.
func (r *reader) taintList(tag string, v *migrate.Value, text string) {
	t := r.tag(tag)
	for item := range strings.SplitSeq(text, ",") {
		what, effect, ok := strings.Cut(strings.TrimSpace(item), ":")
		key, value, _ := strings.Cut(what, "=")
		if !ok || key == "" {
			r.farm.Unknown(v.Origin, "%q is no taint", item)
			continue
		}
		t.Taints.Items = append(t.Taints.Items, pools.Taint{Key: key, Value: value, Effect: effect})
	}
	r.farm.Taken(v.Origin, inTag(tag, "taints"))
}

// maskServices reads services to mask. The chart leaves out the part of LTSP that masks them.
func (r *reader) maskServices(tag string, v *migrate.Value) {
	if r.root.Get("ltsp", "config", "options", "OMIT_FUNCTIONS") == nil {
		r.farm.Bug(v.Origin, "nothing was masked there: the chart's OMIT_FUNCTIONS has mask_services_main; here the units are masked")
	}
	names := strings.Fields(v.String())
	for i, name := range names {
		if !strings.Contains(name, ".") {
			names[i] += ".service"
		}
	}
	r.mask(tag, v, names...)
}

// mask keeps units from starting.
func (r *reader) mask(tag string, v *migrate.Value, names ...string) {
	t := &r.tag(tag).MaskUnits
	t.Items = append(t.Items, names...)
	r.farm.Taken(v.Origin, inTag(tag, "maskUnits"), anys(names)...)
}

// rootPassword writes the hash of root's password. Anyone could read it there.
func (r *reader) rootPassword(v *migrate.Value) {
	hash := v.String()
	if hash == "" {
		return
	}
	if !pools.IsPasswordHash(hash) {
		r.farm.Unknown(v.Origin, "that is no hash of a password (openssl passwd -6 makes one)")
		return
	}
	r.tag(allTag).RootPasswordHash.Text = hash
	r.farm.TakenSecret(v.Origin, "tags.all.rootPasswordHash; which nodes get sealed; there anyone could read it (kubefarm also let root log in by password over SSH: that takes a file in /etc/ssh/sshd_config.d)", hash)
}

// debugShell reads whether a boot that fails gets a shell.
func (r *reader) debugShell(tag string, v *migrate.Value) {
	t := r.tag(tag)
	t.DebugShell = pools.ShellNever
	if v.Is() {
		t.DebugShell = pools.ShellOnFailure
	}
	r.farm.Taken(v.Origin, inTag(tag, "debugShell"), t.DebugShell)
}

// cron adds a line of crontab with a user.
func (r *reader) cron(tag string, v *migrate.Value) {
	t := &r.tag(tag).Cron
	t.Items = append(t.Items, v.String())
	r.farm.TakenSecret(v.Origin, inTag(tag, "cron"), v.String())
}

// hosts adds a line of /etc/hosts.
func (r *reader) hosts(tag string, v *migrate.Value) {
	words := strings.Fields(v.String())
	if _, err := netip.ParseAddr(cmp.Or(words...)); err != nil || len(words) < 2 {
		r.farm.Unknown(v.Origin, "want a line of /etc/hosts: ADDRESS NAME")
		return
	}
	t := r.tag(tag)
	for _, name := range words[1:] {
		set(&t.Hosts, name, append(t.Hosts[name], words[0]))
	}
	r.farm.Taken(v.Origin, inTag(tag, "hosts"), anys(words)...)
}

// dns reads name servers, in place of those of DHCP.
func (r *reader) dns(tag string, v *migrate.Value) {
	t := r.tag(tag)
	for _, word := range listed(v) {
		a, err := netip.ParseAddr(word)
		if err != nil {
			r.farm.Unknown(v.Origin, "%q is no address", word)
			return
		}
		t.DNS.Items = append(t.DNS.Items, a)
	}
	t.DNS.Replace = len(r.before(tag, "DNS_SERVER")) > 0
	r.farm.Taken(v.Origin, inTag(tag, "dns"), anys(listed(v))...)
}

// search reads search domains, in place of those of DHCP.
func (r *reader) search(tag string, v *migrate.Value) {
	t := r.tag(tag)
	t.Search.Items = append(t.Search.Items, listed(v)...)
	t.Search.Replace = len(r.before(tag, "SEARCH_DOMAIN")) > 0
	r.farm.Taken(v.Origin, inTag(tag, "search"), anys(listed(v))...)
}

// listed returns the words of a value, separated by blanks or commas.
func listed(v *migrate.Value) []string {
	return strings.Fields(strings.ReplaceAll(v.String(), ",", " "))
}
