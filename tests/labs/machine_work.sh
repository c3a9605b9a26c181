#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The second half of a test machine's first process: runs what is put into /run/jobs, and puts the answers there.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t bpf bpf /sys/fs/bpf
mount -t devtmpfs dev /dev
exec </dev/null >/dev/console 2>&1
# The kernel loads its modules by this name.
printf '#!/bin/sh\nexec /usr/sbin/modprobe -d "%s" "$@"\n' "$(cat /run/jobs/modules)" >/run/modprobe
chmod 755 /run/modprobe
echo /run/modprobe >/proc/sys/kernel/modprobe
ip link set lo up
cd /tmp || exit
echo >/run/jobs/ready
while :; do
    for job in /run/jobs/*.job; do
        [ -e "$job" ] || continue
        name=${job%.job}
        mv "$job" "$name.begun"
        # In the background: a job that hangs stops no other.
        (
            /bin/sh "$name.begun" >"$name.out" 2>"$name.err"
            echo $? >"$name.part"
            mv "$name.part" "$name.status"
        ) &
    done
    sleep 0.1
done
