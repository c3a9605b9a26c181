/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Parses received frames: addresses, ports, tag, checksums and content. */
#pragma once

#define MOST_MORE  512
#define FEW_OCTETS 128

/* A received test frame, both families. */
struct received_frame {
	struct address source, destination;
	struct address tunnel, relay; /* ends of its tunnel, where it is in one: the customer edge's and the other */
	__u16 source_port, destination_port;
	__u32 stamps[2]; /* TCP: time stamp, and echo of the peer's */
	struct tag tag;
	__u32 size; /* as of size_of() */
	bool intact;
	bool other;	/* an intact message with other content */
	bool unchecked; /* over IPv6 without a checksum, and taken for intact */
};

/* Checksum sum of octets after the tag, all of them in the frame. A call takes longer than the sum of a few words. */
static __always_inline __u64 received_sum(__u8 *from, int octets)
{
	int whole = octets & ~3, at = 0;
	__s64 sum = 0;

	for (; at + 512 <= whole; at += 512)
		sum = bpf_csum_diff(NULL, 0, (__be32 *)(from + at), 512, sum);
	if (whole - at > FEW_OCTETS) {
		sum = bpf_csum_diff(NULL, 0, (__be32 *)(from + at), whole - at, sum);
		at = whole;
	}
#pragma unroll
	for (int word = 0; word < FEW_OCTETS / 4; word++, at += 4)
		if (at < whole)
			sum += *(__u32 *)(from + at);
	if (octets & 2)
		sum += *(__u16 *)(from + whole);
	if (octets & 1)
		sum += from[octets - 1];
	return sum;
}

/* Whether arriving messages may be longer than the plan's: answers of a server that is not the tester's. */
static __always_inline bool may_add(const enum frame_kind kind)
{
	return kind == FRAME_UDP && plan.handed_on == HAND_ALL;
}

/* Those of `octets` beyond the plan's message that are records that a server added (RFC 1035 section 4.1). */
static __always_inline int added_octets(const enum frame_kind kind, int octets)
{
	if (!may_add(kind))
		return 0;
	/* Otherwise the compiler would compute all and choose, where the kernel removes a branch. */
	barrier_var(octets);
	return octets > 0 && octets <= MOST_MORE ? octets : 0;
}

/* Checksum sum of octets from an even offset on, up to the end of the frame; in few steps, each for the verifier. */
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
					    const __be32 *from, const volatile struct form *form, bool lettered)
{
	const void *payload = (const void *)from + header_octets(kind);
	__u32 ports = bpf_ntohl(kind == FRAME_ECHO ? echo_ports(from[1], form) : from[0]);

	frame->source_port = ports >> 16;
	frame->destination_port = ports;
	if (is_tcp(kind)) {
		frame->stamps[0] = bpf_ntohl(from[tcp_stamp_word(kind)]);
		frame->stamps[1] = bpf_ntohl(from[tcp_stamp_word(kind) + 1]);
	}
	if (is_untagged(kind))
		parse_untagged(kind, &frame->tag, from, frame->stamps);
	else if (lettered)
		parse_letters(&frame->tag, payload);
	else
		copy_sealed_tag(&frame->tag, payload);
	frame->size = size_of(kind, &frame->tag);
	frame->intact = frame->other = frame->unchecked = false;
}

/* Whether it is a packet of this protocol, over IPv4 without options. */
static __always_inline bool is_packet(const void *ip, const bool ipv6, __u8 protocol)
{
	return (ipv6 || *(const __u8 *)ip == IPV4_PLAIN) && protocol_of(ip, ipv6) == protocol;
}

/* Whether the checksum of the header is right: IPv6 has none. */
static __always_inline bool header_intact(const void *ip, const bool ipv6)
{
	return ipv6 || fold(sum_words(ip, sizeof(struct iphdr))) == 0xffff;
}

/*
 * Returns false for frames of another transport or family, and for frames too short for a tag. Octets after the IP
 * packet are ignored. A checksum of 0 is legal over IPv4, so the device may have removed it (RFC 768). IPv6 forbids it
 * (RFC 8200 section 8.1); the plan may accept it.
 */
