//go:build tools

// Package kubernetes pins what the end-to-end tests build a control plane from. It is never compiled: the
// installer builds each of these commands by its path.
package kubernetes

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
)
