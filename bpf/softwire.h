/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The arithmetic of addresses and ports that MAP-E (RFC 7597), MAP-T (RFC 7599) and lw4o6 (RFC 7596) share, and all
 * that crosses the border between the reference softwire and its loader. Addresses and ports are in host byte order.
 */
#ifndef NATGAUGE_SOFTWIRE_H
#define NATGAUGE_SOFTWIRE_H

enum technology {
	MAP_E = 0,
	MAP_T = 1,
	LW4O6 = 2,
};

/* The provider's end (MAP BR, lwAFTR) or the customers' (MAP CE, tunnel of the lwB4). */
enum role {
	BORDER_RELAY = 0,
	CUSTOMER_EDGE = 1,
};

struct address6 {
	__u64 high;
	__u64 low;
};

/* Lengths in bits. */
struct softwire {
	enum technology technology;
	enum role role;
	__u8 psid_offset; /* a */
	__u8 psid_length; /* k */
	__u8 ea_length;	  /* of the embedded address bits; MAP only */
	__u8 ea_shift;	  /* 64 - rule IPv6 prefix - ea_length; MAP only */
	/* Where a translator has the IPv4 address in the lower half of a mapped IPv6 one: 0 behind a prefix of 96 bits,
	 * 24 behind one of 64 (RFC 6052 section 2.2); MAP-T only. */
	__u8 embedding_shift;
	__u8 unused[3];
	__u32 prefix4; /* rule IPv4 prefix; MAP only */
	__u32 mask4;
	__u32 most_octets; /* of an IPv6 packet that the link carries */
	__u64 prefix6;	   /* upper half of the rule IPv6 prefix; MAP only */
	/* Address of the BR or lwAFTR; of MAP-T the BR's prefix, the default mapping rule (RFC 7599 section 5.1). */
	struct address6 relay;
};

/* A subscriber, as the lwAFTR's binding table (RFC 7596 section 6.1) names one. */
struct binding_key {
	__u32 address;
	__u32 psid;
};

/* Frames, by what became of them; what is none of softwire's is in no count. */
struct softwire_counts {
	__u64 wrapped;	      /* IPv4 to IPv6 */
	__u64 unwrapped;      /* IPv6 to IPv4 */
	__u64 wrong_port_set; /* port or IPv4 address is not the sender's, RFC 7597 section 8.1, RFC 7596 section 6.2 */
	__u64 no_subscriber;  /* no rule, no binding, or a port that is in no set */
	__u64 wrong_relay;    /* at the customer's edge: from another than the BR */
	__u64 fragment;	      /* has no port, or would need one of a whole datagram */
	__u64 protocol;	      /* neither UDP, TCP nor ICMP echo; MAP-T: also IPv4 options and IPv6 extension headers */
	__u64 no_checksum;    /* UDP without one, which IPv6 forbids; MAP-T */
	__u64 too_big;	      /* larger than the IPv6 link carries */
	__u64 malformed;
	__u64 failed; /* the kernel gave no room */
};

/* Section 5.1 of RFC 7597: offset bits, then the PSID, then the rest. Ports whose offset bits are 0 are in no set. */
static __always_inline __s32 psid_of(const volatile struct softwire *s, __u16 port)
{
	__u32 a = s->psid_offset & 15, k = s->psid_length & 31;

	if (a && !((__u32)port >> (16 - a)))
		return -1;
	return ((__u32)port >> ((16 - a - k) & 31)) & ((1U << k) - 1);
}

/* Whether the rule speaks of this IPv4 address; then the subscriber's IPv6 address, RFC 7597 sections 5.2 and 6. */
static __always_inline bool map_address(const volatile struct softwire *s, __u32 address, __u32 psid,
					struct address6 *out)
{
	__u64 bits = (__u64)(address & ~s->mask4) << (s->psid_length & 31) | psid;

	if ((address & s->mask4) != s->prefix4)
		return false;
	out->high = s->prefix6 | (s->ea_length ? bits << (s->ea_shift & 63) : 0);
	out->low = (__u64)address << 16 | psid;
	return true;
}

/* RFC 6052 section 2.2, prefixes of 64 and 96 bits. */
static __always_inline struct address6 embedded(const volatile struct softwire *s, __u32 address)
{
	return (struct address6){ .high = s->relay.high,
				  .low = s->relay.low | (__u64)address << (s->embedding_shift & 31) };
}

static __always_inline __u32 extracted(const volatile struct softwire *s, const struct address6 *a)
{
	return a->low >> (s->embedding_shift & 31);
}

/* Whether it is an IPv4 address behind the BR's prefix. */
static __always_inline bool behind_relay(const volatile struct softwire *s, const struct address6 *a)
{
	struct address6 again = embedded(s, extracted(s, a));

	return again.high == a->high && again.low == a->low;
}

#endif
