#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make a repository with a commit for each line of a rule set, so that "git bisect" can search it (docs/bisecting.md).
#
#   rules.sh RULES REPOSITORY
#
# Each line of the file RULES is a command as "nft -f" reads it, for tables of the family ip. Commit number n has the
# first n lines, in the recipe gateway.toml: natgauge's nftables-nat44 and these lines.
set -eu
rules=$(realpath "$1") repository=$2
recipe=$(realpath "$(dirname "$0")/../../src/natgauge/duts/recipes/nftables-nat44.toml")

git init --quiet "$repository"
cd "$repository"
git config user.name rules.sh
git config user.email rules.sh@localhost
touch lines

commit() {
    {
        sed 's/nftables-nat44/gateway/' "$recipe"
        printf "\n[verbs]\nstop = 'nft flush ruleset'\nstart = '''\nnft -f - <<RULES\n"
        cat lines
        printf "RULES\n'''\n"
    } > gateway.toml
    git add gateway.toml
    git commit --quiet --message "$1"
}

commit "no rule"
while IFS= read -r rule; do
    printf '%s\n' "$rule" >> lines
    commit "$rule"
done < "$rules"
