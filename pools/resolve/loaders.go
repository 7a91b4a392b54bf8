package resolve

import "drover/pools"

// NeedLoaders returns a kind of firmware for each loader that machines need which boot images
// of these platforms, such as linux/amd64. The empty platform, of an image that is missing,
// counts as x86-64.
func NeedLoaders(platforms map[string]bool) (all []pools.Firmware) {
	if platforms["linux/amd64"] || platforms[""] {
		all = append(all, pools.BIOS, pools.UEFIx64)
	}
	if platforms["linux/arm64"] {
		all = append(all, pools.UEFIarm64)
	}
	return all
}
