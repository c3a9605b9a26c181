/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The header between IP and the tag, in words. Only this file and tcp.h depend on its layout. The kind of a frame is
 * constant in each of the callers, which are compiled once for each: UDP frames cost nothing for the others.
 */
#pragma once

/* Applies `code`, a macro, to each transport. Each has programs of its own: the kernel verifies those of one only. */
#define TRANSPORTS(code) code(udp, TRANSPORT_UDP) code(icmp, TRANSPORT_ICMP) code(tcp, TRANSPORT_TCP)

/* The kind of all test frames of a transport other than TCP. */
static __always_inline enum frame_kind datagram_of(const enum transport_kind transport)
{
	return transport == TRANSPORT_ICMP ? FRAME_ECHO : FRAME_UDP;
}

/* Addresses, ports and tag of a frame that is to be sent. */
struct flow {
	struct address source, destination;
	struct address tunnel; /* the customer edge's end of it, where the frame is in one */
	__u16 source_port, destination_port;
	__u32 stamps[2]; /* TCP: time stamp, and echo of the peer's */
	struct tag tag;
};

/*
 * Identifier and sequence number of ICMP echo (RFC 792) for both ports, and the other way round: the Initiator's port,
 * which a NAT translates (RFC 5508 section 3), and the Responder's. So a request's identifier is its source port.
 */
static __always_inline __u32 echo_ports(__u32 ports, const volatile struct form *form)
{
	return form->reply ? ports << 16 | ports >> 16 : ports;
}

static __always_inline int tag_octets(const enum frame_kind kind)
{
	return is_untagged(kind) ? 0 : TAG_OCTETS;
}

/* Octets from the start of a frame. */
static __always_inline int up_to_payload(const enum frame_kind kind, const bool ipv6)
{
	return ETH_HLEN + ip_octets(ipv6) + header_octets(kind);
}

static __always_inline int up_to_tag(const enum frame_kind kind, const bool ipv6)
{
	return up_to_payload(kind, ipv6) + tag_octets(kind);
}

/* Number of the message of a connection that `sender` sends in frames of this kind. */
static __always_inline int message_number(const enum frame_kind kind, const int sender)
{
	return is_tcp(kind) ? (int)kind - FRAME_SYN : sender;
}

/* The message that arrives at `side` in frames of this kind. */
static __always_inline const volatile struct message *arriving(const enum frame_kind kind, const int side)
{
	return &plan.messages[message_number(kind, !side)];
}

static __always_inline __u8 transport_protocol(const enum frame_kind kind, const bool ipv6)
{
	return kind == FRAME_UDP ? IPPROTO_UDP : is_tcp(kind) ? IPPROTO_TCP : ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
}

/* `sum` is the checksum sum of pseudo header and payload. */
static __always_inline void put_transport(const enum frame_kind kind, __be32 *to, const volatile struct form *form,
					  const struct flow *flow, __u16 length, __u64 sum)
{
	__u32 ports = bpf_htonl((__u32)flow->source_port << 16 | flow->destination_port);
	__u16 check;

	if (is_tcp(kind)) {
		put_tcp(kind, to, form, ports, flow->tag.connection, flow->stamps, sum);
	} else if (kind == FRAME_ECHO) {
		ports = echo_ports(ports, form);
		to[0] = (__u16)form->header[0] | (__u32)(__u16)~fold(sum + ports) << 16;
		to[1] = ports;
	} else {
		check = ~fold(sum + ports);
		to[0] = ports;
		/* 0 means "no checksum" (RFC 768) and is forbidden over IPv6 (RFC 8200 section 8.1). */
		to[1] = bpf_htons(length) | (__u32)(check ? check : 0xffff) << 16;
	}
}

/* Whether type and code of ICMP, length and flags of TCP, are those of the form's message. */
static __always_inline bool transport_is(const enum frame_kind kind, const __be32 *from,
					 const volatile struct form *form)
{
	const int word = is_tcp(kind) ? TCP_FLAGS_WORD : 0;

	return kind == FRAME_UDP || (__u16)from[word] == (__u16)form->header[word];
}

/* Whether the checksum covers a pseudo header: that of ICMP over IPv4 does not. */
static __always_inline bool has_pseudo_header(const enum frame_kind kind, const bool ipv6)
{
	return kind != FRAME_ECHO || ipv6;
}

/* Whether the header's length field, if it has one, is `octets`. */
static __always_inline bool transport_length_is(const enum frame_kind kind, const __be32 *from, __u16 octets)
{
	return kind != FRAME_UDP || (__u16)from[1] == bpf_htons(octets);
}
