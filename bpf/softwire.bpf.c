// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * A reference for address sharing over IPv6: the stateless ends of MAP-E, MAP-T and lw4o6, for any number of
 * subscribers. It is a device, not part of the tester: other devices are compared with it, and customer edges are
 * tested against it.
 *
 * It makes one interface an IPv6-only link for IPv4: IPv4 packets that the kernel routes to it leave as IPv6, and IPv6
 * packets of a softwire that it receives continue as IPv4. The kernel does the rest: routing, neighbours, time to live,
 * and ICMP for packets that are too big, because the route has the softwire's MTU.
 */
#include <linux/pkt_cls.h>
#include "common.h"
#include "softwire.h"

#define IPV4_WHOLE	 0x4000 /* don't fragment */
#define ICMP_ECHO	 8
#define ICMP_ECHOREPLY	 0
#define ICMPV6_ECHO	 128
#define ICMPV6_ECHOREPLY 129
#define ND_FIRST	 133 /* types of neighbour discovery, RFC 4861 */
#define ND_LAST		 137
#define NEXT_FRAGMENT	 44
#define HOP_LIMIT	 64
/* RFC 7915 section 5.1: smaller IPv4 packets, translated to IPv6, fit every IPv6 link without fragmentation. */
#define NEVER_FRAGMENTED 1260
/* Since Linux 6.3; missing in the headers of older systems. */
#define ADJ_ROOM_DECAP_L3_IPV4 (1ULL << 7)

#define UDP_CHECK  6
#define TCP_CHECK  16
#define ICMP_CHECK 2

/* Set by natgauge-softwire before loading. */
const volatile struct softwire softwire;

/* The binding table, lw4o6 only; user space sets its size. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct binding_key);
	__type(value, struct address6);
	__uint(max_entries, 1);
} bindings SEC(".maps");

NUMBERED(PERCPU_ARRAY, softwire_counts, 1, struct softwire_counts);

#define COUNT(member)                                                                                                  \
	do {                                                                                                           \
		__u32 zero = 0;                                                                                        \
		struct softwire_counts *counts = bpf_map_lookup_elem(&softwire_counts, &zero);                         \
		if (counts)                                                                                            \
			counts->member++;                                                                              \
	} while (0)

#define DROP(member)                                                                                                   \
	({                                                                                                             \
		COUNT(member);                                                                                         \
		TC_ACT_SHOT;                                                                                           \
	})

/* A packet's addresses, ports and protocol, in host byte order. */
struct flow {
	__u32 source;
	__u32 destination;
	__u16 source_port; /* of ICMP echo both are the identifier, RFC 7597 section 8.2 */
	__u16 destination_port;
	__u8 protocol; /* its IPv4 number */
	__u8 icmp_type;
};

static __always_inline struct address6 address6_of(const struct in6_addr *from)
{
	const __be32 *words = from->in6_u.u6_addr32;

	return (struct address6){ .high = (__u64)bpf_ntohl(words[0]) << 32 | bpf_ntohl(words[1]),
				  .low = (__u64)bpf_ntohl(words[2]) << 32 | bpf_ntohl(words[3]) };
}

static __always_inline void put_address6(struct in6_addr *to, const struct address6 *from)
{
	__be32 *words = to->in6_u.u6_addr32;

	words[0] = bpf_htonl(from->high >> 32);
	words[1] = bpf_htonl(from->high);
	words[2] = bpf_htonl(from->low >> 32);
	words[3] = bpf_htonl(from->low);
}

static __always_inline bool same6(const struct address6 *a, const struct address6 *b)
{
	return a->high == b->high && a->low == b->low;
}

/* Set `out` to the IPv6 address of the subscriber with this address and port; false where there is none. */
static __always_inline bool subscriber(__u32 address, __u16 port, struct address6 *out)
{
	__s32 psid = psid_of(&softwire, port);
	const struct address6 *bound;
	struct binding_key key;

	if (psid < 0)
		return false;
	if (softwire.technology != LW4O6)
		return map_address(&softwire, address, psid, out);
	key = (struct binding_key){ .address = address, .psid = psid };
	bound = bpf_map_lookup_elem(&bindings, &key);
	if (!bound)
		return false;
	*out = *bound;
	return true;
}

