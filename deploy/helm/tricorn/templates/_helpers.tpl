{{- define "tricorn.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "tricorn.selector" -}}
app.kubernetes.io/name: {{ include "tricorn.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tricorn.labels" -}}
{{ include "tricorn.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "tricorn.check" -}}
{{- range $word := .Values.args -}}
{{- $flag := first (splitList "=" $word) -}}
{{- if has $flag (list "--drain-delay" "--graceful-timeout" "--boot-timeout" "--bind" "-b" "--admin-bind" "--workers" "-w") -}}
{{- fail (printf "args has %s, and a value of the chart is for that: other objects follow from it." $flag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The command line; what stands in `args` comes later, and wins. */ -}}
{{- define "tricorn.command" -}}
{{- include "tricorn.check" . -}}
{{- $words := list "tricorn" "--bind" (printf "0.0.0.0:%d" (int .Values.ports.http)) "--admin-bind" (printf "0.0.0.0:%d" (int .Values.ports.admin)) -}}
{{- $words = concat $words (list "--workers" (toString .Values.workers)) -}}
{{- with .Values.threads }}{{ $words = concat $words (list "--threads" (toString .)) }}{{ end -}}
{{- with .Values.maxWorkerMemory }}{{ $words = concat $words (list "--max-worker-memory" (toString .)) }}{{ end -}}
{{- $words = concat $words (list "--boot-timeout" (toString .Values.bootTimeout)) -}}
{{- $words = concat $words (list "--drain-delay" (toString .Values.drainDelay) "--graceful-timeout" (toString .Values.gracefulTimeout)) -}}
{{- with .Values.forwardedAllowIps }}{{ $words = concat $words (list "--forwarded-allow-ips" .) }}{{ end -}}
{{- $words = concat $words .Values.args -}}
{{- with .Values.app }}{{ $words = append $words . }}{{ end -}}
{{- toJson $words -}}
{{- end -}}
