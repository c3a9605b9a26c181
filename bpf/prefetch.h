/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Loads entries of the state table into the caches before the frames that need them. */
#ifndef NATGAUGE_PREFETCH_H
#define NATGAUGE_PREFETCH_H

#define PREFETCHED 16 /* entries that are loaded together */

/* The connection of a side's frame `number` of phase 2. `churn` is the plan's, which loops read only once. */
static __always_inline __u64 sent_to(__u64 number, const int side, const bool churn)
{
	return drawn(number, side == RESPONDER ? plan.draw_key : plan.draw_key ^ 0x2c1b3c6d, side, churn);
}

/*
 * Each frame of phase 2 needs one entry at a random place of the state table: the Responder's when it is written, the
 * Initiator's when it is received. Loaded one by one, each entry would wait for the memory. The processor overlaps
 * loads that follow each other directly, so these wait only once.
 */
static __always_inline void prefetch(const struct sender *s, __u64 taken, const int side)
{
	const bool churn = plan.churn;
	volatile __u64 *entries[PREFETCHED];

	if (!plan.prefetched || taken % PREFETCHED)
		return;
#pragma unroll
	for (int i = 0; i < PREFETCHED; i++) {
		__u64 number = (taken + i) * s->senders + s->number;

		entries[i] = entry(sent_to(number, side, churn), churn);
		if (!entries[i])
			return;
	}
	load_entries(entries, PREFETCHED);
}

#endif
