# The first process of the node, in mount, UTS and PID namespaces of its own (see node.go).
# It hides what belongs to the host, and then is the parent of the node's processes. The
# folders of the host that the node needs are below /mnt, whatever the other mounts hide.
set -eu
hostname "$NODE"
mount -t tmpfs node /mnt
while read -r name folder; do
	mkdir "/mnt/$name"
	mount --bind "$folder" "/mnt/$name"
done <"$DIR/folders"
mount --bind /mnt/node/hosts /etc/hosts
# A symbolic link leads to a file below /run, which is hidden.
[ -L /etc/resolv.conf ] || mount --bind /mnt/node/resolv.conf /etc/resolv.conf
for folder in /run /var/lib /var/log; do
	mount -t tmpfs node $folder
done
# A kubelet sets these for the whole machine, unless it finds them set.
for file in /mnt/node/sysctl/*; do
	mount --bind "$file" "/proc/sys/$(basename "$file" | tr . /)"
done
# Volumes reach containers by propagation.
mkdir -p /var/lib/kubelet /var/lib/drover
mount --make-rshared /var/lib
# What a pod keeps on its host outlives the node, in a folder of the test.
mount --bind /mnt/node/drover /var/lib/drover
/mnt/containerd/containerd --config /mnt/node/containerd.toml >/mnt/node/containerd.log 2>&1 &
wait
