#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guest's first process. Keys are in /natgauge, put there for this boot only. eth0 and eth1 are left to the lab.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /run/netns /run/sshd
exec </dev/null >/dev/console 2>&1
# The user's own modules (--guest-files) are in no list yet.
if [ -e /natgauge/modules ]; then depmod; fi
for module in crc32c_generic virtio_pci virtio_rng virtio_net tun; do modprobe $module; done
ip link set lo up
ip link set eth2 up
ip addr add 10.0.2.15/24 dev eth2
cat >/run/sshd_config <<'SETTINGS'
HostKey /natgauge/host
AuthorizedKeysFile /natgauge/authorized
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
MaxSessions 100
SETTINGS
# It goes into the background before it listens (on port 22, 0016; 0A is LISTEN): a login then would be reset.
/usr/sbin/sshd -f /run/sshd_config && while ! grep -q ':0016 .* 0A ' /proc/net/tcp; do sleep 0.1; done &&
    echo natgauge-guest-ready
# What its parent leaves behind is this process's: a shell that waits takes it in.
while :; do sleep 1000; done
