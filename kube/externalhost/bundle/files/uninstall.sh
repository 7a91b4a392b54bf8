#!/bin/sh
# Takes host {{.Name}} out of cluster {{.Cluster}}: units, interface, routes, rules,
# resolver, credentials.
set -u
dir={{.Dir}}
proxies=$(cat $dir/proxies 2> /dev/null)
for unit in $proxies drover-host-renew-{{.Cluster}}.timer drover-kube-proxy-{{.Cluster}}.service drover-flanneld-{{.Cluster}}.service; do
	systemctl disable $unit
	systemctl stop $unit
done
{{if .NFTables -}}
for family in ip ip6; do
	nft delete table $family kube-proxy 2> /dev/null
done
nft delete table ip flannel-ipv4 2> /dev/null
nft delete table ip6 flannel-ipv6 2> /dev/null
{{else -}}
/usr/local/bin/kube-proxy --cleanup 2> /dev/null
# It leaves a chain that kubelets have, too.
for iptables in iptables ip6tables; do
	for chain in INPUT OUTPUT; do
		$iptables -D $chain -j KUBE-FIREWALL 2> /dev/null
	done
	$iptables -F KUBE-FIREWALL 2> /dev/null
	$iptables -X KUBE-FIREWALL 2> /dev/null
done
{{end -}}
ip link delete {{.Interface}} 2> /dev/null
[ ! -e $dir/resolver.sh ] || $dir/resolver.sh remove
rm -f /etc/systemd/system/drover-flanneld-{{.Cluster}}.service /etc/systemd/system/drover-kube-proxy-{{.Cluster}}.service \
	/etc/systemd/system/drover-host-renew-{{.Cluster}}.service /etc/systemd/system/drover-host-renew-{{.Cluster}}.timer \
	/run/drover-host-{{.Cluster}}.env
for unit in $proxies; do
	rm -f /etc/systemd/system/$unit
done
systemctl daemon-reload
programs=$(cat $dir/programs 2> /dev/null)
rm -rf $dir
rmdir /etc/drover-host 2> /dev/null && for program in $programs; do
	rm -f /usr/local/bin/$program
done
echo "host {{.Name}} is out of cluster {{.Cluster}}; drover host rm {{.Name}} removes its Node"
