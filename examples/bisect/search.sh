#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Find the commit that made a gateway slower: judge both ends, then bisect (docs/bisecting.md).
#
#   search.sh GOOD BAD BASELINE GATEWAY [OPTION ...]
#
# GOOD and BAD are commits of this repository. BASELINE is the gateway of GOOD, in another folder. All after BAD goes
# to judge.sh. Afterwards "git bisect reset" returns to the branch.
set -u
end() {
    echo "search.sh: $1" >&2
    exit 1
}
[ $# -ge 4 ] || end "usage: search.sh GOOD BAD BASELINE GATEWAY [OPTION ...]"
judge=$(dirname "$(realpath "$0")")/judge.sh
branch=$(git symbolic-ref --quiet --short HEAD || git rev-parse HEAD) || exit
good=$(git rev-parse --verify "$1^{commit}") && bad=$(git rev-parse --verify "$2^{commit}") || exit
good_name=$1 bad_name=$2 baseline=$3
shift 2

# Judge a commit: its status is that of judge.sh.
judge() {
    commit=$1
    shift
    git checkout --quiet --detach "$commit" && "$judge" "$@"
    status=$?
    git checkout --quiet "$branch" && return "$status"
}

# A wrong baseline would make git name a wrong commit, or skip all commits.
echo "search.sh: judging $bad_name, which must cost more than $baseline" >&2
judge "$bad" "$@"
case $? in
1) ;;
0) end "$bad_name does not cost more than $baseline, so there is nothing to find; does each recipe load its own files?" ;;
*) end "$bad_name cannot be judged; the lines above have the reason" ;;
esac
echo "search.sh: judging $good_name, which must not cost more than $baseline" >&2
judge "$good" "$@"
case $? in
0) ;;
1) end "$good_name costs more than $baseline, which must be the gateway of $good_name" ;;
*) end "$good_name cannot be judged; the lines above have the reason" ;;
esac
git bisect start "$bad" "$good" && git bisect run "$judge" "$@"
