/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Address and port arithmetic of MAP-E (RFC 7597), MAP-T (RFC 7599) and lw4o6 (RFC 7596), and the types that the
 * reference softwire shares with its loader. Addresses and ports are in host byte order.
 */
#pragma once

enum technology {
	MAP_E = 0,
	MAP_T = 1,
	LW4O6 = 2,
};

/* The provider's end (MAP BR, lwAFTR) or the customer's (MAP CE, tunnel of the lwB4). */
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
	__u8 psid_offset;  /* a */
	__u8 psid_length;  /* k */
	__u8 ea_length;	   /* of the embedded address bits; MAP only */
	__u8 ea_shift;	   /* 64 - rule IPv6 prefix - ea_length; MAP only */
	__u8 relay_length; /* of the BR's prefix, 32 to 64 or 96; MAP-T only */
	__u8 unused[3];
	__u32 prefix4; /* rule IPv4 prefix; MAP only */
	__u32 mask4;
	__u32 most_octets; /* of an IPv6 packet on the link */
	__u64 prefix6;	   /* upper half of the rule IPv6 prefix; MAP only */
	/* Address of the BR or lwAFTR; MAP-T: the BR's prefix, the default mapping rule (RFC 7599 section 5.1). */
	struct address6 relay;
};

/* Key of the lwAFTR's binding table (RFC 7596 section 6.1). */
struct binding_key {
	__u32 address;
	__u32 psid;
};

/* Frames by outcome; frames that belong to no softwire are not counted. */
struct softwire_counts {
	__u64 wrapped;	      /* IPv4 to IPv6 */
	__u64 unwrapped;      /* IPv6 to IPv4 */
	__u64 wrong_port_set; /* port or IPv4 address not the sender's, RFC 7597 section 8.1, RFC 7596 section 6.2 */
	__u64 no_subscriber;  /* no rule, no binding, or a port outside all sets */
	__u64 wrong_relay;    /* at the customer's end: not from the BR */
	__u64 fragment;	      /* has no port, or belongs to a fragmented datagram */
	__u64 protocol;	      /* not UDP, TCP or ICMP echo; MAP-T: or with IPv4 options or IPv6 extension headers */
	__u64 no_checksum;    /* UDP without a checksum, which IPv6 forbids; MAP-T */
	__u64 too_big;	      /* larger than the IPv6 link's MTU */
	__u64 malformed;
	__u64 failed; /* the kernel could not resize the packet */
};

/* PSID of a port (RFC 7597 section 5.1); -1 for ports whose offset bits are 0, which are in no set. */
static __always_inline __s32 psid_of(const volatile struct softwire *s, __u16 port)
{
	__u32 a = s->psid_offset & 15, k = s->psid_length & 31;

	if (a && !((__u32)port >> (16 - a)))
		return -1;
	return ((__u32)port >> ((16 - a - k) & 31)) & ((1U << k) - 1);
}

/* Set `out` to the subscriber's IPv6 address (RFC 7597 sections 5.2 and 6); false if the rule does not apply. */
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

/* RFC 6052 section 2.2. The arithmetic is not shared with the tester. */
static __always_inline struct address6 embedded(const volatile struct softwire *s, __u32 address)
{
	struct address6 a = { .high = s->relay.high, .low = s->relay.low };
	__u32 left = (s->relay_length - 32) & 63; /* bits of the address that do not fit into the upper half */

	if (s->relay_length == 96) {
		a.low |= address;
	} else {
		a.high |= (__u64)address >> left;
		a.low |= left ? (__u64)(address & ((1ULL << left) - 1)) << (56 - left) : 0;
	}
	return a;
}

static __always_inline __u32 extracted(const volatile struct softwire *s, const struct address6 *a)
{
	__u32 left = (s->relay_length - 32) & 63;

	return s->relay_length == 96 ? a->low : a->high << left | a->low >> ((56 - left) & 63);
}

/* Whether it is an IPv4-embedded address in the BR's prefix. */
static __always_inline bool in_relay_prefix(const volatile struct softwire *s, const struct address6 *a)
{
	struct address6 again = embedded(s, extracted(s, a));

	return again.high == a->high && again.low == a->low;
}
