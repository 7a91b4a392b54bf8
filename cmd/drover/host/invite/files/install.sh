#!/bin/sh
# Makes this machine host {{.Name}} of its cluster. All of it is read before any of it runs.
main() {
	set -eu
	if [ "$(id -u)" != 0 ]; then
		echo "run it as root; the link is used up, drover host invite makes another" >&2
		exit 1
	fi
	umask 077
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	curl -fsSk -K - --pinnedpubkey '{{.Pin}}' -o "$dir/bundle.tar" '{{.URL}}/bundle' <<-END
		header = "Authorization: Bearer {{.Token}}"
	END
	tar -xf "$dir/bundle.tar" -C "$dir"
	"$dir/{{.Name}}/install.sh" "$@" < /dev/null
}
main "$@"
