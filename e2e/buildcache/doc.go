// Package buildcache builds and caches the parts of the virtual rack of package e2e:
// Kubernetes and containerd from their sources, a Debian base, two tiny container images
// and the root image of a node. It needs the Debian archive and the Go module proxy, but
// no container registry and no binary download.
//
// Each part is a function that returns a path:
//
//	[Kubernetes]  a folder with etcd, kube-apiserver, kube-controller-manager, kubeadm, kubectl, kubelet
//	[Containerd]  a folder with containerd, containerd-shim-runc-v2, ctr and cni/
//	[Base]        a tar of a minimal Debian 12
//	[PauseImage]  a docker archive of localhost/pause:1, [HelloImage] of localhost/hello:1
//	[Network]     a folder with kube-scheduler, and container images of kube-proxy and flannel
//	[NodeImage]   an OCI layout, made from Dockerfile.image and all of the above
//	[Init]        drover-init, the first process of a booting node
//
// All but the last are kept in [CacheDir], in a folder named after a hash of all inputs,
// so that a second call returns at once and a changed source gives a new part. A part
// appears complete or not at all. Two processes that need the same part wait for each
// other. The two newest parts of each kind are kept.
//
// The hashes have no time and no package versions: the Debian packages in a part are
// those of the day on which it was made. Remove the cache to get newer ones.
//
// The package does not know the use of the parts: it knows no virtual machines, no
// networks, and nothing of drover but the name of its module. The functions work in any
// folder of drover's source tree. They need root, as the rack does, and the programs that
// [Able] checks.
package buildcache