/* Read ports or echo identifier at an offset of the frame; false when it has none. */
static __always_inline bool load_ports(struct __sk_buff *skb, __u32 at, struct flow *flow)
{
	__be16 words[4];

	if (flow->protocol == IPPROTO_UDP || flow->protocol == IPPROTO_TCP) {
		if (bpf_skb_load_bytes(skb, at, words, 4))
			return false;
		flow->source_port = bpf_ntohs(words[0]);
		flow->destination_port = bpf_ntohs(words[1]);
		return true;
	}
	if (flow->protocol != IPPROTO_ICMP || bpf_skb_load_bytes(skb, at, words, sizeof(words)))
		return false;
	flow->icmp_type = *(const __u8 *)words;
	flow->source_port = bpf_ntohs(words[2]);
	flow->destination_port = flow->source_port;
	return true;
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
	if (!load_ports(skb, at + header, flow))
		return DROP(protocol);
	if (ip->protocol == IPPROTO_ICMP && flow->icmp_type != ICMP_ECHO && flow->icmp_type != ICMP_ECHOREPLY)
		return DROP(protocol);
	return 0;
}

static __always_inline int put_ethertype(struct __sk_buff *skb, __u16 type)
{
	__be16 value = bpf_htons(type);

	return bpf_skb_store_bytes(skb, offsetof(struct ethhdr, h_proto), &value, sizeof(value), 0);
}

static __always_inline struct ipv6hdr header6(const struct iphdr *ip, __u16 octets, __u8 next, __u8 hops,
					      const struct address6 *source, const struct address6 *destination)
{
	struct ipv6hdr ip6 = {
		.version = 6,
		.priority = ip->tos >> 4,
		.flow_lbl = { ip->tos << 4, 0, 0 },
		.payload_len = bpf_htons(octets),
		.nexthdr = next,
		.hop_limit = hops,
	};

	put_address6(&ip6.saddr, source);
	put_address6(&ip6.daddr, destination);
	return ip6;
}

static __always_inline int wrap(struct __sk_buff *skb, const struct iphdr *ip, const struct address6 *source,
				const struct address6 *destination)
{
	struct ipv6hdr ip6 = header6(ip, bpf_ntohs(ip->tot_len), IPPROTO_IPIP, HOP_LIMIT, source, destination);

	if (bpf_skb_adjust_room(skb, sizeof(ip6), BPF_ADJ_ROOM_MAC,
				BPF_F_ADJ_ROOM_ENCAP_L3_IPV6 | BPF_F_ADJ_ROOM_FIXED_GSO) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN, &ip6, sizeof(ip6), 0) || put_ethertype(skb, ETH_P_IPV6))
		return DROP(failed);
	COUNT(wrapped);
	return TC_ACT_OK;
}

/* Correct the transport checksum at `transport` for a changed pseudo header. */
static __always_inline int correct_checksum(struct __sk_buff *skb, __u32 transport, __u8 protocol, __s64 difference)
{
	if (protocol == IPPROTO_UDP)
		return bpf_l4_csum_replace(skb, transport + UDP_CHECK, 0, difference,
					   BPF_F_PSEUDO_HDR | BPF_F_MARK_MANGLED_0);
	return bpf_l4_csum_replace(skb, transport + (protocol == IPPROTO_TCP ? TCP_CHECK : ICMP_CHECK), 0, difference,
				   BPF_F_PSEUDO_HDR);
}

/* Only ICMPv6 has a pseudo header in its checksum. The difference to ICMP is that whole header and the type. */
struct icmp_pseudo {
	struct in6_addr source;
	struct in6_addr destination;
	__be32 octets;
	__be32 next;
	__be32 type; /* at its place in a 16-bit word */
};

static __always_inline __s64 icmp_difference(const struct ipv6hdr *ip6, __u8 icmp, __u8 icmpv6, bool to_ipv6)
{
	struct icmp_pseudo six = { .source = ip6->saddr,
				   .destination = ip6->daddr,
				   .octets = bpf_htonl(bpf_ntohs(ip6->payload_len)),
				   .next = bpf_htonl(IPPROTO_ICMPV6),
				   .type = bpf_htonl((__u32)icmpv6 << 24) };
	struct icmp_pseudo four = { .type = bpf_htonl((__u32)icmp << 24) };

	if (to_ipv6)
		return bpf_csum_diff((void *)&four, sizeof(four), (void *)&six, sizeof(six), 0);
	return bpf_csum_diff((void *)&six, sizeof(six), (void *)&four, sizeof(four), 0);
}

