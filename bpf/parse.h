/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Parses received frames: addresses, ports, tag, checksums and content. */
#ifndef NATGAUGE_PARSE_H
#define NATGAUGE_PARSE_H

#define MOST_MORE 512

/* A received test frame, both families. */
struct received_frame {
	struct address source, destination;
	struct address tunnel_source, tunnel_destination; /* where the frame is in a tunnel */
	__u16 source_port, destination_port;
	__u32 stamps[2]; /* TCP: time stamp, and echo of the peer's */
	struct tag tag;
	__u32 size; /* as of size_of() */
	bool intact;
	bool other;	/* an intact message with other content */
	bool unchecked; /* over IPv6 without a checksum, and taken for intact */
};

/* Checksum sum of `octets` octets after the tag; the caller has checked that the frame has them. */
static __always_inline __u64 received_padding_sum(__u8 *from, int octets)
{
	int odd = octets & 3, at = 0;
	__s64 sum = 0;

	for (; at + 512 <= octets - odd; at += 512)
		sum = bpf_csum_diff(NULL, 0, (__be32 *)(from + at), 512, sum);
	if (at < octets - odd)
		sum = bpf_csum_diff(NULL, 0, (__be32 *)(from + at), octets - odd - at, sum);
	at = octets - odd;
	if (odd >= 2) {
		sum += *(__u16 *)(from + at);
		at += 2;
	}
	if (odd & 1)
		sum += from[at];
	return sum;
}

/* Whether arriving messages may be longer than the plan's: answers of a server that is not the tester's. */
static __always_inline bool may_add(const enum frame_kind kind)
{
	return kind == FRAME_UDP && plan.handed_on == HAND_ALL;
}

/*
 * Octets after the answer of a server, at most MOST_MORE: it may add records in the authority and additional sections
 * (RFC 1035 section 4.1). `octets` are those of the frame's packet beyond the plan's message.
 */
static __always_inline int added_octets(const enum frame_kind kind, int octets)
{
	if (!may_add(kind))
		return 0;
	/* Otherwise the compiler would compute all and choose, where the kernel removes a branch. */
	barrier_var(octets);
	return octets > 0 && octets <= MOST_MORE ? octets : 0;
}

/*
 * Checksum sum of `octets` octets that begin at an even offset, up to the end of the frame. The verifier follows each
 * step, so there are few.
 */
static __always_inline __u64 added_sum(void *from, const void *end, int octets)
{
	__s64 sum = 0;

#pragma clang loop unroll(disable)
	for (int at = 0; at < MOST_MORE / 64 && octets >= 64 && from + 64 <= end; at++, octets -= 64, from += 64)
		sum = bpf_csum_diff(NULL, 0, from, 64, sum);
#pragma clang loop unroll(disable)
	for (int at = 0; at < 16 && octets >= 4 && from + 4 <= end; at++, octets -= 4, from += 4)
		sum += *(const __u32 *)from;
	for (int at = 0; at < 3; at++, from++)
		if (at < octets && from + 1 <= end)
			sum += at & 1 ? *(const __u8 *)from << 8 : *(const __u8 *)from;
	return sum;
}

static __always_inline void parse_transport(const enum frame_kind kind, struct received_frame *frame,
					    const struct transport *from, const volatile struct form *form,
					    bool lettered)
{
	const void *payload = (const void *)from + header_octets(kind);

	frame->source_port = source_port_of(kind, from, form);
	frame->destination_port = destination_port_of(kind, from, form);
	if (is_tcp(kind))
		parse_stamps(kind, from->tcp, frame->stamps);
	if (is_untagged(kind))
		parse_untagged(kind, &frame->tag, from->tcp, frame->stamps);
	else if (lettered)
		parse_letters(&frame->tag, payload);
	else
		copy_sealed_tag(&frame->tag, payload);
	frame->size = size_of(kind, &frame->tag);
	frame->intact = false;
	frame->other = false;
	frame->unchecked = false;
}