static __always_inline bool parse(const enum frame_kind kind, const bool ipv6, void *data, void *end, const int link,
				  const volatile struct form *form, struct received_frame *frame)
{
	const bool lettered = kind == FRAME_UDP && form->lettered;
	int outer = ipv6 ? 0 : plan.side[link].outer, octets, rest, added;
	void *eth = data, *tunnel = data + ETH_HLEN, *ip = tunnel + outer, *header = ip + ip_octets(ipv6);
	void *payload = header + header_octets(kind), *after_tag;
	__u64 addresses, sum;
	bool unchecked;

	data += outer;
	after_tag = data + up_to_tag(kind, ipv6);
	if (after_tag > end || ether_type(eth) != ip_type(ipv6 || outer) ||
	    (outer && protocol_of(tunnel, true) != IPPROTO_IPIP) ||
	    !is_packet(ip, ipv6, transport_protocol(kind, ipv6)) || !transport_is(kind, header, form) ||
	    (lettered && payload + UP_TO_LETTERS > end))
		return false;
	parse_transport(kind, frame, header, form, lettered);
	octets = length_of(frame->size, &frame->tag, form, link)->octets - outer;
	if (outer) {
		frame->tunnel = link == INITIATOR ? destination_of(tunnel, true) : source_of(tunnel, true);
		frame->relay = link == INITIATOR ? source_of(tunnel, true) : destination_of(tunnel, true);
	}
	frame->source = source_of(ip, ipv6);
	frame->destination = destination_of(ip, ipv6);
	added = added_octets(kind, packet_octets(ip, ipv6) + ETH_HLEN - octets);
	rest = octets + added - ETH_HLEN - ip_octets(ipv6);
	if (data + octets > end || (added && (long)end - (long)data < octets + added) ||
	    packet_octets(ip, ipv6) != octets + added - ETH_HLEN || !transport_length_is(kind, header, rest) ||
	    (outer && packet_octets(tunnel, true) != outer + octets - ETH_HLEN)) {
		frame->other = lettered && header_intact(ip, ipv6) &&
			       (long)end - (long)data >= ETH_HLEN + packet_octets(ip, ipv6) &&
			       transport_length_is(kind, header, packet_octets(ip, ipv6) - ip_octets(ipv6));
		return true;
	}
	addresses = ipv6 ? sum_words(ip + offsetof(struct ipv6hdr, saddr), 32)
			 : sum_words(ip + offsetof(struct iphdr, saddr), 8);
	sum = sum_words(header, header_octets(kind) + tag_octets(kind));
	if (has_pseudo_header(kind, ipv6))
		sum += addresses + bpf_htons(rest) + bpf_htons(transport_protocol(kind, ipv6));
	octets -= up_to_tag(kind, ipv6);
	sum += received_sum(after_tag, octets);
	if (may_add(kind))
		sum += added_sum(after_tag + octets, end, added);
	unchecked = kind == FRAME_UDP && !((struct udphdr *)header)->check;
	frame->unchecked = ipv6 && plan.accept_zero_checksum && unchecked;
	frame->intact = header_intact(ip, ipv6) && (unchecked ? !ipv6 || frame->unchecked : fold(sum) == 0xffff);
	if (is_tcp(kind))
		frame->other = frame->intact && !tcp_numbers_match(kind, header, frame->tag.connection);
	else if (lettered)
		frame->other = frame->intact &&
			       (!content_matches(payload, &frame->tag, &form->content, octets + tag_octets(kind)) ||
				(may_add(kind) && !((const __u32 *)payload)[2] != !added));
	return true;
}

/* Parses a frame that arrives at `side` in the form of side `as`. */
static __always_inline bool parse_as(const enum frame_kind kind, void *data, void *end, const int side, const int as,
				     struct received_frame *frame)
{
	const volatile struct form *form = &arriving(kind, side)->form[as];

	return plan.side[as].family == FAMILY_IPV4 ? parse(kind, false, data, end, as, form, frame)
						   : parse(kind, true, data, end, as, form, frame);
}

/* The kind of the plan's segments that have these flags and arrive at `side`; FRAME_UDP: none has. */
static __always_inline enum frame_kind tcp_kind(void *data, void *end, const int side, const int as)
{
	const volatile struct side_plan *form_side = &plan.side[as];
	const __be32 *from = data + form_side->outer + ETH_HLEN + ip_octets(form_side->family == FAMILY_IPV6);

	if ((void *)(from + TCP_FLAGS_WORD + 1) > end)
		return FRAME_UDP;
#pragma unroll
	for (enum frame_kind kind = FRAME_SYN; kind <= FRAME_DATA_UP; kind++) {
		if (tcp_sender(kind) == side || !tcp_message(kind)->streams ||
		    !transport_is(kind, from, &tcp_message(kind)->form[as]))
			continue;
		return kind == FRAME_ACK && is_last_ack(from) ? FRAME_LAST_ACK : kind;
	}
	return FRAME_UDP;
}
