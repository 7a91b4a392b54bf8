package kmod

import "strings"

// Args are the module settings of the kernel command line, as modprobe reads them.
type Args struct {
	Options   map[string]string // by module, from MODULE.PARAMETER=VALUE
	Blacklist map[string]bool   // from modprobe.blacklist=A,B
}

// Option adds MODULE.PARAMETER=value. It ignores a key without a module.
func (a *Args) Option(key, value string) {
	name, param, ok := strings.Cut(key, ".")
	if !ok || name == "" || param == "" {
		return
	}
	if a.Options == nil {
		a.Options = map[string]string{}
	}
	name = Name(name)
	word := param + "=" + value
	if strings.ContainsAny(value, " \t") {
		word = param + `="` + value + `"`
	}
	a.Options[name] = strings.TrimPrefix(a.Options[name]+" "+word, " ")
}

// Block adds names of modules, separated by commas, that [Modules.Coldplug] does not
// load.
func (a *Args) Block(names string) {
	if a.Blacklist == nil {
		a.Blacklist = map[string]bool{}
	}
	for name := range strings.SplitSeq(names, ",") {
		a.Blacklist[Name(name)] = true
	}
}
