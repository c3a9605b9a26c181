// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * A reference for address sharing over IPv6: the stateless ends of MAP-E (RFC 7597), MAP-T (RFC 7599) and lw4o6 (RFC
 * 7596), for any number of subscribers. It is a device, not part of the tester: other devices are compared with it, and
 * customer edges are tested against it. Their arithmetic of addresses and ports is not shared.
 *
 * It makes one interface an IPv6-only link for IPv4: IPv4 packets that the kernel routes to it leave as IPv6, and IPv6
 * packets of a softwire that it receives continue as IPv4. The kernel does the rest: routing, neighbours, time to live,
 * and ICMP for packets that are too big, because the route has the softwire's MTU.
 */
#include <linux/pkt_cls.h>
#include "common.h"

#define IPV4_WHOLE     0x4000 /* don't fragment */
#define ICMP_ECHO      8
#define ICMP_ECHOREPLY 0
#define ND_FIRST       133 /* types of neighbour discovery, RFC 4861 */
#define ND_LAST	       137
#define HOP_LIMIT      64
/* RFC 7915 section 5.1: smaller IPv4 packets, translated to IPv6, fit every IPv6 link without fragmentation. */
#define NEVER_FRAGMENTED 1260
/* Since Linux 6.3; missing in the headers of older systems. */
#define ADJ_ROOM_DECAP_L3_IPV4 (1ULL << 7)

enum technology { MAP_E = 0, MAP_T = 1, LW4O6 = 2 };

/* Set by natgauge-softwire before loading. Lengths in bits. */
const volatile struct softwire {
	enum technology technology;
	__u32 edge;	   /* 1: the customer's end (MAP CE, tunnel of the lwB4); 0: the provider's (MAP BR, lwAFTR) */
	__u8 psid_offset;  /* a */
	__u8 psid_length;  /* k */
	__u8 ea_length;	   /* of the embedded address bits; MAP only */
	__u8 ea_shift;	   /* 64 - rule IPv6 prefix - ea_length; MAP only */
	__u8 relay_length; /* of the BR's prefix, 32 to 64 or 96; MAP-T only */
	__u8 unused[3];
	__u32 prefix4; /* rule IPv4 prefix; MAP only */
	__u32 mask4;
	__u32 most_octets; /* of an IPv6 packet on the link */
	__u64 prefix6;	   /* upper half of the rule IPv6 prefix; MAP only */
	/* Address of the BR or lwAFTR; MAP-T: the BR's prefix, the default mapping rule (RFC 7599 section 5.1). */
	struct address relay;
} softwire;

/* Key of the lwAFTR's binding table (RFC 7596 section 6.1). */
struct binding_key {
	__u32 address;
	__u32 psid;
};

/* The binding table, lw4o6 only; user space sets its size. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct binding_key);
	__type(value, struct address);
	__uint(max_entries, 1);
} bindings SEC(".maps");

/* Frames by outcome; frames that belong to no softwire are not counted. */
struct softwire_counts {
	__u64 wrapped;	      /* IPv4 to IPv6 */
	__u64 unwrapped;      /* IPv6 to IPv4 */
	__u64 wrong_port_set; /* port or IPv4 address not the sender's, RFC 7597 section 8.1, RFC 7596 section 6.2 */
	__u64 no_subscriber;  /* no rule, no binding, or a port outside all sets */
	__u64 wrong_relay;    /* at the customer's end: not from the BR */
	__u64 fragment;	      /* has no port, or belongs to a fragmented datagram */
	__u64 protocol;	      /* not UDP, TCP or ICMP echo; MAP-T: or with IPv4 options or IPv6 extension headers */
	__u64 no_checksum;    /* UDP without a checksum, which IPv6 forbids; MAP-T */
	__u64 too_big;	      /* larger than the IPv6 link's MTU */
	__u64 malformed;
	__u64 failed; /* the kernel could not resize the packet */
};

NUMBERED(PERCPU_ARRAY, softwire_counts, 1, struct softwire_counts);