/* Whether the frame has a whole tag. For tags that are not in a DNS message, the caller has checked that. */
static __always_inline bool has_tag(const enum frame_kind kind, const struct transport *transport, void *end,
				    bool lettered)
{
	return !lettered || (void *)transport + header_octets(kind) + UP_TO_LETTERS <= end;
}

/* Compare the content of an intact frame with the plan's. */
static __always_inline void check_content(const enum frame_kind kind, struct received_frame *frame,
					  const struct transport *transport, const volatile struct form *form,
					  bool lettered, int octets, int added)
{
	const void *payload = (const void *)transport + header_octets(kind);
	const __u32 *added_records = payload + 8;

	if (is_tcp(kind))
		frame->other = frame->intact && !tcp_numbers_match(kind, transport->tcp, frame->tag.connection);
	else if (lettered)
		frame->other = frame->intact && (!content_matches(payload, &frame->tag, &form->content, octets) ||
						 (may_add(kind) && !*added_records != !added));
}

/* Whether a frame has `octets` octets after its Ethernet header. */
static __always_inline bool has_octets(void *data, void *end, int octets)
{
	return (long)end - (long)data >= ETH_HLEN + octets;
}

static __always_inline bool is_ipv4_test(const struct iphdr *ip, __u8 protocol)
{
	return *(__u8 *)ip == 0x45 && ip->protocol == protocol;
}

/* Whether a frame has the headers before IPv4 that the plan requires. Sets the ends of its tunnel. */
static __always_inline bool parse_outer(const struct ethhdr *eth, int outer, struct received_frame *frame)
{
	const struct ipv6hdr *ip = (const void *)(eth + 1);

	if (!outer)
		return ether_type(eth) == bpf_htons(ETH_P_IP);
	frame->tunnel_source = address6(&ip->saddr);
	frame->tunnel_destination = address6(&ip->daddr);
	return ether_type(eth) == bpf_htons(ETH_P_IPV6) && ip->nexthdr == IPPROTO_IPIP;
}

/* Whether the length in the outer header, if there is one, is `octets`. */
static __always_inline bool outer_length_is(const struct ethhdr *eth, int outer, __u16 octets)
{
	const struct ipv6hdr *ip = (const void *)(eth + 1);

	return !outer || ip->payload_len == bpf_htons(octets);
}

/*
 * Returns false for frames of another transport or family, and for frames too short for a tag. Octets after the IP
 * packet are ignored. A checksum of 0 is legal over IPv4, so the device may have removed it (RFC 768).
 */
static __always_inline bool parse4(const enum frame_kind kind, void *data, void *end, const int link,
				   const volatile struct form *form, struct received_frame *frame)
{
	const bool lettered = kind == FRAME_UDP && form->lettered;
	int outer = plan.side[link].outer, octets, added;
	struct ethhdr *eth = data;
	struct transport *transport;
	struct iphdr *ip;
	__u64 sum;

	data += outer;
	ip = data + ETH_HLEN;
	transport = (void *)(ip + 1);
	if (data + up_to_tag4(kind) > end || !parse_outer(eth, outer, frame) ||
	    !is_ipv4_test(ip, transport_protocol(kind, false)) || !transport_is(kind, transport, form) ||
	    !has_tag(kind, transport, end, lettered))
		return false;
	parse_transport(kind, frame, transport, form, lettered);
	octets = length_of(frame->size, &frame->tag, form, link)->octets - outer;
	frame->source = address4(ip->saddr);
	frame->destination = address4(ip->daddr);
	added = added_octets(kind, bpf_ntohs(ip->tot_len) + ETH_HLEN - octets);
	if (data + octets > end || (added && !has_octets(data, end, octets + added - ETH_HLEN)) ||
	    ip->tot_len != bpf_htons(octets + added - ETH_HLEN) ||
	    !transport_length_is(kind, transport, octets + added - ETH_HLEN - sizeof(*ip)) ||
	    !outer_length_is(eth, outer, octets - ETH_HLEN)) {
		frame->other = lettered && fold(sum_words(ip, sizeof(*ip))) == 0xffff &&
			       has_octets(data, end, bpf_ntohs(ip->tot_len)) &&
			       transport_length_is(kind, transport, bpf_ntohs(ip->tot_len) - sizeof(*ip));
		return true;
	}
	sum = transport_sum(kind, transport, false, octets + added - ETH_HLEN - sizeof(*ip)) +
	      pseudo_sum4(kind, (__u64)ip->saddr + ip->daddr) +
	      received_padding_sum(data + up_to_tag4(kind), octets - up_to_tag4(kind));
	if (may_add(kind))
		sum += added_sum(data + octets, end, added);
	frame->intact = fold(sum_words(ip, sizeof(*ip))) == 0xffff &&
			(transport_unchecked(kind, transport) || fold(sum) == 0xffff);
	check_content(kind, frame, transport, form, lettered, octets - up_to_payload4(kind), added);
	return true;
}

