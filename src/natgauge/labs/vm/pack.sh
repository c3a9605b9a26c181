#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs inside a Debian root: packs what a guest needs of it into /out/vmlinuz and /out/initrd. The guest lives in memory.
set -eu

stage=/stage
kernel=$(cd /lib/modules && printf '%s\n' * | sort -V | tail -n 1)

# Commands whose own programs are wanted; all others are busybox's.
programs='dash ip tc ss nft conntrack iptables ip6tables iptables-nft ip6tables-nft iptables-legacy ip6tables-legacy
iptables-save ip6tables-save jool jool_siit tayga sshd ethtool modprobe depmod lsmod date taskset dpkg-query'
# Roots of the modules' dependencies. crc32c is wanted by name, not by symbol, so no dependency tells of it.
modules='crc32c_generic crc32c_intel virtio_pci virtio_net virtio_rng veth tun dummy ip6_tunnel ipip sit jool jool_siit
nf_conntrack nf_conntrack_netlink nf_tables nft_chain_nat nft_nat nft_masq nft_ct nft_compat nft_numgen nft_hash nft_limit
nft_log nft_fib nft_fib_ipv4 nft_fib_ipv6 nft_fib_inet nft_objref nft_redir nft_reject nft_flow_offload nf_flow_table
nf_flow_table_inet ip_tables ip6_tables iptable_nat ip6table_nat iptable_mangle ip6table_mangle iptable_filter
ip6table_filter iptable_raw ip6table_raw xt_MASQUERADE xt_nat xt_mark xt_tcpudp xt_conntrack xt_comment xt_NETMAP ip6t_NPT
xt_TCPMSS seg6_iptunnel sch_ingress'

copy() { # FILE...: each with the libraries it is linked with
	for file in "$@"; do
		path=$(readlink -f "$file")
		[ -e "$stage$path" ] && continue
		mkdir -p "$stage${path%/*}"
		cp -p "$path" "$stage$path"
		for library in $(ldd "$path" 2>/dev/null | grep -o '/[^ ]*' || true); do
			mkdir -p "$stage$(readlink -f "${library%/*}")"
			cp -Lp "$library" "$stage$(readlink -f "${library%/*}")/"
		done
	done
}

mkdir -p $stage/usr/bin $stage/usr/sbin $stage/usr/lib $stage/usr/lib64 $stage/etc $stage/proc $stage/sys $stage/dev \
	$stage/run $stage/tmp $stage/root $stage/var /out
for folder in bin sbin lib lib64; do ln -s usr/$folder $stage/$folder; done
ln -s ../run $stage/var/run

for name in $programs; do
	path=$(command -v "$name") || { echo "program $name is missing in the guest's root" >&2; exit 1; }
	copy "$path"
	# Some programs are known by the name that they are called by.
	[ -e "$stage/usr/bin/$name" ] || ln -s "$(readlink -f "$path")" "$stage/usr/bin/$name"
done
ln -s dash $stage/usr/bin/sh
ln -s ../bin/kmod $stage/usr/sbin/modprobe # where the kernel looks for it
copy /bin/busybox
for applet in $(busybox --list); do
	[ -L "$stage/usr/bin/$applet" ] || [ -e "$stage/usr/bin/$applet" ] || ln -s busybox "$stage/usr/bin/$applet"
done
# tayga does not print its version; a recipe asks the package that owns the program.
mkdir -p $stage/var/lib/dpkg/info
dpkg-query -s tayga >$stage/var/lib/dpkg/status
dpkg-query -L tayga >$stage/var/lib/dpkg/info/tayga.list
copy /usr/lib/*/xtables/*.so /usr/lib/*/libgcc_s.so.1
# Some extensions have several names, which are links: iptables finds MASQUERADE by its name.
for file in /usr/lib/*/xtables/*.so; do
	if [ -L "$file" ]; then cp -P "$file" "$stage$file"; fi
done

folder=/usr/lib/modules/$kernel
mkdir -p "$stage$folder"
for module in $modules; do
	modprobe -S "$kernel" --show-depends "$module" 2>/dev/null | sed -n 's/^insmod \([^ ]*\).*/\1/p' || true
done | sort -u | while read -r path; do
	path=$(readlink -f "$path")
	mkdir -p "$stage${path%/*}"
	cp -p "$path" "$stage$path"
done
[ -n "$(find "$stage$folder" -name 'jool.ko*')" ] || { echo "module jool was not built for kernel $kernel" >&2; exit 1; }
cp "$folder"/modules.order "$folder"/modules.builtin "$folder"/modules.builtin.modinfo "$stage$folder/"
depmod -b $stage "$kernel"

printf 'root:*:0:0:root:/root:/bin/sh\nsshd:*:100:65534::/run/sshd:/bin/false\nnobody:*:65534:65534::/:/bin/false\n' \
	>$stage/etc/passwd
printf 'root:x:0:\nnogroup:x:65534:\n' >$stage/etc/group
cp /natgauge-init $stage/init
chmod 755 $stage/init
chmod 700 $stage/root

(cd $stage && find . -print0 | cpio --quiet --null -o -H newc | gzip -6) >/out/initrd
cp "/boot/vmlinuz-$kernel" /out/vmlinuz
echo "$kernel" >/out/kernel
