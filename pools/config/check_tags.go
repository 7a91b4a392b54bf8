package config

import (
	"cmp"
	"fmt"
	"strings"

	"drover/pools"
	"drover/pools/config/mistake"
	"drover/pools/kubelet"
	"drover/pools/option"
)

// maxKernelArgs bounds kernelArgs, in bytes; the kernel accepts 2048 on x86, and drover's
// own arguments need 400.
const maxKernelArgs = 1500

func (c *checker) tagList() {
	c.tags = keys(c.cfg.Tags)
	for _, name := range c.tags {
		path := "tags." + name
		about := fmt.Sprintf("tag %q", name)
		if !c.syntax.qualified.MatchString(name) {
			c.failf(path, "use letters, digits, '-', '_' and '.'", "%q cannot be the name of a tag", name)
		}
		t := c.cfg.Tags[name]
		c.tagBoot(path, about, t)
		c.tagFirmware(path, about, t)
		c.settings.Check(t, func(field string, err error) { c.report(path+"."+field, about, err) })
		c.tagKubernetes(path, about, t)
	}
}

func (c *checker) tagBoot(path, about string, t pools.Tag) {
	for _, w := range t.KernelArgs.Args {
		c.report(path+".kernelArgs", about, kernelArg(w))
	}
	c.report(path+".kernelArgs", about, kernelQuotes(t.KernelArgs.Args))
	if n := len(strings.Join(t.KernelArgs.Args, " ")); n > maxKernelArgs {
		c.failf(path+".kernelArgs", "the kernel takes 2048 in all", "%s: kernelArgs are %d bytes, more than %d", about, n, maxKernelArgs)
	}
	c.dhcpOptions(t.DHCPOptions, about, func(key, hint, format string, args ...any) {
		c.failf(path+".dhcpOptions."+key, hint, format, args...)
	})
	for i, r := range t.Loaders.Items {
		c.loaderRule(fmt.Sprintf("%s.loaders[%d]", path, i), about, r)
	}
}

// dhcpOptions checks the DHCP options of a tag or node. fail reports a mistake of a key.
func (c *checker) dhcpOptions(options map[string]pools.Strings, about string, fail func(key, hint, format string, args ...any)) {
	option.Check(options, func(key, hint string, err error) {
		fail(key, cmp.Or(hint, mistake.Hint(key, option.Names(), "give its number from 1 to 254")), "%s: %v", about, err)
	})
}

func (c *checker) loaderRule(path, about string, r pools.LoaderRule) {
	c.match(path, about+": loader rule", r.Match())
	if r.Server.IsValid() && !r.Server.Is4() {
		c.failf(path+".server", "loaders are fetched over IPv4", "%s: loader rule: server %s is not an IPv4 address", about, r.Server)
	}
	if r.Loader == "" {
		if !c.isSet(path + ".loader") {
			c.failf(path, "loader: shimx64.efi", "%s: a loader rule names no loader", about)
		}
		return
	}
	c.report(path+".loader", about+": loader", loaderName(r.Loader))
}

// tagFirmware checks the U-Boot settings of a tag.
func (c *checker) tagFirmware(path, about string, t pools.Tag) {
	if fdt := t.UBoot.FDT; fdt != "" {
		c.report(path+".uboot.fdt", about+": uboot.fdt", loaderName(fdt))
		if strings.Contains(fdt, "://") {
			c.failf(path+".uboot.fdt", "name a file of the loaders directory", "%s: uboot.fdt: %q is a URL, U-Boot fetches it by TFTP", about, fdt)
		}
	}
}

func (c *checker) tagKubernetes(path, about string, t pools.Tag) {
	for _, key := range keys(t.Labels) {
		at := path + ".labels." + key
		c.report(at, about, c.syntax.labelKey(key))
		c.report(at, about+": label "+key, c.syntax.labelValue(t.Labels[key]))
	}
	for i, taint := range t.Taints.Items {
		at := fmt.Sprintf("%s.taints[%d]", path, i)
		c.report(at, about+": taint", c.syntax.labelKey(taint.Key))
		c.report(at, about+": taint "+taint.Key, c.syntax.labelValue(taint.Value))
		c.report(at, about+": taint "+taint.Key, oneOf("effect", taint.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute"))
	}
	for _, flag := range keys(t.KubeletArgs) {
		at := path + ".kubeletArgs." + flag
		c.report(at, about, kubelet.CheckArg(flag, t.KubeletArgs[flag]))
	}
}
