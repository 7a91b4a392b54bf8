// Package oci is a container registry for the lab's nodes. It writes container images
// into an OCI image layout, and serves such a folder as a registry does.
//
//	l := oci.Layout{Dir: dir}
//	layer, err := l.Layer(func(t *tar.Writer) error { ... })
//	err = l.Add(oci.Image{Name: "kube-proxy:v1.37.1", Layers: []oci.Blob{layer}, Entrypoint: ...})
//	err = l.Close()
//
//	http.Serve(listener, oci.Registry(dir)) // nodes pull ADDRESS/kube-proxy:v1.37.1
//	err = oci.Archive(w, dir)               // or "ctr images import" takes them all
//
// Layers are plain tars: on the lab's wire bytes are cheap, and an emulated
// machine takes longer to unpack a compressed layer than to receive a plain one.
// Equal files give equal images, whenever they are written.
//
// The registry is read-only: it has no push, no list of tags, and no login. The package
// does not know the content of the images.
package oci
