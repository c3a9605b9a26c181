/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames that are no test frames. ARP (RFC 826) and neighbour discovery (RFC 4861) are answered for the tester's
 * addresses, so that no static entries are needed. Counted are frames for the tester in another form than that of test
 * frames, and ICMP errors about sent ones. Only frames that would otherwise be damaged or foreign come here.
 */
#pragma once

#define ARPOP_REQUEST 1
#define ARPOP_REPLY   2

/* linux/if_arp.h would include headers of the C library. */
struct arp4 {
	struct ethhdr eth;
	__be16 hardware, protocol;
	__u8 hardware_length, protocol_length;
	__be16 operation;
	__u8 sender_mac[6];
	__be32 sender;
	__u8 target_mac[6];
	__be32 target;
} __attribute__((packed));

/* Neighbour solicitation or advertisement with a link-layer address option. */
struct neighbour6 {
	struct ethhdr eth;
	struct ipv6hdr ip;
	struct icmp6hdr icmp;
	struct in6_addr target;
	__u8 option_type;
	__u8 option_units;
	__u8 option_mac[6];
} __attribute__((packed));

#define SOLICITATION		 135
#define ADVERTISEMENT		 136
#define TARGET_LINK_LAYER_OPTION 2
#define SOLICITED_OVERRIDE	 bpf_htonl(0x60000000)

static __always_inline void copy_mac(void *to, const volatile void *from)
{
	for (int i = 0; i < 3; i++)
		((__u16 *)to)[i] = ((const volatile __u16 *)from)[i];
}

/* Address the frame to `to`. It stays in its VLAN. */
static __always_inline void send_to(struct ethhdr *eth, const void *to, const volatile struct side_plan *side)
{
	copy_mac(eth->h_dest, to);
	copy_mac(eth->h_source, side->mac);
}

static __always_inline int answer_arp(struct xdp_md *ctx, const volatile struct side_plan *side)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct arp4 *f = data + side->tagged;
	__be32 asked;

	if ((void *)(f + 1) > end || f->operation != bpf_htons(ARPOP_REQUEST) || side->link != FAMILY_IPV4 ||
	    !in_range(&side->neighbours, address4(f->target)))
		return 0;
	asked = f->target;
	send_to(data, f->sender_mac, side);
	f->operation = bpf_htons(ARPOP_REPLY);
	copy_mac(f->target_mac, f->sender_mac);
	f->target = f->sender;
	copy_mac(f->sender_mac, side->mac);
	f->sender = asked;
	return 1;
}

static __always_inline int answer_solicitation(struct xdp_md *ctx, const volatile struct side_plan *side)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct neighbour6 *f = data + side->tagged;
	int missing;
	__u64 sum;

	if ((void *)&f->option_type > end || f->ip.nexthdr != IPPROTO_ICMPV6 || f->icmp.icmp6_type != SOLICITATION ||
	    side->link != FAMILY_IPV6 || !in_range(&side->neighbours, address6(&f->target)))
		return 0;
	/* A solicitation without the option is shorter than the advertisement. */
	missing = (int)sizeof(*f) + side->tagged - (int)(end - data);
	if (missing > 0) {
		if (bpf_xdp_adjust_tail(ctx, missing))
			return 0;
		data = (void *)(long)ctx->data;
		end = (void *)(long)ctx->data_end;
		f = data + side->tagged;
	}
	if ((void *)(f + 1) > end)
		return 0;
	send_to(data, ((struct ethhdr *)data)->h_source, side);
	f->ip.daddr = f->ip.saddr;
	f->ip.saddr = f->target;
	f->ip.hop_limit = 255;
	f->ip.payload_len = bpf_htons(sizeof(*f) - sizeof(f->eth) - sizeof(f->ip));
	f->icmp.icmp6_type = ADVERTISEMENT;
	f->icmp.icmp6_code = 0;
	f->icmp.icmp6_cksum = 0;
	f->icmp.icmp6_dataun.un_data32[0] = SOLICITED_OVERRIDE;
	f->option_type = TARGET_LINK_LAYER_OPTION;
	f->option_units = 1;
	copy_mac(f->option_mac, side->mac);
	sum = sum_words(&f->ip.saddr, 32) + f->ip.payload_len + bpf_htons(IPPROTO_ICMPV6);
	f->icmp.icmp6_cksum = ~fold(sum + sum_words(&f->icmp, sizeof(*f) - sizeof(f->eth) - sizeof(f->ip)));
	return 1;
}

static __always_inline bool is_own(struct address address, const int side)
{
	if (plan.mixed && in_range(&plan.background[side].own, address))
		return true;
	if (side == INITIATOR && plan.map_addresses)
		return address.high == map_prefix(address.low);
	return in_range(&plan.side[side].own, address);
}

static __always_inline bool count_error(void *icmp, void *end, struct oddities *odd, const bool ipv6, const int side)
{
	const void *quoted = icmp + 8;
	__u8 type, code;
	__u32 mtu;

	if (quoted + ip_octets(ipv6) > end)
		return false;
	type = *(__u8 *)icmp;
	code = *(__u8 *)(icmp + 1);
	if ((ipv6 ? type < 1 || type > 4 : type != 3 && type != 11 && type != 12) ||
	    !is_own(source_of(quoted, ipv6), side))
		return false;
	if (ipv6 ? type != 2 : type != 3 || code != 4) {
		odd->errors++;
		return true;
	}
	odd->too_big++;
	mtu = ipv6 ? bpf_ntohl(*(__be32 *)(icmp + 4)) : bpf_ntohs(*(__be16 *)(icmp + 6));
	if (mtu && (!odd->path_mtu || mtu < odd->path_mtu))
		odd->path_mtu = mtu;
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
	for (; octets < MOST_VLANS * VLAN_OCTETS && is_vlan(ether_type(data)); octets += VLAN_OCTETS)
		data += VLAN_OCTETS;
	protocol = ether_type(data);
	tags = octets < plan.side[side].tagged ? TOO_FEW_TAGS : octets && !right ? OTHER_TAGS : RIGHT_TAGS;
	data += ETH_HLEN;
	if (protocol == ip_type(false))
		return count_packet(data, end, odd, tags, false, side);
	return protocol == ip_type(true) && count_packet(data, end, odd, tags, true, side);
}