static __always_inline int put_icmp_type(struct __sk_buff *skb, __u32 transport, __u8 type)
{
	return bpf_skb_store_bytes(skb, transport, &type, sizeof(type), 0);
}

static __always_inline int translate_to_6(struct __sk_buff *skb, const struct iphdr *ip, const struct flow *flow,
					  const struct address6 *source, const struct address6 *destination)
{
	bool icmp = flow->protocol == IPPROTO_ICMP;
	__u8 icmpv6 = flow->icmp_type == ICMP_ECHO ? ICMPV6_ECHO : ICMPV6_ECHOREPLY;
	struct ipv6hdr ip6 = header6(ip, bpf_ntohs(ip->tot_len) - sizeof(*ip), icmp ? IPPROTO_ICMPV6 : flow->protocol,
				     ip->ttl, source, destination);
	__u32 transport = ETH_HLEN + sizeof(ip6);
	__s64 difference;
	__be16 check;

	if (ip->ihl != 5)
		return DROP(protocol);
	if (flow->protocol == IPPROTO_UDP) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(*ip) + UDP_CHECK, &check, sizeof(check)))
			return DROP(malformed);
		if (!check)
			return DROP(no_checksum);
	}
	if (icmp)
		difference = icmp_difference(&ip6, flow->icmp_type, icmpv6, true);
	else
		difference = bpf_csum_diff((void *)&ip->saddr, 8, (void *)&ip6.saddr, 32, 0);
	if (bpf_skb_change_proto(skb, bpf_htons(ETH_P_IPV6), 0) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN, &ip6, sizeof(ip6), 0) || put_ethertype(skb, ETH_P_IPV6) ||
	    (icmp && put_icmp_type(skb, transport, icmpv6)) ||
	    correct_checksum(skb, transport, flow->protocol, difference))
		return DROP(failed);
	COUNT(wrapped);
	return TC_ACT_OK;
}

static __always_inline int translate_to_4(struct __sk_buff *skb, const struct ipv6hdr *ip6, const struct flow *flow)
{
	bool icmp = flow->protocol == IPPROTO_ICMP;
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
	__u32 transport = ETH_HLEN + sizeof(ip);
	__u8 type = flow->icmp_type == ICMPV6_ECHO ? ICMP_ECHO : ICMP_ECHOREPLY;
	__s64 difference, sum = bpf_csum_diff(NULL, 0, (void *)&ip, sizeof(ip), 0);

	sum = (sum & 0xffff) + ((__u32)sum >> 16);
	ip.check = ~(sum + (sum >> 16));
	if (icmp)
		difference = icmp_difference(ip6, type, flow->icmp_type, false);
	else
		difference = bpf_csum_diff((void *)&ip6->saddr, 32, (void *)&ip.saddr, 8, 0);
	if (bpf_skb_change_proto(skb, bpf_htons(ETH_P_IP), 0) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN, &ip, sizeof(ip), 0) || put_ethertype(skb, ETH_P_IP) ||
	    (icmp && put_icmp_type(skb, transport, type)) ||
	    correct_checksum(skb, transport, flow->protocol, difference))
		return DROP(failed);
	COUNT(unwrapped);
	return TC_ACT_OK;
}

/* Outgoing IPv4: the subscriber is the source at the customer's end, the destination at the provider's. */
SEC("tc")
int softwire_out(struct __sk_buff *skb)
{
	bool edge = softwire.role == CUSTOMER_EDGE;
	__u32 longer =
		softwire.technology == MAP_T ? sizeof(struct ipv6hdr) - sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	struct address6 own, far;
	struct flow flow;
	struct iphdr ip;
	int refused;

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return TC_ACT_OK;
	refused = load_flow4(skb, ETH_HLEN, &ip, &flow);
	if (refused)
		return refused;
	if (!subscriber(edge ? flow.source : flow.destination, edge ? flow.source_port : flow.destination_port, &own))
		return DROP(no_subscriber);
	if (!skb->gso_size && bpf_ntohs(ip.tot_len) + longer > softwire.most_octets)
		return DROP(too_big);
	far = softwire.relay;
	if (softwire.technology == MAP_T)
		far = embedded(&softwire, edge ? flow.destination : flow.source);
	if (softwire.technology == MAP_T)
		return translate_to_6(skb, &ip, &flow, edge ? &own : &far, edge ? &far : &own);
	return wrap(skb, &ip, edge ? &own : &far, edge ? &far : &own);
}

