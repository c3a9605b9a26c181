/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The header between IP and the tag: UDP (RFC 768). Only this file depends on its layout. */
#ifndef NATGAUGE_TRANSPORT_H
#define NATGAUGE_TRANSPORT_H

#define TRANSPORT_PROTOCOL IPPROTO_UDP

struct transport {
	struct udphdr header;
};

/*
 * Octets from the start of a frame. Headers are accessed through pointers of their own, because the compiler reads
 * packed structs octet by octet.
 */
#define UP_TO_PAYLOAD4 (ETH_HLEN + sizeof(struct iphdr) + sizeof(struct transport))
#define UP_TO_PAYLOAD6 (ETH_HLEN + sizeof(struct ipv6hdr) + sizeof(struct transport))
#define UP_TO_TAG4     (UP_TO_PAYLOAD4 + TAG_OCTETS)
#define UP_TO_TAG6     (UP_TO_PAYLOAD6 + TAG_OCTETS)

/* Never 0, which means "no checksum" (RFC 768) and is forbidden over IPv6 (RFC 8200 section 8.1). */
static __always_inline __u16 transport_checksum(__u64 sum)
{
	__u16 check = ~fold(sum);

	return check ? check : 0xffff;
}

/* `sum` is the checksum sum of addresses, length and payload; `ports` are in network byte order. */
static __always_inline void put_transport(struct transport *to, __u32 ports, __u16 length, __u64 sum)
{
	*(__be32 *)to = ports;
	to->header.len = bpf_htons(length);
	to->header.check = transport_checksum(sum + ports);
}

static __always_inline __u16 source_port_of(const struct transport *from)
{
	return bpf_ntohs(from->header.source);
}

static __always_inline __u16 destination_port_of(const struct transport *from)
{
	return bpf_ntohs(from->header.dest);
}

/* Checksum sum of header and tag, and of the pseudo header without addresses. */
static __always_inline __u64 transport_sum(const struct transport *from)
{
	return sum_words(from, sizeof(*from) + TAG_OCTETS) + from->header.len + bpf_htons(TRANSPORT_PROTOCOL);
}

/* Whether the header's length field is `octets`. */
static __always_inline bool transport_length_is(const struct transport *from, __u16 octets)
{
	return from->header.len == bpf_htons(octets);
}

/* Whether the frame has no checksum. */
static __always_inline bool transport_unchecked(const struct transport *from)
{
	return !from->header.check;
}

#endif
