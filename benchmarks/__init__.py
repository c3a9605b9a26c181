# SPDX-License-Identifier: Apache-2.0
"""How fast the tester itself is, beside generators that Debian packages: same veth, same run, one core each."""
