/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The header between IP and the tag. Only this file and those of the transports depend on its layout. The kind is known
 * at compile time in each of the callers, which are compiled once for each: UDP frames cost nothing for the others.
 */
#ifndef NATGAUGE_TRANSPORT_H
#define NATGAUGE_TRANSPORT_H

#include "icmp.h"
#include "udp.h"

struct transport {
	union {
		struct udphdr udp;
		struct echo echo;
	};
};

/*
 * Octets from the start of a frame. Headers are accessed through pointers of their own, because the compiler reads
 * packed structs octet by octet.
 */
#define UP_TO_PAYLOAD4 (ETH_HLEN + sizeof(struct iphdr) + sizeof(struct transport))
#define UP_TO_PAYLOAD6 (ETH_HLEN + sizeof(struct ipv6hdr) + sizeof(struct transport))
#define UP_TO_TAG4     (UP_TO_PAYLOAD4 + TAG_OCTETS)
#define UP_TO_TAG6     (UP_TO_PAYLOAD6 + TAG_OCTETS)

/* Number in the IP header. */
static __always_inline __u8 transport_protocol(const enum transport_kind kind, const bool ipv6)
{
	return kind == TRANSPORT_UDP ? IPPROTO_UDP : ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
}

/* `sum` is the checksum sum of pseudo header and payload; `ports` are in network byte order. */
static __always_inline void put_transport(const enum transport_kind kind, struct transport *to,
					  const volatile struct form *form, __u32 ports, __u16 length, __u64 sum)
{
	if (kind == TRANSPORT_ICMP)
		put_echo(&to->echo, form, ports, sum);
	else
		put_udp(&to->udp, ports, length, sum);
}

/* Whether the header is that of the form's message. */
static __always_inline bool transport_is(const enum transport_kind kind, const struct transport *from,
					 const volatile struct form *form)
{
	return kind != TRANSPORT_ICMP || from->echo.type_code == form->type_code;
}

static __always_inline __u16 source_port_of(const enum transport_kind kind, const struct transport *from,
					    const volatile struct form *form)
{
	return kind == TRANSPORT_ICMP ? echo_source(&from->echo, form) : bpf_ntohs(from->udp.source);
}

static __always_inline __u16 destination_port_of(const enum transport_kind kind, const struct transport *from,
						 const volatile struct form *form)
{
	return kind == TRANSPORT_ICMP ? echo_destination(&from->echo, form) : bpf_ntohs(from->udp.dest);
}

/* The part of a checksum sum that the addresses are. ICMP over IPv4 has no pseudo header. */
static __always_inline __u64 pseudo_sum4(const enum transport_kind kind, __u64 addresses)
{
	return kind == TRANSPORT_ICMP ? 0 : addresses;
}

/* Checksum sum of header and tag, and of the pseudo header without addresses. `length`: from the header on. */
static __always_inline __u64 transport_sum(const enum transport_kind kind, const struct transport *from,
					   const bool ipv6, __u16 length)
{
	__u64 sum = sum_words(from, sizeof(*from) + TAG_OCTETS);

	if (kind == TRANSPORT_ICMP)
		return ipv6 ? sum + bpf_htons(length) + bpf_htons(IPPROTO_ICMPV6) : sum;
	return sum + from->udp.len + bpf_htons(IPPROTO_UDP);
}

/* Whether the header's length field, if it has one, is `octets`. */
static __always_inline bool transport_length_is(const enum transport_kind kind, const struct transport *from,
						__u16 octets)
{
	return kind == TRANSPORT_ICMP || from->udp.len == bpf_htons(octets);
}

/* Whether the frame has no checksum. */
static __always_inline bool transport_unchecked(const enum transport_kind kind, const struct transport *from)
{
	return kind != TRANSPORT_ICMP && !from->udp.check;
}

#endif
