/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames for the tester in another form than that of test frames: fragments, frames with a VLAN tag or without the
 * checksum that IPv6 requires, and ICMP errors about frames that the port has sent. Only frames that would otherwise be
 * damaged or foreign come here.
 */
#ifndef NATGAUGE_ODDITIES_H
#define NATGAUGE_ODDITIES_H

#define FRAGMENT_FIELD 0x3fff /* of IPv4: more fragments, and the offset */
#define VLAN_OCTETS    4

/* Whether an address is one of the tester's own. */
static __always_inline bool is_own(struct address address, const int side)
{
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

static __always_inline bool count_error4(void *icmp, void *end, struct oddities *odd, const int side)
{
	struct iphdr *quoted = icmp + 8;
	__u8 type, code;

	if ((void *)(quoted + 1) > end)
		return false;
	type = *(__u8 *)icmp;
	code = *(__u8 *)(icmp + 1);
	if ((type != 3 && type != 11 && type != 12) ||
	    !is_own((struct address){ .low = bpf_ntohl(quoted->saddr) }, side))
		return false;
	if (type == 3 && code == 4)
		saw_too_big(odd, bpf_ntohs(*(__be16 *)(icmp + 6)));
	else
		odd->errors++;
	return true;
}

static __always_inline bool count_error6(void *icmp, void *end, struct oddities *odd, const int side)
{
	struct ipv6hdr *quoted = icmp + 8;
	__u8 type;

	if ((void *)(quoted + 1) > end)
		return false;
	type = *(__u8 *)icmp;
	if (type < 1 || type > 4 || !is_own(address6(&quoted->saddr), side))
		return false;
	if (type == 2)
		saw_too_big(odd, bpf_ntohl(*(__be32 *)(icmp + 4)));
	else
		odd->errors++;
	return true;
}

static __always_inline bool count_odd4(struct iphdr *ip, void *end, struct oddities *odd, bool tagged, const int side)
{
	if ((void *)(ip + 1) > end || !is_own((struct address){ .low = bpf_ntohl(ip->daddr) }, side))
		return false;
	if (tagged)
		odd->tagged++;
	else if (ip->frag_off & bpf_htons(FRAGMENT_FIELD))
		odd->fragments++;
	else
		return *(__u8 *)ip == 0x45 && ip->protocol == IPPROTO_ICMP && count_error4(ip + 1, end, odd, side);
	return true;
}

static __always_inline bool count_odd6(struct ipv6hdr *ip, void *end, struct oddities *odd, bool tagged, const int side)
{
	struct udphdr *udp = (void *)(ip + 1);

	if ((void *)(ip + 1) > end || !is_own(address6(&ip->daddr), side))
		return false;
	if (tagged)
		odd->tagged++;
	else if (ip->nexthdr == IPPROTO_FRAGMENT)
		odd->fragments++;
	else if (ip->nexthdr == IPPROTO_UDP && (void *)(udp + 1) <= end && !udp->check && !plan.accept_zero_checksum)
		odd->unchecked++;
	else
		return ip->nexthdr == IPPROTO_ICMPV6 && count_error6(ip + 1, end, odd, side);
	return true;
}

/* Counts a frame as what it is; returns false where it has none of these forms. */
static __always_inline bool count_odd(struct xdp_md *ctx, struct oddities *odd, const int side)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	__be16 protocol;
	bool tagged;

	if (data + ETH_HLEN + VLAN_OCTETS > end)
		return false;
	protocol = eth->h_proto;
	tagged = protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD);
	if (tagged) {
		protocol = *(__be16 *)(data + ETH_HLEN + 2);
		data += VLAN_OCTETS;
	}
	if (protocol == bpf_htons(ETH_P_IP))
		return count_odd4(data + ETH_HLEN, end, odd, tagged, side);
	return protocol == bpf_htons(ETH_P_IPV6) && count_odd6(data + ETH_HLEN, end, odd, tagged, side);
}

#endif
