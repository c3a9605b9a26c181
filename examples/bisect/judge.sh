#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Judge for "git bisect run": does the gateway of this commit cost more than its baseline? (docs/bisecting.md)
#
#   judge.sh BASELINE GATEWAY [OPTION ...]
#
# BASELINE and GATEWAY are recipes or names, as for "natgauge compare", which gets the options, too (--fail-above 3%
# where they have none). $BUILD is a shell command that builds the gateway of the commit; it may be empty.
set -u
end() {
    echo "judge.sh: $1" >&2
    exit 128
}
[ $# -ge 2 ] || end "usage: judge.sh BASELINE GATEWAY [OPTION ...]"
command -v natgauge > /dev/null || end "natgauge is not in \$PATH; try: PATH=/path/to/natgauge/.venv/bin:\$PATH"
baseline=$1 gateway=$2
shift 2
case " $* " in *" --fail-above"*) ;; *) set -- --fail-above 3% "$@" ;; esac
# The files of the commits stay as they are: results go into the folder .git.
case " $* " in *" --results"*) ;; *) set -- --results "$(git rev-parse --git-path natgauge-results)" "$@" ;; esac

# git bisect: 0 = good, 1 = bad, 125 = this commit cannot be judged, above 127 = end the bisection.
sh -c "${BUILD:-:}" || exit 125
# A commit whose recipe cannot be read is skipped. Settings may follow the path: ./gateway.toml:connections=5000
natgauge gateways show "${gateway%%:[a-z]*=*}" > /dev/null || exit 125
natgauge compare "$baseline" "$gateway" "$@"
status=$?
case $status in
0) exit 0 ;;
10) exit 1 ;;
11) exit 125 ;;
# A commit whose gateway does not work is skipped. Everything that concerns the host or the options ends the bisection.
4) exit 125 ;;
*) exit $((status < 128 ? 128 : status)) ;;
esac
