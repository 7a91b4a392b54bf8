#!/bin/sh
# Makes this machine host {{.Name}} of cluster {{.Cluster}}: install.sh
# [auto|resolved|dnsmasq|plain|none], the resolver to set up. Run it again after each
# new bundle. {{.Dir}}/uninstall.sh undoes it.
set -eu
cd "$(dirname "$0")"
dir={{.Dir}}
if [ "$(id -u)" != 0 ]; then
	echo "run it as root" >&2
	exit 1
fi
mkdir -p /usr/local/bin
for program in flanneld kube-proxy drover; do
	if [ -e bin/$program ]; then
		cp bin/$program /usr/local/bin/$program.new
		chmod 755 /usr/local/bin/$program.new
		mv /usr/local/bin/$program.new /usr/local/bin/$program
		installed="${installed:-} $program"
	fi
done
for program in /usr/local/bin/flanneld /usr/local/bin/kube-proxy{{if .Expose}} /usr/local/bin/drover{{end}} curl ip {{if .NFTables}}nft{{else}}iptables{{end}}; do
	if ! command -v $program > /dev/null; then
		echo "this host has no $program: install it (drover host bundle --program brings flanneld, kube-proxy and drover)" >&2
		exit 1
	fi
done
umask 077
mkdir -p /etc/drover-host $dir
for file in kubeconfig token; do
	cp $file $dir/$file.new
	chmod 600 $dir/$file.new
	mv $dir/$file.new $dir/$file
done
for file in host.json net-conf.json ca.crt; do
	cp $file $dir/$file
done
for file in uninstall.sh renew.sh resolver.sh; do
	cp $file $dir/$file
	chmod 755 $dir/$file
done
if [ -n "${installed:-}" ]; then
	echo $installed > $dir/programs
fi
umask 022
for unit in flanneld.service kube-proxy.service; do
	cp $unit /etc/systemd/system/drover-${unit%.service}-{{.Cluster}}.service
done
for unit in $(cat $dir/proxies 2> /dev/null); do
	systemctl disable $unit
	systemctl stop $unit
	rm -f /etc/systemd/system/$unit
done
proxies="{{range .Expose}}{{$.ProxyUnit .}} {{end}}"
for unit in $proxies; do
	cp $unit /etc/systemd/system/$unit
done
echo $proxies > $dir/proxies
cp renew.service /etc/systemd/system/drover-host-renew-{{.Cluster}}.service
cp renew.timer /etc/systemd/system/drover-host-renew-{{.Cluster}}.timer
systemctl daemon-reload
$dir/resolver.sh add "${1:-auto}"
for unit in drover-flanneld-{{.Cluster}}.service drover-kube-proxy-{{.Cluster}}.service drover-host-renew-{{.Cluster}}.timer $proxies; do
	systemctl enable $unit
	systemctl restart $unit
done
echo "host {{.Name}} is in cluster {{.Cluster}}: pods reach it at {{.PodCIDR.Addr}}"
