# SPDX-License-Identifier: Apache-2.0
"""`natgauge lab clean` in PID, mount and network namespaces of its own: whom it ends, and whom it never ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.calm

#: In a machine of its own: names that begin with "ng-" for its own network namespace and for one of somebody else's.
SCRIPT = r"""
mount -t tmpfs -o mode=755 tmpfs /run
printf '#!/bin/sh\nexec "$PYTHON" -c "from natgauge.cli import main; main()" "$@"\n' > /run/natgauge.sh
chmod +x /run/natgauge.sh
natgauge() { /run/natgauge.sh "$@"; }
mkdir /run/netns
touch /run/netns/ng-main
mount --bind /proc/self/ns/net /run/netns/ng-main
ip netns add ng-theirs
sleep 300 & own=$!
ip netns exec ng-theirs sleep 301 & theirs=$!
while [ "$(cat /proc/$theirs/comm)" != sleep ]; do sleep 0.05; done
natgauge lab clean || exit 1
kill -0 $own || exit 2
kill -0 $theirs || exit 3
natgauge lab clean --dry-run --strays || exit 4
kill -0 $theirs || exit 5
natgauge lab clean --strays || exit 6
kill -0 $own || exit 7
kill -0 $theirs 2> /dev/null && exit 8
[ -e /run/netns/ng-main ] || exit 9
[ ! -e /run/netns/ng-theirs ] || exit 10
ip netns add ng-theirs
ip netns exec ng-theirs sh -c '/run/natgauge.sh lab clean --strays; echo "left with $?"'
[ -e /run/netns/ng-theirs ] || exit 11
"""


def test_namespaces_of_others_are_listed_and_the_machines_own_is_never_taken() -> None:
    command = ["unshare", "-p", "-m", "-n", "-f", "--mount-proc", "--kill-child", "--propagation", "private"]
    done = subprocess.run(
        [*command, "sh", "-c", SCRIPT],
        env={"PYTHON": sys.executable, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    first, _, rest = done.stdout.partition("would delete namespace ng-theirs")
    assert "left namespace ng-main: natgauge did not make it" in first
    assert '(sleep); "natgauge lab clean --strays" deletes it and ends its processes' in first
    assert "deleted namespace ng-theirs" in rest
    assert "it is the network of this machine or of this natgauge" in rest
    assert rest.endswith("left with 0\n")
