#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
# The first process of a test machine: its files are the host's, read-only; what it writes is in memory.
set -e
/bin/busybox mount -t proc proc /proc
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs dev /dev
exec </dev/null >/dev/console 2>&1
while read -r module; do insmod "/modules/$module"; done </modules/order
options=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o $options,ro,cache=loose files /root
for place in run tmp; do mount -t tmpfs tmpfs /root/$place; done
mkdir -p /root/run/netns /root/run/jobs
mount -t 9p -o $options,cache=none jobs /root/run/jobs
cp /work.sh /root/run/work.sh
exec switch_root /root /bin/sh /run/work.sh
