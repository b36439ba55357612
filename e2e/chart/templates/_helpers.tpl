{{- /* The name of a Service begins with a letter and has no dot; that of a release may be 1e3 or docs.example.com.
Such a one is rewritten, with a hash, so that a.b and a-b do not meet. To be quoted: a release may be called true. */}}
{{- define "docs.name" -}}
{{- if regexMatch "^[a-z][a-z0-9-]*$" .Release.Name }}
{{- .Release.Name }}
{{- else }}
{{- printf "docs-%s-%s" (.Release.Name | replace "." "-" | trunc 40) (.Release.Name | sha256sum | trunc 8) }}
{{- end }}
{{- end }}

{{- /* These stay the same for as long as the release lives: a Deployment cannot change its selector. */}}
{{- define "docs.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- /* Those of pods too. A version may be any text of 128 characters, a label only 63 of a few kinds. The default
is for a version that was removed: toString would make "<nil>" of it. */}}
{{- define "docs.podLabels" -}}
{{ include "docs.selector" . }}
{{- with regexReplaceAll "[^A-Za-z0-9._-]" (.Values.staticExport.version | default "" | toString) "_" | trunc 63 | trimAll "-_." }}
app.kubernetes.io/version: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "docs.labels" -}}
{{ include "docs.podLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}
