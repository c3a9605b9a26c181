/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The header between IP and the tag. Only this file and those of the transports depend on its layout. The kind of a
 * frame is known at compile time in each of the callers, which are compiled once for each: UDP frames cost nothing for
 * the others.
 */
#pragma once

#include "frame_kind.h"
#include "tcp.h"

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

/* In network byte order. */
static __always_inline __u32 ports_of(const struct flow *flow)
{
	return bpf_htonl((__u32)flow->source_port << 16 | flow->destination_port);
}

/*
 * ICMP echo (RFC 792, RFC 4443 section 4). The identifier is the Initiator's port, which a NAT translates (RFC 5508
 * section 3), and the sequence number is the Responder's. A request has the identifier of its source, a reply that of
 * its destination.
 */
struct echo {
	__u16 type_code;
	__u16 check;
	__be16 identifier;
	__be16 sequence;
};

/* Identifier and sequence number for both ports, and the other way round. */
static __always_inline __u32 echo_ports(__u32 ports, const volatile struct form *form)
{
	return form->reply ? ports << 16 | ports >> 16 : ports;
}

static __always_inline void put_echo(struct echo *to, const volatile struct form *form, __u32 ports, __u64 sum)
{
	__u32 numbers = echo_ports(ports, form);

	*(__u32 *)to = (__u16)form->header[0] | (__u32)(__u16)~fold(sum + numbers) << 16;
	*(__u32 *)&to->identifier = numbers;
}

/* The checksum is never 0, which means "no checksum" (RFC 768) and is forbidden over IPv6 (RFC 8200 section 8.1). */
static __always_inline void put_udp(struct udphdr *to, __u32 ports, __u16 length, __u64 sum)
{
	__u16 check = ~fold(sum + ports);

	*(__be32 *)to = ports;
	to->len = bpf_htons(length);
	to->check = check ? check : 0xffff;
}

struct transport {
	union {
		struct udphdr udp;
		struct echo echo;
		__be32 tcp[8];
	};
};

/* Octets of the tag after the header. */
static __always_inline int tag_octets(const enum frame_kind kind)
{
	return is_untagged(kind) ? 0 : TAG_OCTETS;
}

/*
 * Octets from the start of a frame. Headers are accessed through pointers of their own, because the compiler reads
 * packed structs octet by octet.
 */
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

/* The kind of the reaction to a frame. */
static __always_inline enum frame_kind reaction_to(const enum frame_kind kind)
{
	return is_within(kind, FRAME_SYN, FRAME_FIN_ACK) ? kind + 1 : kind;
}

/* Number in the IP header. */
static __always_inline __u8 transport_protocol(const enum frame_kind kind, const bool ipv6)
{
	return kind == FRAME_UDP ? IPPROTO_UDP : is_tcp(kind) ? IPPROTO_TCP : ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
}

/* `sum` is the checksum sum of pseudo header and payload. */
static __always_inline void put_transport(const enum frame_kind kind, struct transport *to,
					  const volatile struct form *form, const struct flow *flow, __u16 length,
					  __u64 sum)
{
	__u32 ports = ports_of(flow);

	if (is_tcp(kind))
		put_tcp(kind, to->tcp, form, ports, flow->tag.connection, flow->stamps, sum);
	else if (kind == FRAME_ECHO)
		put_echo(&to->echo, form, ports, sum);
	else
		put_udp(&to->udp, ports, length, sum);
}

/* Whether the header is that of the form's message. */
static __always_inline bool transport_is(const enum frame_kind kind, const struct transport *from,
					 const volatile struct form *form)
{
	if (is_tcp(kind))
		return tcp_is(from->tcp, form);
	return kind != FRAME_ECHO || from->echo.type_code == (__u16)form->header[0];
}

/* Ports of a received header, as ports_of() has them. */
static __always_inline __u32 received_ports(const enum frame_kind kind, const struct transport *from,
					    const volatile struct form *form)
{
	return kind == FRAME_ECHO ? echo_ports(*(const __u32 *)&from->echo.identifier, form)
				  : *(const __u32 *)&from->udp;
}

/* Whether the checksum covers a pseudo header: that of ICMP over IPv4 does not. */
static __always_inline bool has_pseudo_header(const enum frame_kind kind, const bool ipv6)
{
	return kind != FRAME_ECHO || ipv6;
}

/* Checksum sum of header and tag, and of the pseudo header with these addresses. `length`: from the header on. */
static __always_inline __u64 transport_sum(const enum frame_kind kind, const struct transport *from, const bool ipv6,
					   __u16 length, __u64 addresses)
{
	__u64 sum = sum_words(from, header_octets(kind) + tag_octets(kind));

	if (has_pseudo_header(kind, ipv6))
		sum += addresses + bpf_htons(length) + bpf_htons(transport_protocol(kind, ipv6));
	return sum;
}

/* Whether the header's length field, if it has one, is `octets`. */
static __always_inline bool transport_length_is(const enum frame_kind kind, const struct transport *from, __u16 octets)
{
	return kind != FRAME_UDP || from->udp.len == bpf_htons(octets);
}

static __always_inline bool transport_unchecked(const enum frame_kind kind, const struct transport *from)
{
	return kind == FRAME_UDP && !from->udp.check;
}
