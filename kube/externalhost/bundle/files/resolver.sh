#!/bin/sh
# Has this host resolve names of cluster {{.Cluster}}: resolver.sh add|remove
# [resolved|dnsmasq|plain|none]. Other names go where they went before; with "plain" the
# cluster's DNS answers all names.
set -eu
dir={{.Dir}}
domain={{.Network.Domain}}
dns={{.Network.DNS}}
link={{.Interface}}
kind=${2:-$(cat $dir/resolver 2>/dev/null || echo auto)}
if [ "$kind" = auto ]; then
	kind=plain
	if systemctl -q is-active dnsmasq 2>/dev/null; then kind=dnsmasq; fi
	if systemctl -q is-active systemd-resolved 2>/dev/null; then kind=resolved; fi
fi
echo $kind > $dir/resolver
# keep saves /etc/resolv.conf, before it is changed for the first time.
keep() {
	[ -e $dir/resolv.conf.before ] || cp -L /etc/resolv.conf $dir/resolv.conf.before 2>/dev/null || : > $dir/resolv.conf.before
}
# search prints /etc/resolv.conf with the search list for short names.
search() {
	echo "search default.svc.$domain svc.$domain $domain$(sed -n 's/^search//p' $dir/resolv.conf.before)"
	grep -v '^search' $dir/resolv.conf.before || :
	echo "options ndots:2"
}
restore() {
	[ ! -e $dir/resolv.conf.before ] || cat $dir/resolv.conf.before > /etc/resolv.conf
}
dropin=/etc/systemd/system/drover-flanneld-{{.Cluster}}.service.d/resolver.conf
dnsmasq=/etc/dnsmasq.d/drover-{{.Cluster}}.conf
case $1-$kind in
add-resolved)
	# resolved forgets a link's servers with the link: flanneld's unit sets them.
	mkdir -p "${dropin%/*}"
	cat > $dropin <<END
[Service]
ExecStartPost=/bin/sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do resolvectl dns $link $dns && resolvectl domain $link default.svc.$domain svc.$domain ~$domain && resolvectl default-route $link no && exit; sleep 3; done; exit 1'
TimeoutStartSec=60
END
	systemctl daemon-reload ;;
remove-resolved)
	rm -rf "${dropin%/*}"
	systemctl daemon-reload ;;
add-dnsmasq)
	# A dnsmasq with stop-dns-rebind would drop answers with addresses of Services.
	printf 'server=/%s/%s\nrebind-domain-ok=/%s/\n' $domain $dns $domain > $dnsmasq
	keep
	search > $dir/resolv.conf.new
	cat $dir/resolv.conf.new > /etc/resolv.conf
	systemctl restart dnsmasq ;;
remove-dnsmasq)
	rm -f $dnsmasq
	restore
	systemctl restart dnsmasq ;;
add-plain)
	keep
	{
		echo "nameserver $dns"
		search
	} > $dir/resolv.conf.new
	cat $dir/resolv.conf.new > /etc/resolv.conf ;;
remove-plain) restore ;;
*-none) ;;
*)
	echo "usage: $0 add|remove [auto|resolved|dnsmasq|plain|none]" >&2
	exit 2 ;;
esac
