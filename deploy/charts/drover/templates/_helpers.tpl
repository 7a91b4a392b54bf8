{{/* name: the name of every object; with a release of another name, both. */}}
{{- define "drover.name" -}}
{{- if contains "drover" .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-drover" .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "drover.selector" -}}
app.kubernetes.io/name: drover
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "drover.labels" -}}
{{ include "drover.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end -}}

{{/* config: drover.yaml. The chart sets where objects are, and, for the Service, where the API listens. */}}
{{- define "drover.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $server := $config.server | default dict -}}
{{- if not $server.interfaces -}}
{{- fail "config.server.interfaces: name the network interfaces of the host on which machines boot, for example [eth1]" -}}
{{- end -}}
{{- if .Values.service.enabled -}}
{{- if or $server.api $server.apiTLS -}}
{{- fail "config.server.api and apiTLS: remove them, service.enabled sets them" -}}
{{- end -}}
{{- $_ := set $server "api" (printf ":%v" .Values.service.port) -}}
{{- $_ := set $server "apiTLS" (dict "cert" "api-tls/tls.crt" "key" "api-tls/tls.key") -}}
{{- end -}}
{{- if .Values.objects.enabled -}}
{{- $_ := set $server "objects" (dict "namespace" .Release.Namespace) -}}
{{- end -}}
{{- $_ := set $config "server" $server -}}
{{- toYaml $config -}}
{{- end -}}

{{/* seconds: those of a duration as Go writes it, such as 1h30m. */}}
{{- define "drover.seconds" -}}
{{- $part := dict "h" 0.0 "m" 0.0 "s" 0.0 -}}
{{- range regexFindAll "[0-9.]+(h|ms|m|us|ns|s)" . -1 -}}
{{- $_ := set $part (regexFind "[a-z]+" .) (regexFind "[0-9.]+" . | float64) -}}
{{- end -}}
{{- addf (mulf $part.h 3600) (mulf $part.m 60) $part.s -}}
{{- end -}}

{{/* api: the address of the listener for operators. */}}
{{- define "drover.api" -}}
{{- if .Values.service.enabled -}}
127.0.0.1:{{ .Values.service.port }}
{{- else -}}
{{- $api := dig "server" "api" "127.0.0.1:8443" .Values.config -}}
{{- if hasPrefix ":" $api }}127.0.0.1{{ end }}{{ $api -}}
{{- end -}}
{{- end -}}

{{/* probe: a request to /healthz, from the host itself. */}}
{{- define "drover.probe" -}}
{{- $api := include "drover.api" . -}}
{{- $host := regexReplaceAll ":[0-9]+$" $api "" | trimPrefix "[" | trimSuffix "]" -}}
httpGet:
  path: /healthz
  host: {{ ternary "127.0.0.1" $host (eq $host "0.0.0.0") | quote }}
  port: {{ regexFind "[0-9]+$" $api }}
  scheme: {{ ternary "HTTPS" "HTTP" (or .Values.service.enabled (not (empty (dig "server" "apiTLS" nil .Values.config)))) }}
{{- end -}}

{{/* volume: a volume of "storage"; its argument is a list of the name, the values, and the chart. */}}
{{- define "drover.volume" -}}
{{- $name := index . 0 -}}{{- $v := index . 1 -}}{{- $top := index . 2 -}}
- name: {{ $name }}
{{- if or $v.claim $v.size }}
  persistentVolumeClaim: {claimName: {{ $v.claim | default (printf "%s-%s" (include "drover.name" $top) $name) }}}
{{- else }}
  hostPath: {path: {{ $v.hostPath | default "/var/lib/drover" | quote }}, type: Directory}
{{- end }}
{{- end -}}

{{/* folder: where images or loaders are in the container. */}}
{{- define "drover.folder" -}}
{{- $name := index . 0 -}}{{- $v := index . 1 -}}
{{- if $v.inImage -}}
/usr/share/drover/{{ $name }}
{{- else if or $v.hostPath $v.claim $v.size -}}
/srv/drover/{{ $name }}
{{- else -}}
/var/lib/drover/{{ $name }}
{{- end -}}
{{- end -}}
