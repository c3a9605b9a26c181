#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make a repository with a commit for each line of a rule set, so that "git bisect" can search it (docs/bisecting.md).
#
#   rules.sh RULES REPOSITORY
#
# Each line of the file RULES is a command as "nft -f" reads it, for tables of the family ip. Commit number n has the
# first n lines, in the recipe gateway.toml of a NAT44 gateway.
set -eu
rules=$(realpath "$1") repository=$2

git init --quiet "$repository"
cd "$repository"
git config user.name rules.sh
git config user.email rules.sh@localhost
touch lines

commit() {
    cat - lines <<'TOML' > gateway.toml
# SPDX-License-Identifier: Apache-2.0
name = "gateway"
title = "Linux NAT44 with nftables and further rules"
kind = "nat44"
initiator_family = "ipv4"
responder_family = "ipv4"
stateful = true
source = "translated"
extends = ["linux-ipv4", "conntrack", "nftables-masquerade"]

[environment]
NFT_FAMILY = "ip"

[verbs]
stop = "nft flush ruleset"
start = '''
nft -f - <<RULES
TOML
    printf "RULES\n'''\n" >> gateway.toml
    git add gateway.toml
    git commit --quiet --message "$1"
}

commit "no rule"
while IFS= read -r rule; do
    printf '%s\n' "$rule" >> lines
    commit "$rule"
done < "$rules"
