/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Customer edges, emulated by the Initiator or under test: address and port set of each from its number, without a
 * table (RFC 7597 sections 5 and 6). Those of MAP-T translate to IPv6; the others tunnel IPv4 over IPv6 (RFC 2473),
 * from the MAP address as their end of the tunnel. The arithmetic is not shared with the reference softwire, which is a
 * device under test.
 */
#pragma once

struct customer_edge {
	__u32 address; /* the IPv4 address that it shares */
	__u32 psid;
};

/* The edge at a position of those in use. */
static __always_inline struct customer_edge customer_edge(__u64 position)
{
	__u64 number = plan.edges.first + position, addresses = divide(number, &plan.edges.per_address);

	return (struct customer_edge){ .address = plan.edges.first_address + addresses,
				       .psid = plan.edges.first_psid + number - addresses * plan.edges.per_address.by };
}

/* Port at a position, from 0, in a set. */
static __always_inline __u16 port_in_set(__u32 psid, __u32 position)
{
	__u32 upper = (position >> plan.edges.psid_shift) + (plan.edges.offset_shift < 16);

	return upper << plan.edges.offset_shift | psid << plan.edges.psid_shift |
	       (position & ((1U << plan.edges.psid_shift) - 1));
}

/* Upper half of the MAP address whose lower half contains IPv4 address and PSID. */
static __always_inline __u64 map_prefix(__u64 low)
{
	__u64 suffix = (low >> 16 & plan.edges.suffix_mask) << plan.edges.psid_length | (low & 0xffff);

	return plan.edges.prefix | suffix << plan.edges.suffix_shift;
}

static __always_inline struct address map_address(struct customer_edge edge)
{
	__u64 low = (__u64)edge.address << 16 | edge.psid;

	return (struct address){ .high = map_prefix(low), .low = low };
}

/* PSID of a port of a set. */
static __always_inline __u32 psid_of(__u16 port)
{
	return (__u32)port >> plan.edges.psid_shift & ((1U << plan.edges.psid_length) - 1);
}

/* Whether a port is in no set: behind a PSID offset the first range is left out. */
static __always_inline bool in_no_set(__u16 port)
{
	return plan.edges.offset_shift < 16 && !(port >> plan.edges.offset_shift);
}

/* The customer edge's end of the tunnel to which this IPv4 address and port of a subscriber belong. */
static __always_inline struct address tunnel_of(struct address four, __u16 port)
{
	return map_address((struct customer_edge){ .address = four.low, .psid = psid_of(port) });
}

/* The Initiator's address at a position, as the Initiator writes it. */
static __always_inline struct address inside_source(__u64 position)
{
	if (plan.map_addresses)
		return map_address(customer_edge(position));
	return plan.edges.emulated ? (struct address){ .low = customer_edge(position).address }
				   : address_at(&plan.side[INITIATOR].own, position);
}

/* The Initiator's address at a position, as the Responder writes it where it is known in advance. */
static __always_inline struct address outside_source(__u64 position)
{
	if (plan.edges.tested && plan.side[RESPONDER].family == FAMILY_IPV6)
		return map_address(customer_edge(position));
	if (plan.edges.emulated || plan.edges.tested)
		return (struct address){ .low = customer_edge(position).address };
	return address_at(plan.stateless ? &plan.side[RESPONDER].other : &plan.side[INITIATOR].own, position);
}
