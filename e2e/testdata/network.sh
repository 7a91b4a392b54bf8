# Makes a bond of two cards, with a VLAN, as hooks of LTSP do: by netplan, with the variables
# of the lease.
set -e
# The number of bits of a netmask.
bits() {
  n=0
  IFS=.
  for octet in $1; do
    while [ "$octet" -gt 0 ]; do
      n=$((n + octet % 2))
      octet=$((octet / 2))
    done
  done
  echo $n
}
PREFIX=$(bits $IPCONFIG_IPV4NETMASK)
SECOND=$(echo $IPCONFIG_IPV4ADDR | sed 's/^10\.28\./10.29./')
rm -rf /run/netplan
mkdir -p /etc/netplan
cat >/etc/netplan/00-config.yaml <<EOT
network:
  version: 2
  renderer: networkd
  ethernets:
    $DEVICE: {mtu: 9000, dhcp4: no, optional: true}
    eno1d1: {mtu: 9000, dhcp4: no, optional: true}
  bonds:
    bond0:
      mtu: 9000
      dhcp4: no
      macaddress: ${MAC_ADDRESS}
      interfaces: [$DEVICE, eno1d1]
      parameters: {mode: 802.3ad, mii-monitor-interval: 100, lacp-rate: fast, transmit-hash-policy: layer3+4}
      addresses: [$IPCONFIG_IPV4ADDR/$PREFIX]
      gateway4: $IPCONFIG_IPV4GATEWAY
  vlans:
    bond0.2: {id: 2, link: bond0, addresses: [$SECOND/$PREFIX]}
EOT
