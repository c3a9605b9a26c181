/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The header between IP and the tag: UDP's (RFC 768). All that knows its layout is here. */
#ifndef NATGAUGE_TRANSPORT_H
#define NATGAUGE_TRANSPORT_H

#define TRANSPORT_PROTOCOL IPPROTO_UDP

struct transport {
	struct udphdr header;
};

/* Up to the end of the tag. The parts are reached by pointers of their own: a packed struct would be read octet by
 * octet. */
#define UP_TO_PAYLOAD4 (ETH_HLEN + sizeof(struct iphdr) + sizeof(struct transport))
#define UP_TO_PAYLOAD6 (ETH_HLEN + sizeof(struct ipv6hdr) + sizeof(struct transport))
#define UP_TO_TAG4     (UP_TO_PAYLOAD4 + TAG_OCTETS)
#define UP_TO_TAG6     (UP_TO_PAYLOAD6 + TAG_OCTETS)

/* 0 would mean "no checksum" (RFC 768) and is forbidden over IPv6 (RFC 8200 section 8.1). */
static __always_inline __u16 transport_checksum(__u64 sum)
{
	__u16 check = ~fold(sum);

	return check ? check : 0xffff;
}

/* The sum is that of addresses, length and all behind the header; ports are as they lie in a frame. */
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

/* Of header and tag, with what the pseudo header adds beside the addresses. */
static __always_inline __u64 transport_sum(const struct transport *from)
{
	return sum_words(from, sizeof(*from) + TAG_OCTETS) + from->header.len + bpf_htons(TRANSPORT_PROTOCOL);
}

/* Whether the header speaks of so many octets behind IP. */
static __always_inline bool transport_holds(const struct transport *from, __u16 octets)
{
	return from->header.len == bpf_htons(octets);
}

/* Whether the header speaks of all that IP does, of however many octets. */
static __always_inline bool transport_fills(const struct transport *from, __u16 octets)
{
	return bpf_ntohs(from->header.len) == octets;
}

/* Whether its checksum was left out. */
static __always_inline bool transport_unchecked(const struct transport *from)
{
	return !from->header.check;
}

#endif
