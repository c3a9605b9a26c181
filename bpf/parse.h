/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Parses received frames: addresses, ports, tag, checksums and content. */
#pragma once

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

/* The same of a DNS message, which is too short for the call. It ends with a whole 32-bit word, as the tag does not. */
static __always_inline __u64 received_message_sum(const void *from, int octets)
{
	__u64 sum = *(const __u16 *)from;

#pragma unroll
	for (int at = 2; at + 4 <= 8 * CONTENT_WORDS - TAG_OCTETS; at += 4)
		if (at + 4 <= octets)
			sum += *(const __u32 *)(from + at);
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
	__u32 ports = bpf_ntohl(received_ports(kind, from, form));

	frame->source_port = ports >> 16;
	frame->destination_port = ports;
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

/* Whether it is a packet of this protocol, over IPv4 without options. */
static __always_inline bool is_packet(const void *ip, const bool ipv6, __u8 protocol)
{
	return (ipv6 || *(const __u8 *)ip == 0x45) && protocol_of(ip, ipv6) == protocol;
}

/* Whether a frame has the headers before its packet that the plan requires. Sets the ends of its tunnel. */
static __always_inline bool parse_outer(const struct ethhdr *eth, int outer, const bool ipv6,
					struct received_frame *frame)
{
	const void *ip = eth + 1;

	if (!outer)
		return ether_type(eth) == ip_type(ipv6);
	frame->tunnel_source = source_of(ip, true);
	frame->tunnel_destination = destination_of(ip, true);
	return ether_type(eth) == ip_type(true) && protocol_of(ip, true) == IPPROTO_IPIP;
}

/* Whether the length in the outer header, if there is one, is `octets`. */
static __always_inline bool outer_length_is(const struct ethhdr *eth, int outer, int octets)
{
	return !outer || packet_octets(eth + 1, true) == outer + octets;
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
	int outer = ipv6 ? 0 : plan.side[link].outer, octets, rest, after_tag, added;
	void *eth = data, *ip = data + outer + ETH_HLEN;
	struct transport *transport = ip + ip_octets(ipv6);
	__u64 addresses, sum;
	bool unchecked;

	data += outer;
	if (data + up_to_tag(kind, ipv6) > end || !parse_outer(eth, outer, ipv6, frame) ||
	    !is_packet(ip, ipv6, transport_protocol(kind, ipv6)) || !transport_is(kind, transport, form) ||
	    !has_tag(kind, transport, end, lettered))
		return false;
	parse_transport(kind, frame, transport, form, lettered);
	octets = length_of(frame->size, &frame->tag, form, link)->octets - outer;
	frame->source = source_of(ip, ipv6);
	frame->destination = destination_of(ip, ipv6);
	added = added_octets(kind, packet_octets(ip, ipv6) + ETH_HLEN - octets);
	rest = octets + added - ETH_HLEN - ip_octets(ipv6);
	if (data + octets > end || (added && !has_octets(data, end, octets + added - ETH_HLEN)) ||
	    packet_octets(ip, ipv6) != octets + added - ETH_HLEN || !transport_length_is(kind, transport, rest) ||
	    !outer_length_is(eth, outer, octets - ETH_HLEN)) {
		frame->other = lettered && header_intact(ip, ipv6) && has_octets(data, end, packet_octets(ip, ipv6)) &&
			       transport_length_is(kind, transport, packet_octets(ip, ipv6) - ip_octets(ipv6));
		return true;
	}
	addresses = ipv6 ? sum_words(ip + offsetof(struct ipv6hdr, saddr), 32)
			 : sum_words(ip + offsetof(struct iphdr, saddr), 8);
	after_tag = octets - up_to_tag(kind, ipv6);
	sum = transport_sum(kind, transport, ipv6, rest, addresses) +
	      (lettered ? received_message_sum(data + up_to_tag(kind, ipv6), after_tag)
			: received_padding_sum(data + up_to_tag(kind, ipv6), after_tag));
	if (may_add(kind))
		sum += added_sum(data + octets, end, added);
	unchecked = transport_unchecked(kind, transport);
	frame->unchecked = ipv6 && plan.accept_zero_checksum && unchecked;
	frame->intact = header_intact(ip, ipv6) && (unchecked ? !ipv6 || frame->unchecked : fold(sum) == 0xffff);
	check_content(kind, frame, transport, form, lettered, octets - up_to_payload(kind, ipv6), added);
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
