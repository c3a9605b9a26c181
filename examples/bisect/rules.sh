#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make a repository with a commit for each line of a rule set, so that "git bisect" can search it (docs/bisecting.md).
#
#   rules.sh RULES REPOSITORY
#
# Each line of the file RULES is a command as "nft -f" reads it, for tables of the family ip; blank lines and comments
# are left out. Commit number n has the first n commands in rules.nft, and in gateway.toml a recipe that loads them
# after the rules of natgauge's nftables-nat44. The commit before the first command has the tag no-rule.
set -eu
end() {
    echo "rules.sh: $1" >&2
    exit 2
}
[ $# -eq 2 ] || end "usage: rules.sh RULES REPOSITORY"
[ -r "$1" ] || end "$1: cannot be read"
[ ! -e "$2" ] || end "$2: exists already; name a new folder"
# A line that opens or closes a block, or ends with a backslash, cannot be loaded without its neighbours.
if part=$(grep -n -m 1 -E '\{[[:space:]]*(#.*)?$|^[[:space:]]*\}|\\$' "$1"); then
    end "$1: line ${part%%:*}: is part of a block; write each command on one line, such as: add rule ip TABLE CHAIN ..."
fi
rules=$(realpath "$1") repository=$2
recipe=$(realpath "$(dirname "$0")/../../src/natgauge/gateways/recipes/nftables-nat44.toml")

git init --quiet "$repository"
cd "$repository"
git config user.name rules.sh
git config user.email rules.sh@localhost
{
    sed 's/nftables-nat44/gateway/' "$recipe"
    cat <<'VERBS'

[verbs]
start = 'nft -f "$NG_RECIPE_FOLDER/rules.nft"'
stop = 'nft flush ruleset'
VERBS
} > gateway.toml
touch rules.nft
git add .
git commit --quiet --message "no rule"
git tag no-rule
grep -v -E '^[[:space:]]*(#|$)' "$rules" | while IFS= read -r rule; do
    printf '%s\n' "$rule" >> rules.nft
    git commit --quiet --all --message="$rule"
done