/* Counts a frame; the verdict on it. */
#define COUNTED(member, verdict)                                                                                       \
	({                                                                                                             \
		__u32 zero = 0;                                                                                        \
		struct softwire_counts *counts = bpf_map_lookup_elem(&softwire_counts, &zero);                         \
		if (counts)                                                                                            \
			counts->member++;                                                                              \
		verdict;                                                                                               \
	})
#define DROP(member) COUNTED(member, TC_ACT_SHOT)

/* A packet's addresses, ports and protocol, in host byte order. */
struct flow {
	__u32 source;
	__u32 destination;
	__u16 source_port; /* of ICMP echo both are the identifier, RFC 7597 section 8.2 */
	__u16 destination_port;
	__u8 protocol; /* its IPv4 number */
	bool request;  /* ICMP echo */
};

/* By its members: in a copy of a struct of constants clang may find the zeros of the source. */
static __always_inline struct address relay(void)
{
	return (struct address){ .high = softwire.relay.high, .low = softwire.relay.low };
}

/* RFC 6052 section 2.2. */
static __always_inline struct address embedded(__u32 address)
{
	struct address a = relay();
	__u32 left = (softwire.relay_length - 32) & 63; /* bits of the address that do not fit into the upper half */

	if (softwire.relay_length == 96) {
		a.low |= address;
	} else {
		a.high |= (__u64)address >> left;
		a.low |= left ? (__u64)(address & ((1ULL << left) - 1)) << (56 - left) : 0;
	}
	return a;
}

static __always_inline __u32 extracted(struct address a)
{
	__u32 left = (softwire.relay_length - 32) & 63;

	return softwire.relay_length == 96 ? a.low : a.high << left | a.low >> ((56 - left) & 63);
}

/*
 * Set `out` to the IPv6 address of the flow's subscriber, its source or destination (RFC 7597 sections 5 and 6).
 * Returns 0, or the verdict: ports whose offset bits are 0 are in no set.
 */
static __always_inline int find_subscriber(const struct flow *flow, bool is_source, struct address *out)
{
	__u32 a = softwire.psid_offset & 15, k = softwire.psid_length & 31;
	__u32 port = is_source ? flow->source_port : flow->destination_port;
	struct binding_key key = { .address = is_source ? flow->source : flow->destination,
				   .psid = port >> ((16 - a - k) & 31) & ((1U << k) - 1) };
	__u64 bits = (__u64)(key.address & ~softwire.mask4) << k | key.psid;
	struct address mapped = { .high = softwire.prefix6 |
					  (softwire.ea_length ? bits << (softwire.ea_shift & 63) : 0),
				  .low = (__u64)key.address << 16 | key.psid };
	const struct address *found = (key.address & softwire.mask4) == softwire.prefix4 ? &mapped : NULL;

	if (softwire.technology == LW4O6)
		found = bpf_map_lookup_elem(&bindings, &key);
	if (!found || (a && !(port >> (16 - a))))
		return DROP(no_subscriber);
	*out = *found;
	return 0;
}

/* Read ports or echo identifier at an offset of the frame; false when it has none. */
static __always_inline bool load_ports(struct __sk_buff *skb, __u32 at, struct flow *flow, const bool ipv6)
{
	__be16 words[4];
	__u8 type;

	if (flow->protocol == IPPROTO_UDP || flow->protocol == IPPROTO_TCP) {
		if (bpf_skb_load_bytes(skb, at, words, 4))
			return false;
		flow->source_port = bpf_ntohs(words[0]);
		flow->destination_port = bpf_ntohs(words[1]);
		return true;
	}
	if (flow->protocol != IPPROTO_ICMP || bpf_skb_load_bytes(skb, at, words, sizeof(words)))
		return false;
	type = *(const __u8 *)words;
	flow->source_port = bpf_ntohs(words[2]);
	flow->destination_port = flow->source_port;
	flow->request = type == (ipv6 ? ICMPV6_ECHO_REQUEST : ICMP_ECHO);
	return flow->request || type == (ipv6 ? ICMPV6_ECHO_REPLY : ICMP_ECHOREPLY);
}

