# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A clean Debian 12 root for the scripts that source this file. Such a script defines `check ARGUMENT...`, which refuses
# wrong arguments, and `try ARGUMENT...`, and ends with `in_clean_root "$@"`: `try` then runs in a new mount namespace,
# where `make_root` makes the root and `enter` runs a command in it, with the folder FIRST first in PATH.
#
# The root is a tmpfs that only this mount namespace has. When the script ends, it ends every process that it started, and
# the kernel removes the root. There is no PID namespace, for natgauge needs to see the kernel's threads. DEBIAN_MIRROR
# names a mirror; without it, the mirror is the one that this host's apt uses.

readonly RELEASE=bookworm
readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
readonly SYSTEM_PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

complain() {
	echo "tools/${0##*/}: $*" >&2
	exit 3
}

say() {
	printf '\n== %s (after %d s)\n' "$*" "$SECONDS"
}

mirror() { # the mirror of RELEASE that this host's apt uses, or Debian's own
	local found
	# shellcheck disable=SC2016 # apt's variable, not ours
	found=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $RELEASE" 'Origin: Debian' 2>/dev/null |
		grep -E '^(https?|file):' | head -n 1 || true)
	echo "${DEBIAN_MIRROR:-${found:-http://deb.debian.org/debian}}"
}

bootstrap() { # PACKAGE,... [RELEASE]: the smallest Debian system, and these packages
	local proxy='' log
	log=$(mktemp --tmpdir="$ROOT")
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	[[ -z $proxy ]] || export http_proxy=${http_proxy:-$proxy}
	if ! debootstrap --force-check-gpg --keyring="$KEYRING" --variant=minbase --include="$1" "${2:-$RELEASE}" "$ROOT" "$(mirror)" >"$log" 2>&1; then
		tail -n 5 "$log" >&2
		complain "debootstrap from $(mirror) failed: name another mirror in DEBIAN_MIRROR"
	fi
	rm "$log"
}

make_root() { # PACKAGE,...
	mount -t tmpfs -o mode=755 tmpfs "$ROOT"
	bootstrap "$1"
	mount --rbind /proc "$ROOT/proc"
	mount --rbind /sys "$ROOT/sys"
	mount --rbind /dev "$ROOT/dev"
	mount -t tmpfs -o mode=755 tmpfs "$ROOT/run"
	if [[ -d /lib/modules ]]; then # those of the running kernel
		mkdir -p "$ROOT/lib/modules"
		mount --bind -o ro /lib/modules "$ROOT/lib/modules"
	fi
	# The way to the network, and to the registries of packages, is the host's.
	local file
	for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
		if [[ -e $file ]]; then cp --dereference --remove-destination "$file" "$ROOT$file"; fi
	done
	if [[ -e ~/.cargo/config.toml ]]; then
		install -D --mode=600 ~/.cargo/config.toml "$ROOT/root/.cargo/config.toml"
	fi
	apt-config dump Acquire | grep -i '::proxy' >"$ROOT/etc/apt/apt.conf.d/90proxy" || true
	local tool
	for tool in cc gcc clang cargo rustc; do
		if enter which "$tool"; then complain "$tool is in the clean root, so it proves nothing"; fi
	done
}

enter() { # COMMAND...: run it in the clean root, with nothing of our environment but the way to the network
	# The clean root becomes the root of a mount namespace: from a mere chroot, `nsenter --mount` would come out at the host's.
	local passed=()
	mapfile -t passed < <(env | grep -iE '^(https?_proxy|all_proxy|no_proxy|PIP_(EXTRA_)?INDEX_URL|CARGO_(HTTP|NET|REGISTRIES|SOURCE)_[A-Z_]+)=' || true)
	# shellcheck disable=SC2016 # the inner shell expands it
	env -i HOME=/root LC_ALL=C.UTF-8 "PATH=${FIRST:+$FIRST:}$SYSTEM_PATH" \
		DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 "${passed[@]}" \
		unshare --mount sh -c 'cd "$0" && pivot_root . mnt && umount --lazy mnt && cd /root && exec "$@"' "$ROOT" "$@" </dev/null
}

# Starts a command as the parent of all orphans among its descendants. 36 is PR_SET_CHILD_SUBREAPER of linux/prctl.h.
readonly AS_SUBREAPER='import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1); os.execv(sys.argv[1], sys.argv[1:])'

end_all() { # end all descendants: those of an ended process become children of this one, the subreaper
	while pkill --signal KILL --parent $$; do sleep 0.2; done
}

in_clean_root() { # ARGUMENT...: run this script again in a mount namespace, where it calls `try ARGUMENT...`
	if [[ ${1-} == --inside ]]; then
		readonly ROOT=$2
		trap 'exit 130' INT
		trap 'exit 143' TERM HUP
		trap end_all EXIT
		try "${@:3}"
		return
	fi
	check "$@"
	if [[ $(id -u) -ne 0 ]]; then complain "makes namespaces and mounts: run it as root"; fi
	if ! command -v debootstrap >/dev/null; then complain "needs debootstrap: apt-get install debootstrap"; fi
	if ! command -v gpgv >/dev/null; then complain "needs gpgv, to verify Debian's signatures: apt-get install gpgv"; fi
	if [[ ! -f $KEYRING ]]; then
		complain "needs $KEYRING, to verify Debian's signatures: apt-get install debian-archive-keyring"
	fi
	local root
	root=$(mktemp --directory)
	# shellcheck disable=SC2064 # the folder of now, which is empty again when the namespace is gone
	trap "rmdir '$root'" EXIT
	setpriv --pdeathsig KILL \
		unshare --mount --propagation private python3 -c "$AS_SUBREAPER" "$0" --inside "$root" "$@"
}