/* The same for IPv6, which forbids a checksum of 0 (RFC 8200 section 8.1); the plan may accept it. */
static __always_inline bool parse6(const enum frame_kind kind, void *data, void *end, const int link,
				   const volatile struct form *form, struct received_frame *frame)
{
	struct ipv6hdr *ip = data + ETH_HLEN;
	struct transport *transport = (void *)(ip + 1);
	const bool lettered = kind == FRAME_UDP && form->lettered;
	int octets, added;
	__u64 sum;

	if (data + up_to_tag6(kind) > end || ether_type(data) != bpf_htons(ETH_P_IPV6) ||
	    ip->nexthdr != transport_protocol(kind, true) || !transport_is(kind, transport, form) ||
	    !has_tag(kind, transport, end, lettered))
		return false;
	parse_transport(kind, frame, transport, form, lettered);
	octets = length_of(frame->size, &frame->tag, form, link)->octets;
	frame->source = address6(&ip->saddr);
	frame->destination = address6(&ip->daddr);
	added = added_octets(kind, bpf_ntohs(ip->payload_len) + ETH_HLEN + sizeof(*ip) - octets);
	if (data + octets > end || (added && !has_octets(data, end, octets + added - ETH_HLEN)) ||
	    ip->payload_len != bpf_htons(octets + added - ETH_HLEN - sizeof(*ip)) ||
	    !transport_length_is(kind, transport, octets + added - ETH_HLEN - sizeof(*ip))) {
		frame->other = lettered && has_octets(data, end, sizeof(*ip) + bpf_ntohs(ip->payload_len)) &&
			       transport_length_is(kind, transport, bpf_ntohs(ip->payload_len));
		return true;
	}
	sum = transport_sum(kind, transport, true, octets + added - ETH_HLEN - sizeof(*ip)) +
	      sum_words(&ip->saddr, 32) + received_padding_sum(data + up_to_tag6(kind), octets - up_to_tag6(kind));
	if (may_add(kind))
		sum += added_sum(data + octets, end, added);
	frame->unchecked = plan.accept_zero_checksum && transport_unchecked(kind, transport);
	frame->intact = frame->unchecked || (!transport_unchecked(kind, transport) && fold(sum) == 0xffff);
	check_content(kind, frame, transport, form, lettered, octets - up_to_payload6(kind), added);
	return true;
}

/* Parses a frame that arrives at `side` in the form of side `as`. */
static __always_inline bool parse_as(const enum frame_kind kind, void *data, void *end, const int side, const int as,
				     struct received_frame *frame)
{
	const volatile struct form *form = &arriving(kind, side)->form[as];

	return plan.side[as].family == FAMILY_IPV4 ? parse4(kind, data, end, as, form, frame)
						   : parse6(kind, data, end, as, form, frame);
}

#endif