/* Read the IPv4 header, outer or inner, at offset `at`. Returns 0, or the verdict for a frame without usable ports. */
static __always_inline int load_flow4(struct __sk_buff *skb, __u32 at, struct iphdr *ip, struct flow *flow)
{
	__u32 header, total;

	if (bpf_skb_load_bytes(skb, at, ip, sizeof(*ip)))
		return DROP(malformed);
	header = ip->ihl * 4;
	total = bpf_ntohs(ip->tot_len);
	if (ip->version != 4 || header < sizeof(*ip) || total < header || at + total > skb->len)
		return DROP(malformed);
	if (ip->frag_off & bpf_htons(IPV4_FRAGMENT))
		return DROP(fragment);
	*flow = (struct flow){ .source = bpf_ntohl(ip->saddr),
			       .destination = bpf_ntohl(ip->daddr),
			       .protocol = ip->protocol };
	return load_ports(skb, at + header, flow, false) ? 0 : DROP(protocol);
}

static __always_inline int put_ethertype(struct __sk_buff *skb, __u16 type)
{
	__be16 value = bpf_htons(type);

	return bpf_skb_store_bytes(skb, offsetof(struct ethhdr, h_proto), &value, sizeof(value), 0);
}

static __always_inline struct ipv6hdr header6(const struct iphdr *ip, __u16 octets, __u8 next, __u8 hops,
					      struct address source, struct address destination)
{
	struct ipv6hdr ip6 = {
		.version = 6,
		.priority = ip->tos >> 4,
		.flow_lbl = { ip->tos << 4, 0, 0 },
		.payload_len = bpf_htons(octets),
		.nexthdr = next,
		.hop_limit = hops,
	};

	put_address6(ip6.saddr.in6_u.u6_addr32, source);
	put_address6(ip6.daddr.in6_u.u6_addr32, destination);
	return ip6;
}

static __always_inline int wrap(struct __sk_buff *skb, const struct iphdr *ip, struct address source,
				struct address destination)
{
	struct ipv6hdr ip6 = header6(ip, bpf_ntohs(ip->tot_len), IPPROTO_IPIP, HOP_LIMIT, source, destination);

	if (bpf_skb_adjust_room(skb, sizeof(ip6), BPF_ADJ_ROOM_MAC,
				BPF_F_ADJ_ROOM_ENCAP_L3_IPV6 | BPF_F_ADJ_ROOM_FIXED_GSO) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN, &ip6, sizeof(ip6), 0) || put_ethertype(skb, ETH_P_IPV6))
		return DROP(failed);
	return COUNTED(wrapped, TC_ACT_OK);
}

/* What the checksum covers in one family only: the addresses; of ICMP the type, and IPv6's whole pseudo header. */
struct covered {
	struct in6_addr source, destination;
	__be32 octets, next;
	__be32 type; /* at its place in a 16-bit word */
};

