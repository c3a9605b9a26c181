/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Having entries of the state table come before the frames that need them. */
#ifndef NATGAUGE_AHEAD_H
#define NATGAUGE_AHEAD_H

#define AHEAD 16 /* entries that are fetched together */

/* Which standing connection the Initiator's frame of phase 2 is of. */
static __always_inline __u64 initiator_connection(__u64 number)
{
	return draw(number, plan.draw_key ^ 0x2c1b3c6d, plan.connections);
}

/*
 * Every frame of phase 2 needs one entry of the state table, anywhere in it: the Responder's to be made, the
 * Initiator's when it arrives, here or elsewhere. One after the other they would wait for the memory as often as there
 * are frames; asked for together, with nothing in between, they wait once.
 */
static __always_inline void fetch_ahead(const struct sender *s, __u64 taken, const int side)
{
	volatile __u64 *entries[AHEAD];

	if (!plan.fetched_ahead || taken % AHEAD)
		return;
#pragma unroll
	for (int i = 0; i < AHEAD; i++) {
		__u64 number = (taken + i) * s->senders + s->number;

		entries[i] = entry(side == RESPONDER ? draw(number, plan.draw_key, plan.connections)
						     : initiator_connection(number));
		if (!entries[i])
			return;
	}
	fetch(entries, AHEAD);
}

#endif
