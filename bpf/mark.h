/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The mark of a frame: the trial's own number, and on top of it a keyed sum of the four tuple with which it must
 * arrive, as far as that is known when it leaves. A receiver adds up what it sees, so it need not compute the four
 * tuple of the connection again; it does for frames whose mark is another one.
 *
 * The sum is the upper half of 64 bits to which each word of 32 bits comes times a key of 64 (Dietzfelbinger, 1996):
 * two four tuples that differ have the same one for one in 2^32 keys, and every trial has its own keys.
 */
#ifndef NATGAUGE_MARK_H
#define NATGAUGE_MARK_H

/* Whether the Initiator sends questions, whose answers come back to it. */
static __always_inline bool asks(void)
{
	return plan.side[INITIATOR].payload == PAYLOAD_QUESTION;
}

/* Whether it is known with what source the Initiator's frames must arrive. */
static __always_inline bool source_known(void)
{
	return plan.stateless ||
	       (!plan.source_translated && plan.side[INITIATOR].family == plan.side[RESPONDER].family);
}

/* A question's mark comes back in the answer; where only the source's port is left alone, half of it would be known. */
static __always_inline bool marks_tuples(void)
{
	return !asks() && (plan.source_translated || source_known());
}

/* Of a frame with these addresses and ports where it arrives; the upper halves of addresses are the same in a range. */
static __always_inline __u32 mark_of(const int side, struct address source, struct address destination,
				     __u16 source_port, __u16 destination_port)
{
	bool whole = side == INITIATOR || source_known();
	__u64 sum = plan.mark_keys[0] + (__u32)destination.low * plan.mark_keys[1];

	if (!marks_tuples())
		return plan.mark;
	sum += (destination_port | (whole ? (__u32)source_port << 16 : 0)) * plan.mark_keys[2];
	if (whole)
		sum += (__u32)source.low * plan.mark_keys[3];
	if (plan.side[side].family == FAMILY_IPV6) {
		sum += (destination.low >> 32) * plan.mark_keys[4];
		if (whole)
			sum += (source.low >> 32) * plan.mark_keys[5];
	}
	return plan.mark + (__u32)(sum >> 32);
}

/* With what source the Initiator's frames arrive, where that is known. */
static __always_inline const volatile struct addresses *known_sources(void)
{
	return plan.stateless ? &plan.side[RESPONDER].other : &plan.side[INITIATOR].own;
}

/* Of a connection's frame that is to arrive at this side. */
static __always_inline __u32 mark_for(const int side, const struct tuple *t)
{
	const volatile struct side_plan *in = &plan.side[INITIATOR], *out = &plan.side[RESPONDER];

	if (side == INITIATOR)
		return mark_of(side, address_at(&in->other, t->destination_address),
			       address_at(&in->own, t->source_address), t->destination_port, t->source_port);
	return mark_of(side, address_at(known_sources(), t->source_address),
		       address_at(&out->own, t->destination_address), t->source_port, t->destination_port);
}

#endif