/* Put the other family's header in place of that of a packet, and correct the ICMP type and the checksum behind it. */
static __always_inline int translate(struct __sk_buff *skb, const struct iphdr *ip, const struct ipv6hdr *ip6,
				     bool request, const bool to_ipv6)
{
	const __u32 octets = to_ipv6 ? sizeof(*ip6) : sizeof(*ip), transport = ETH_HLEN + octets;
	const __u16 ethertype = to_ipv6 ? ETH_P_IPV6 : ETH_P_IP;
	bool icmp = ip->protocol == IPPROTO_ICMP, udp = ip->protocol == IPPROTO_UDP;
	__u8 type4 = request ? ICMP_ECHO : ICMP_ECHOREPLY, type6 = request ? ICMPV6_ECHO_REQUEST : ICMPV6_ECHO_REPLY;
	struct covered four = {}, six = { .source = ip6->saddr, .destination = ip6->daddr };
	__u32 check = transport + (udp ? offsetof(struct udphdr, check) : offsetof(struct tcphdr, check));
	__s64 difference;

	if (icmp) {
		check = transport + offsetof(struct icmp6hdr, icmp6_cksum);
		six.octets = bpf_htonl(bpf_ntohs(ip6->payload_len));
		six.next = bpf_htonl(IPPROTO_ICMPV6);
		six.type = bpf_htonl((__u32)type6 << 24);
		four.type = bpf_htonl((__u32)type4 << 24);
	} else {
		four.source.in6_u.u6_addr32[0] = ip->saddr;
		four.destination.in6_u.u6_addr32[0] = ip->daddr;
	}
	difference = to_ipv6 ? bpf_csum_diff((void *)&four, sizeof(four), (void *)&six, sizeof(six), 0)
			     : bpf_csum_diff((void *)&six, sizeof(six), (void *)&four, sizeof(four), 0);
	if (bpf_skb_change_proto(skb, bpf_htons(ethertype), 0) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN, to_ipv6 ? (void *)ip6 : (void *)ip, octets, 0) ||
	    put_ethertype(skb, ethertype) ||
	    (icmp && bpf_skb_store_bytes(skb, transport, to_ipv6 ? &type6 : &type4, 1, 0)) ||
	    bpf_l4_csum_replace(skb, check, 0, difference, BPF_F_PSEUDO_HDR | (udp ? BPF_F_MARK_MANGLED_0 : 0)))
		return DROP(failed);
	return to_ipv6 ? COUNTED(wrapped, TC_ACT_OK) : COUNTED(unwrapped, TC_ACT_OK);
}

static __always_inline int translate_to_6(struct __sk_buff *skb, const struct iphdr *ip, const struct flow *flow,
					  struct address source, struct address destination)
{
	__u8 next = flow->protocol == IPPROTO_ICMP ? IPPROTO_ICMPV6 : flow->protocol;
	struct ipv6hdr ip6 = header6(ip, bpf_ntohs(ip->tot_len) - sizeof(*ip), next, ip->ttl, source, destination);
	__be16 check;

	if (ip->ihl != 5)
		return DROP(protocol);
	if (flow->protocol == IPPROTO_UDP) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(*ip) + offsetof(struct udphdr, check), &check,
				       sizeof(check)))
			return DROP(malformed);
		if (!check)
			return DROP(no_checksum);
	}
	return translate(skb, ip, &ip6, flow->request, true);
}

static __always_inline int translate_to_4(struct __sk_buff *skb, const struct ipv6hdr *ip6, const struct flow *flow)
{
	__u16 octets = bpf_ntohs(ip6->payload_len) + sizeof(struct iphdr);
	bool whole = octets > NEVER_FRAGMENTED;
	struct iphdr ip = { .version = 4,
			    .ihl = 5,
			    .tos = ip6->priority << 4 | ip6->flow_lbl[0] >> 4,
			    .tot_len = bpf_htons(octets),
			    .id = whole ? 0 : bpf_get_prandom_u32(),
			    .frag_off = whole ? bpf_htons(IPV4_WHOLE) : 0,
			    .ttl = ip6->hop_limit,
			    .protocol = flow->protocol,
			    .saddr = bpf_htonl(flow->source),
			    .daddr = bpf_htonl(flow->destination) };

	ip.check = ~fold(sum_words(&ip, sizeof(ip)));
	return translate(skb, &ip, ip6, flow->request, false);
}

/* Outgoing IPv4: the subscriber is the source at the customer's end, the destination at the provider's. */
SEC("tc")
int softwire_out(struct __sk_buff *skb)
{
	bool edge = softwire.edge, translates = softwire.technology == MAP_T;
	__u32 longer = translates ? sizeof(struct ipv6hdr) - sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	struct address own, far;
	struct flow flow;
	struct iphdr ip;
	int refused;

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return TC_ACT_OK;
	refused = load_flow4(skb, ETH_HLEN, &ip, &flow);
	if (!refused)
		refused = find_subscriber(&flow, edge, &own);
	if (refused)
		return refused;
	if (!skb->gso_size && bpf_ntohs(ip.tot_len) + longer > softwire.most_octets)
		return DROP(too_big);
	far = translates ? embedded(edge ? flow.destination : flow.source) : relay();
	return translates ? translate_to_6(skb, &ip, &flow, edge ? own : far, edge ? far : own)
			  : wrap(skb, &ip, edge ? own : far, edge ? far : own);
}

