/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames for the tester in another form than that of test frames: fragments, frames with other VLAN tags or without the
 * checksum that IPv6 requires, and ICMP errors about frames that the port has sent. Only frames that would otherwise be
 * damaged or foreign come here.
 */
#pragma once

static __always_inline bool is_own(struct address address, const int side)
{
	if (plan.mixed && in_range(&plan.background[side].own, address))
		return true;
	if (side == INITIATOR && plan.map_addresses)
		return address.high == map_prefix(address.low);
	return in_range(&plan.side[side].own, address);
}

static __always_inline void saw_too_big(struct oddities *odd, __u32 mtu)
{
	odd->too_big++;
	if (mtu && (!odd->path_mtu || mtu < odd->path_mtu))
		odd->path_mtu = mtu;
}

static __always_inline bool count_error(void *icmp, void *end, struct oddities *odd, const bool ipv6, const int side)
{
	const void *quoted = icmp + 8;
	__u8 type, code;

	if (quoted + ip_octets(ipv6) > end)
		return false;
	type = *(__u8 *)icmp;
	code = *(__u8 *)(icmp + 1);
	if ((ipv6 ? type < 1 || type > 4 : type != 3 && type != 11 && type != 12) ||
	    !is_own(source_of(quoted, ipv6), side))
		return false;
	if (ipv6 ? type == 2 : type == 3 && code == 4)
		saw_too_big(odd, ipv6 ? bpf_ntohl(*(__be32 *)(icmp + 4)) : bpf_ntohs(*(__be16 *)(icmp + 6)));
	else
		odd->errors++;
	return true;
}

enum tags { RIGHT_TAGS = 0, TOO_FEW_TAGS, OTHER_TAGS };

static __always_inline bool count_packet(void *packet, void *end, struct oddities *odd, enum tags tags, const bool ipv6,
					 const int side)
{
	void *next = packet + ip_octets(ipv6);
	struct udphdr *udp = next;
	struct iphdr *ip = packet;

	if (next > end || !is_own(destination_of(packet, ipv6), side))
		return false;
	if (tags == OTHER_TAGS)
		odd->tagged++;
	else if (tags == TOO_FEW_TAGS)
		odd->untagged++;
	else if (ipv6 ? protocol_of(packet, ipv6) == IPPROTO_FRAGMENT : !!(ip->frag_off & bpf_htons(IPV4_FRAGMENT)))
		odd->fragments++;
	else if (ipv6 && protocol_of(packet, ipv6) == IPPROTO_UDP && (void *)(udp + 1) <= end && !udp->check &&
		 !plan.accept_zero_checksum)
		odd->unchecked++;
	else
		return is_packet(packet, ipv6, transport_protocol(FRAME_ECHO, ipv6)) &&
		       count_error(next, end, odd, ipv6, side);
	return true;
}

/* Counts a frame as what it is; returns false where it has none of these forms. */
static __always_inline bool count_odd(struct xdp_md *ctx, struct oddities *odd, const int side)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const bool right = plan.side[side].tagged && has_vlans(ctx, side);
	enum tags tags;
	__be16 protocol;
	int octets = 0;

	if (data + ETH_HLEN + MOST_VLANS * VLAN_OCTETS > end)
		return false;
	protocol = ether_type(data);
	for (int at = 0; at < MOST_VLANS && is_vlan(protocol); at++) {
		data += VLAN_OCTETS;
		octets += VLAN_OCTETS;
		protocol = ether_type(data);
	}
	tags = octets < plan.side[side].tagged ? TOO_FEW_TAGS : octets && !right ? OTHER_TAGS : RIGHT_TAGS;
	data += ETH_HLEN;
	if (protocol == ip_type(false))
		return count_packet(data, end, odd, tags, false, side);
	return protocol == ip_type(true) && count_packet(data, end, odd, tags, true, side);
}
