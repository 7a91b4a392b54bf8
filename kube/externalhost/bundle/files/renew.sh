#!/bin/sh
# Replaces the token of host {{.Name}} in cluster {{.Cluster}} by a new one. Nobody sees a
# token in the arguments of a program: curl reads it from its standard input.
set -eu
umask 077
dir={{.Dir}}
rm -f $dir/token.new
printf 'header = "Authorization: Bearer %s"\n' "$(cat $dir/token)" |
	curl -K - -fsS --retry 5 --max-time 60 --cacert $dir/ca.crt -H 'Content-Type: application/json' \
		--data '{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": {{.Seconds}}}}' \
		{{.Server}}/api/v1/namespaces/drover-hosts/serviceaccounts/{{.Name}}/token |
	sed -n 's/.*"token": *"\([A-Za-z0-9._-]*\)".*/\1/p' > $dir/token.new
if ! [ -s $dir/token.new ]; then
	echo "cluster {{.Cluster}} gave no new token: the old one stays" >&2
	exit 1
fi
mv $dir/token.new $dir/token
