package kubefarm

import (
	"regexp"
	"strings"

	"drover/migrate"
	"drover/pools"
)

// hook is a place in the boot of LTSP where a node runs shell code of the operator.
type hook struct {
	prefix string      // of its settings, with _ at its end; of a section all of its name
	stage  pools.Stage // that stands for it
	script string      // the begin of the names of its scripts, or all of it
}

// hooks returns those of the programs of LTSP that a node runs: init in place of the root's
// init, initrd-bottom before it, service when the network is online. LTSP runs sections before
// the other hooks of their programs.
func hooks() []hook {
	return []hook{
		{"PRE_INIT_", pools.PreInit, "50-pre-init-"}, {"POST_INIT_", pools.PostInit, "90-post-init-"},
		{"PRE_INITRD_BOTTOM_", pools.Initrd, "10-pre-initrd-bottom-"}, {"POST_INITRD_BOTTOM_", pools.Initrd, "90-post-initrd-bottom-"},
		{"PRE_SERVICE_", pools.Online, "10-pre-service-"}, {"POST_SERVICE_", pools.Online, "90-post-service-"},
		{"init", pools.PostInit, "50-init"}, // behind the settings, as in the chart
		{"initrd-bottom", pools.Initrd, "05-initrd-bottom"}, {"service", pools.Online, "05-service"},
	}
}

// hook reads a setting or a section with shell code. ok is false if it is none.
func (r *reader) hook(tag, key string, v *migrate.Value, end string) (ok bool) {
	for _, h := range hooks() {
		rest, is := strings.CutPrefix(key, h.prefix)
		if is && (rest != "") == strings.HasSuffix(h.prefix, "_") {
			r.script(tag, h.stage, h.script+strings.ToLower(rest), v, end)
			return true
		}
	}
	if ok = strings.HasPrefix(key, "PRE_") || strings.HasPrefix(key, "POST_"); ok {
		r.farm.Lost(v.Origin, "a hook of a program that LTSP runs on its server or at a login (scripts of a node have stages initrd, pre-init, post-init and online)")
	}
	return ok
}

// sections reads shell code for the stages of LTSP.
func (r *reader) sections(v *migrate.Value) {
	for _, p := range v.Pairs {
		if name := strings.Trim(p.Key, "/"); strings.Contains(name, "_") || !r.hook(allTag, name, p.Value, "true # LTSP ignores the result of a section\n") {
			r.farm.Lost(p.Value.Origin, "stage %q of LTSP is not one of a node that drover boots (initrd, pre-init, post-init, online)", p.Key)
		}
	}
}

// script adds shell code as a script of a stage, which has the variables of LTSP. The end is
// more code.
func (r *reader) script(tag string, stage pools.Stage, name string, v *migrate.Value, end string) {
	name = migrate.TagName(name)
	text := v.String()
	if end != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	set(&r.tag(tag).Scripts, name, pools.Script{Stage: stage, Source: true, Run: untemplated(text + end)})
	r.farm.Taken(v.Origin, inTag(tag, "scripts."+name), stage)
	r.functions(v)
}

// call is the call of a function of LTSP's shell.
var call = regexp.MustCompile(`(?m)(?:^|[;&|({]|\b(?:then|do|else)\s)[ \t]*(debug_shell|debug|die|warn|re|rw|rs|rwr|rsr|is_command|echo_values|eval_percent|exit_command)(?:[ \t;]|$)`)

// functions notes calls of functions that only the shell of LTSP has.
func (r *reader) functions(v *migrate.Value) {
	if m := call.FindStringSubmatch(v.String()); m != nil && !strings.Contains(v.String(), m[1]+"()") {
		r.farm.Lost(v.Origin, "%s is a function of LTSP's shell, which no node has (write its command, or define it in the script)", m[1])
	}
}

// untemplated returns a text that a template renders as it is.
func untemplated(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }
