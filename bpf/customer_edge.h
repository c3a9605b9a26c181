/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The customer edges of MAP-T that the Initiator emulates: address and port set of each from its number, without a
 * table (RFC 7597 sections 5 and 6). The arithmetic is not shared with the reference softwire, which is a device under
 * test.
 */
#ifndef NATGAUGE_CUSTOMER_EDGE_H
#define NATGAUGE_CUSTOMER_EDGE_H

#define PORT_BITS 16

struct customer_edge {
	__u32 address; /* the IPv4 address that it shares */
	__u32 psid;
};

static __always_inline struct customer_edge customer_edge(__u64 number)
{
	__u64 addresses = divide(number, &plan.edges.per_address);

	return (struct customer_edge){ .address = plan.edges.first_address + addresses,
				       .psid = plan.edges.first_psid + number - addresses * plan.edges.per_address.by };
}

/* Port at a position, from 0, in a set. The offset bits of a port are not all 0. */
static __always_inline __u16 port_in_set(__u32 psid, __u32 position)
{
	__u32 offset = plan.edges.psid_offset & 15;
	__u32 below = (PORT_BITS - offset - plan.edges.psid_length) & 31;
	__u32 upper = (position >> below) + !!offset;

	return upper << (PORT_BITS - offset) | psid << below | (position & ((1U << below) - 1));
}

/* Upper half of the MAP address whose lower half contains IPv4 address and PSID. */
static __always_inline __u64 map_prefix(__u64 low)
{
	__u64 suffix = (low >> 16 & plan.edges.suffix_mask) << (plan.edges.psid_length & 31) | (low & 0xffff);

	return plan.edges.prefix | suffix << (plan.edges.suffix_shift & 63);
}

static __always_inline struct address map_address(struct customer_edge edge)
{
	__u64 low = (__u64)edge.address << 16 | edge.psid;

	return (struct address){ .high = map_prefix(low), .low = low };
}

/* The Initiator's address at a position, as the Initiator writes it. */
static __always_inline struct address inside_source(__u64 position)
{
	if (plan.edges.emulated)
		return map_address(customer_edge(position));
	return address_at(&plan.side[INITIATOR].own, position);
}

/* Upper half of the Initiator's address with this lower half. */
static __always_inline __u64 inside_source_prefix(__u64 low)
{
	return plan.edges.emulated ? map_prefix(low) : plan.side[INITIATOR].own.high;
}

/* The Initiator's address at a position, as the Responder writes it where it is known in advance. */
static __always_inline struct address outside_source(__u64 position)
{
	if (plan.edges.emulated)
		return (struct address){ .low = customer_edge(position).address };
	return address_at(plan.stateless ? &plan.side[RESPONDER].other : &plan.side[INITIATOR].own, position);
}

#endif
