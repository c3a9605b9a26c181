/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The mark of a frame: the trial's number plus a keyed hash of the four tuple with which the frame must arrive, as far
 * as it is known when the frame leaves. A receiver hashes the four tuple of the received frame and compares. Only if
 * the marks differ does it compute the connection's four tuple again, to find out what is wrong.
 *
 * The hash is the upper half of a 64-bit sum of 32-bit words, each multiplied by a 64-bit key (Dietzfelbinger, 1996).
 * Two different four tuples collide for one in 2^32 keys, and every trial has its own keys.
 */
#pragma once

/* Mark of a frame that arrives at `side` with this four tuple. Upper halves of addresses are constant in a range. */
static __always_inline __u32 mark_of(const int side, struct address source, struct address destination,
				     __u16 source_port, __u16 destination_port)
{
	bool whole = side == INITIATOR || plan.source_known || plan.set_known;
	__u64 sum = plan.mark_keys[0] + (__u32)destination.low * plan.mark_keys[1];

	if (!plan.marks_tuples)
		return plan.mark;
	if (side == RESPONDER && plan.set_known)
		source_port = psid_of(source_port);
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

/* Mark of a connection's frame that is to arrive at `side`. */
static __always_inline __u32 mark_for(const int side, const struct tuple *t)
{
	const volatile struct side_plan *in = &plan.side[INITIATOR], *out = &plan.side[RESPONDER];

	if (side == INITIATOR)
		return mark_of(side, address_at(&in->other, t->destination_address), inside_source(t->source_address),
			       t->destination_port, t->source_port);
	return mark_of(side, outside_source(t->source_address), address_at(&out->own, t->destination_address),
		       plan.set_known ? port_in_set(customer_edge(t->source_address).psid, 0) : t->source_port,
		       t->destination_port);
}

/*
 * Combines the mark with the seal of its tag by exclusive or, and separates them again. The seal is a keyed hash of all
 * other fields, so a device that changes index, number, stream, sender or sending time must also know the new one.
 *
 * The keys are random, differ between trials, and are only in these programs' read-only data. Two steps of
 * multiplication are not linear together, so differences between frames do not result in differences between seals. It
 * is not a cryptographic hash: it has to be computed for each frame in about a nanosecond.
 */
static __always_inline __u32 sealed_mark(const struct tag *tag)
{
	const __u32 *words = (const void *)tag;
	__u64 frame = (__u64)words[1] << 32 | words[2], time = (__u64)tag->sent_high << 32 | words[3];
	__u64 hash = (frame + plan.seal_keys[0]) * plan.seal_keys[1] + time * plan.seal_keys[2];

	hash = (hash ^ hash >> 32) * plan.seal_keys[3];
	return tag->mark ^ hash >> 32;
}
