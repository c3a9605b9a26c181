/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Answers ARP (RFC 826) and neighbour discovery (RFC 4861) for the tester's addresses; no static entries are needed. */
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
	struct address target = {};
	__be32 asked;

	if ((void *)(f + 1) > end || f->operation != bpf_htons(ARPOP_REQUEST) || side->link != FAMILY_IPV4)
		return 0;
	asked = f->target;
	target.low = bpf_ntohl(asked);
	if (!in_range(&side->neighbours, target))
		return 0;
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