/* Returns 0 if the flow's subscriber has this IPv6 address, otherwise the verdict. */
static __always_inline int refuse_wrong_owner(const struct flow *flow, const struct address6 *at)
{
	bool edge = softwire.role == CUSTOMER_EDGE;
	struct address6 right;

	if (!subscriber(edge ? flow->destination : flow->source, edge ? flow->destination_port : flow->source_port,
			&right))
		return DROP(no_subscriber);
	return same6(&right, at) ? 0 : DROP(wrong_port_set);
}

static __always_inline int unwrap(struct __sk_buff *skb, const struct ipv6hdr *ip6)
{
	bool edge = softwire.role == CUSTOMER_EDGE;
	struct address6 source = address6_of(&ip6->saddr), destination = address6_of(&ip6->daddr), relay;
	struct flow flow;
	struct iphdr ip;
	int refused;

	relay = softwire.relay;
	if (ip6->nexthdr != IPPROTO_IPIP || (!edge && !same6(&destination, &relay)))
		return TC_ACT_OK;
	if (edge && !same6(&source, &relay))
		return DROP(wrong_relay);
	refused = load_flow4(skb, ETH_HLEN + sizeof(*ip6), &ip, &flow);
	if (!refused)
		refused = refuse_wrong_owner(&flow, edge ? &destination : &source);
	if (refused)
		return refused;
	if (bpf_skb_adjust_room(skb, -(__s32)sizeof(*ip6), BPF_ADJ_ROOM_MAC,
				ADJ_ROOM_DECAP_L3_IPV4 | BPF_F_ADJ_ROOM_FIXED_GSO) ||
	    put_ethertype(skb, ETH_P_IP))
		return DROP(failed);
	COUNT(unwrapped);
	return TC_ACT_OK;
}

/* Whether it is neighbour discovery, which no router forwards: the neighbour may have an IPv4-embedded address. */
static __always_inline bool is_discovery(struct __sk_buff *skb, const struct ipv6hdr *ip6)
{
	__u8 type;

	return ip6->nexthdr == IPPROTO_ICMPV6 && ip6->hop_limit == 255 &&
	       !bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(*ip6), &type, sizeof(type)) && type >= ND_FIRST &&
	       type <= ND_LAST;
}

static __always_inline int translate_back(struct __sk_buff *skb, const struct ipv6hdr *ip6)
{
	bool edge = softwire.role == CUSTOMER_EDGE;
	struct address6 source = address6_of(&ip6->saddr), destination = address6_of(&ip6->daddr);
	struct address6 at = edge ? destination : source, far = edge ? source : destination;
	/* RFC 7597 section 6: 16 bits 0, the IPv4 address, the PSID. */
	__u32 own4 = at.low >> 16, far4 = extracted(&softwire, &far);
	struct flow flow = {};
	int refused;

	if (!in_relay_prefix(&softwire, &far) || is_discovery(skb, ip6))
		return TC_ACT_OK;
	if (ip6->nexthdr == NEXT_FRAGMENT)
		return DROP(fragment);
	if (ip6->nexthdr == IPPROTO_ICMP)
		return DROP(protocol);
	flow.source = edge ? far4 : own4;
	flow.destination = edge ? own4 : far4;
	flow.protocol = ip6->nexthdr == IPPROTO_ICMPV6 ? IPPROTO_ICMP : ip6->nexthdr;
	if (!load_ports(skb, ETH_HLEN + sizeof(*ip6), &flow))
		return DROP(protocol);
	if (flow.protocol == IPPROTO_ICMP && flow.icmp_type != ICMPV6_ECHO && flow.icmp_type != ICMPV6_ECHOREPLY)
		return DROP(protocol);
	refused = refuse_wrong_owner(&flow, &at);
	if (refused)
		return refused;
	return translate_to_4(skb, ip6, &flow);
}

/* Incoming IPv6: packets that belong to no softwire pass unchanged. */
SEC("tc")
int softwire_in(struct __sk_buff *skb)
{
	struct ipv6hdr ip6;

	if (skb->protocol != bpf_htons(ETH_P_IPV6))
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip6, sizeof(ip6)) || ip6.version != 6 ||
	    ETH_HLEN + sizeof(ip6) + bpf_ntohs(ip6.payload_len) > skb->len)
		return TC_ACT_OK;
	return softwire.technology == MAP_T ? translate_back(skb, &ip6) : unwrap(skb, &ip6);
}
