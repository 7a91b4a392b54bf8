package script

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"drover/pools"
)

// dialect is the language of a boot script.
type dialect string

const (
	ipxe     dialect = "ipxe"
	grub     dialect = "grub"
	pxelinux dialect = "pxelinux" // also extlinux' and U-Boot's
	uboot    dialect = "uboot"    // U-Boot's shell

	raspberryPi dialect = "raspberrypi" // config.txt and cmdline.txt
)

// maxCommandLine is the longest command line that Linux reads on x86 and arm64,
// in bytes: COMMAND_LINE_SIZE less its NUL. Linux cuts off the rest silently.
const maxCommandLine = 2048 - len("\x00")

// before returns the text that the boot program puts before the command line.
func (d dialect) before(kernel string) string {
	switch d {
	case ipxe:
		return "kernel " // the name of the kernel, on UEFI
	case grub, pxelinux: // only the real PXELINUX: U-Boot adds nothing
		return "BOOT_IMAGE=" + kernel + " "
	case raspberryPi: // clocks, serial ports, addresses: some 300 bytes, more in later versions
		return strings.Repeat(" ", 512)
	}
	return ""
}

// commandLine returns the kernel command line of a boot, quoted for the script. The
// operator's words come first, since the last of repeated words counts. drover's words
// come before "--", since drover-init reads nothing after it.
func (r *Renderer) commandLine(s *script, d dialect, boot issuedBoot, rescue bool) (string, error) {
	if !isHex(boot.nonce, 16, 256) {
		return "", errors.New("the nonce of the boot is not made of hex digits")
	}
	if !isHex(boot.image.Squashfs.SHA256, 64, 64) {
		return "", fmt.Errorf("the digest of image %q is not a sha256", s.Image)
	}
	words, err := d.words(s.KernelArgs)
	if err != nil {
		return "", err
	}
	var own []string
	if d == ipxe {
		own = append(own, "initrd=initrd") // on UEFI, Linux loads the initrd that its command line names
	}
	if d != pxelinux {
		// U-Boot is limited to 512 bytes on many boards, and drover.mac has the MAC.
		own = append(own, "BOOTIF=01-"+s.MAC.Dashed())
	}
	own = append(own,
		"drover.url="+s.Base,
		"drover.mac="+s.MAC.String(),
		"drover.nonce="+boot.nonce,
		"drover.image=sha256:"+boot.image.Squashfs.SHA256,
		"drover.root="+boot.dir+SquashfsFile,
	)
	if also := s.also(); also != "" {
		own = append(own, "drover.also="+also)
	}
	if secure := r.advertised(s.Plan, netip.Addr{}).SecureURL; secure != "" && r.Pin != "" {
		own = append(own, "drover.https="+secure, "drover.pin="+r.Pin)
	}
	if rescue {
		own = append(own, "drover.rescue=1")
	}
	if s.DebugShell != "" && s.DebugShell != pools.ShellNever {
		own = append(own, "drover.debug="+string(s.DebugShell))
	}
	end := slices.Index(words, "--")
	if end < 0 {
		end = len(words)
	}
	words = slices.Insert(words, end, own...)
	line := strings.Join(words, " ")
	if n, most := len(line)+2*spaced(words), maxCommandLine-len(d.before(s.Kernel)); n > most {
		return "", fmt.Errorf("the kernel command line has %d bytes, Linux takes %d: shorten kernelArgs", n, most)
	}
	if d == grub { // it interprets nothing within single quotes
		return "'" + strings.Join(words, "' '") + "'", nil
	}
	return line, nil
}

// spaced counts the words that contain a space. GRUB puts quotes around each.
func spaced(words []string) (n int) {
	for _, w := range words {
		if strings.Contains(w, " ") {
			n++
		}
	}
	return n
}

// words splits kernel arguments as the boot program does. It refuses an argument that
// would not reach the kernel unchanged.
func (d dialect) words(args []string) ([]string, error) {
	var words []string
	for _, arg := range args {
		for word := range strings.SplitSeq(arg, " ") {
			if why := d.whyNot(word); why != "" {
				return nil, fmt.Errorf("kernel argument %q cannot be passed on: %s", arg, why)
			}
			words = append(words, word)
		}
	}
	if d == grub {
		return unquote(words)
	}
	return words, nil
}

// whyNot returns the reason why a word would not reach the kernel unchanged, or empty.
func (d dialect) whyNot(word string) string {
	switch {
	case word == "":
		return "many spaces become one"
	case strings.ContainsFunc(word, func(r rune) bool { return r < 0x21 || r > 0x7e }):
		return "only printable ASCII reaches the kernel"
	case d == ipxe:
		return whyNotIPXE(word)
	case d == raspberryPi: // passes on the line as it is
		return ""
	case strings.Contains(word, `\`), strings.Contains(word, "'"):
		// GRUB puts a backslash before both, U-Boot removes both.
		return "the loader changes backslashes and single quotes"
	case d == pxelinux && strings.Contains(word, "$"):
		return `U-Boot expands "$"`
	}
	return ""
}

func whyNotIPXE(word string) string {
	switch {
	case strings.Contains(word, "${"):
		return `iPXE expands "${"`
	case word[0] == '#':
		return `"#" begins a comment in iPXE`
	case word == "||", word == "&&", word == ";":
		return "it ends a command in iPXE"
	}
	return ""
}

// unquote joins the words between double quotes and removes the quotes. GRUB puts a
// backslash before a quote in a word, and quotes around a word with a space. The kernel
// reads "key=two words" like key="two words".
func unquote(words []string) (out []string, err error) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		for strings.Count(word, `"`)%2 == 1 && i+1 < len(words) {
			i++
			word += " " + words[i]
		}
		bare := word
		if key, value, ok := strings.Cut(word, "="); ok && len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
			bare = key + "=" + value[1:len(value)-1]
		} else if len(word) > 1 && word[0] == '"' && word[len(word)-1] == '"' {
			bare = word[1 : len(word)-1]
		}
		if strings.Contains(bare, `"`) {
			return nil, fmt.Errorf("kernel argument %q cannot be passed on: GRUB passes on quotes only around a value or a whole word", word)
		}
		out = append(out, bare)
	}
	return out, nil
}
