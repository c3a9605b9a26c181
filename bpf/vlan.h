/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * VLAN tags (IEEE 802.1Q) between MAC addresses and EtherType. From its octet `tagged` on, a tagged frame lies as an
 * untagged one does from its first octet on, but for the MAC addresses. So what follows them is written and parsed
 * there, by what knows nothing of tags.
 */
#pragma once

#define VLAN_NUMBER 0xfff /* of a tag; the other bits are its priority */

/* Where the frame lies as an untagged one at `side` would. */
static __always_inline void *untagged_start(const struct xdp_md *ctx, const int side)
{
	return (void *)(long)ctx->data + plan.side[side].tagged;
}

static __always_inline void put_macs(__u32 *words, const volatile struct side_plan *side)
{
	words[0] = side->ethernet[0];
	words[1] = side->ethernet[1];
	words[2] = side->ethernet[2];
}

/* Write MAC addresses and tags of a frame from `source`, an own address, over what lies before its EtherType. */
static __always_inline void put_vlans(void *data, const volatile struct side_plan *side, struct address source)
{
	int tags = side->tagged / VLAN_OCTETS;
	__u32 *words = data;

	put_macs(words, side);
	for (int at = 0; at < MOST_VLANS && at < tags; at++)
		words[3 + at] = bpf_htonl(side->vlans[at] +
					  (side->vlan_each && at == tags - 1 ? source.low - side->own.low : 0));
}

/* What the VLAN of the frame to an own address exceeds that of the first; of another frame, any that an address has. */
static __always_inline __u32 expected_step(const void *packet, const void *end, const volatile struct side_plan *side,
					   __be16 protocol, __u32 found)
{
	const bool ipv6 = protocol == ip_type(true);
	__u64 to = found;

	if ((ipv6 || protocol == ip_type(false)) && packet + ip_octets(ipv6) <= end)
		to = destination_of(packet, ipv6).low - side->own.low;
	return below(to, side->own.count) ? to : below(found, side->own.count) ? found : found - 1;
}

/* Whether a frame that arrives at `side` has the tags of the plan. */
static __always_inline bool has_vlans(const struct xdp_md *ctx, const int side)
{
	const volatile struct side_plan *here = &plan.side[side];
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	void *view = untagged_start(ctx, side);
	int tags = here->tagged / VLAN_OCTETS;
	__u32 found, expected, wrong = 0;
	__be16 protocol;

	if (view + ETH_HLEN > end)
		return false;
	protocol = ether_type(view);
	for (int at = 0; at < MOST_VLANS && at < tags; at++) {
		found = bpf_ntohl(*(__u32 *)(data + MACS_OCTETS + at * VLAN_OCTETS)) & ~(0xffff & ~VLAN_NUMBER);
		expected = here->vlans[at];
		if (here->vlan_each && at == tags - 1)
			expected += expected_step(view + ETH_HLEN, end, here, protocol, found - expected);
		wrong |= found ^ expected;
	}
	return !wrong && !is_vlan(protocol);
}