/* Returns 0 if the flow's subscriber has this IPv6 address, otherwise the verdict. */
static __always_inline int refuse_wrong_owner(const struct flow *flow, struct address at)
{
	struct address right;
	int refused = find_subscriber(flow, !softwire.edge, &right);

	return refused ? refused : same_address(right, at) ? 0 : DROP(wrong_port_set);
}

static __always_inline int unwrap(struct __sk_buff *skb, const struct ipv6hdr *ip6, struct address at,
				  struct address far)
{
	bool from_relay = same_address(far, relay());
	struct flow flow;
	struct iphdr ip;
	int refused;

	if (ip6->nexthdr != IPPROTO_IPIP || (!softwire.edge && !from_relay))
		return TC_ACT_OK;
	if (!from_relay)
		return DROP(wrong_relay);
	refused = load_flow4(skb, ETH_HLEN + sizeof(*ip6), &ip, &flow);
	if (!refused)
		refused = refuse_wrong_owner(&flow, at);
	if (refused)
		return refused;
	if (bpf_skb_adjust_room(skb, -(__s32)sizeof(*ip6), BPF_ADJ_ROOM_MAC,
				ADJ_ROOM_DECAP_L3_IPV4 | BPF_F_ADJ_ROOM_FIXED_GSO) ||
	    put_ethertype(skb, ETH_P_IP))
		return DROP(failed);
	return COUNTED(unwrapped, TC_ACT_OK);
}

/* Whether it is neighbour discovery, which no router forwards: the neighbour may have an IPv4-embedded address. */
static __always_inline bool is_discovery(struct __sk_buff *skb, const struct ipv6hdr *ip6)
{
	__u8 type;

	return ip6->nexthdr == IPPROTO_ICMPV6 && ip6->hop_limit == 255 &&
	       !bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(*ip6), &type, sizeof(type)) && type >= ND_FIRST &&
	       type <= ND_LAST;
}

static __always_inline int translate_back(struct __sk_buff *skb, const struct ipv6hdr *ip6, struct address at,
					  struct address far)
{
	bool edge = softwire.edge;
	/* RFC 7597 section 6: 16 bits 0, the IPv4 address, the PSID. */
	__u32 own4 = at.low >> 16, far4 = extracted(far);
	struct flow flow = {};
	int refused;

	if (!same_address(far, embedded(far4)) || is_discovery(skb, ip6))
		return TC_ACT_OK;
	if (ip6->nexthdr == IPPROTO_FRAGMENT)
		return DROP(fragment);
	if (ip6->nexthdr == IPPROTO_ICMP)
		return DROP(protocol);
	flow.source = edge ? far4 : own4;
	flow.destination = edge ? own4 : far4;
	flow.protocol = ip6->nexthdr == IPPROTO_ICMPV6 ? IPPROTO_ICMP : ip6->nexthdr;
	if (!load_ports(skb, ETH_HLEN + sizeof(*ip6), &flow, true))
		return DROP(protocol);
	refused = refuse_wrong_owner(&flow, at);
	return refused ? refused : translate_to_4(skb, ip6, &flow);
}

/* Incoming IPv6, from or to a subscriber's address `at`: packets that belong to no softwire pass unchanged. */
SEC("tc")
int softwire_in(struct __sk_buff *skb)
{
	struct address at, far;
	struct ipv6hdr ip6;

	if (skb->protocol != bpf_htons(ETH_P_IPV6))
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip6, sizeof(ip6)) || ip6.version != 6 ||
	    ETH_HLEN + sizeof(ip6) + bpf_ntohs(ip6.payload_len) > skb->len)
		return TC_ACT_OK;
	at = address6(softwire.edge ? &ip6.daddr : &ip6.saddr);
	far = address6(softwire.edge ? &ip6.saddr : &ip6.daddr);
	return softwire.technology == MAP_T ? translate_back(skb, &ip6, at, far) : unwrap(skb, &ip6, at, far);
}
