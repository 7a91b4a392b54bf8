// Package oci gives the lab's nodes a container registry, without one being in
// reach: it writes container images into an OCI image layout, and serves such a
// folder the way a registry does.
//
//	l := oci.Layout{Dir: dir}
//	layer, err := l.Layer(func(t *tar.Writer) error { ... })
//	err = l.Add(oci.Image{Name: "kube-proxy:v1.37.1", Layers: []oci.Blob{layer}, Entrypoint: ...})
//	err = l.Close()
//
//	http.Serve(listener, oci.Registry(dir)) // nodes pull ADDRESS/kube-proxy:v1.37.1
//
// Layers are plain tars: on the lab's wire bytes are cheap, and an emulated
// machine takes longer to unpack a compressed layer than to receive a plain one.
// Equal files give equal images, whenever they are written.
//
// The registry serves what is there and takes nothing: no push, no tags to list,
// no login. The package does not know what is in the images.
package oci
