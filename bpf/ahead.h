/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Connections and four tuples of a schedule's next frames, computed together. Each step from a frame's number to its
 * four tuple waits for the step before, but not for other frames, so the processor overlaps those of several frames.
 */
#pragma once

/* The connection of a side's frame `number`. Another `try` is another draw of the Responder's. */
static __always_inline __u64 connection_of(__u64 number, __u32 stream, const int side, int try)
{
	if (plan.flood) {
		/* Otherwise the compiler asks for the stream first, and the verifier follows both answers. */
		barrier_var(stream);
		if (stream == CLOSING)
			return plan.flood_from + number;
	}
	if (side == INITIATOR && (stream == PHASE1 || closes(stream)))
		return plan.opens_permuted ? permute(number, TUPLES) : number;
	if (side == INITIATOR)
		return drawn(number, plan.draw_key ^ 0x2c1b3c6d, INITIATOR);
	if (plan.stateless || plan.reading == READING_PSEUDORANDOM)
		return drawn(number, plan.draw_key + try, RESPONDER);
	/* In increasing order, repeatedly; READING_ONCE makes one round in permuted order. */
	number = number < plan.connections ? number : number % plan.connections;
	return plan.reading == READING_ONCE ? permute(number, READINGS) : number;
}

/*
 * Each frame of phase 2 needs one entry at a random place of the state table: the Responder's when it is written, the
 * Initiator's when it is received. Loaded one by one, each entry would wait for the memory. The processor overlaps
 * loads that follow each other directly, so these wait only once.
 */
static __always_inline void prefetch(const struct ahead *ahead)
{
	volatile __u64 *entries[FRAMES_AHEAD];

#pragma unroll
	for (int i = 0; i < FRAMES_AHEAD; i++) {
		entries[i] = entry(ahead[i].connection);
		if (!entries[i])
			return;
	}
	for (int i = 0; i < FRAMES_AHEAD; i++)
		(void)entries[i][0];
	/* An entry of three words may extend over two cache lines. */
	if (plan.side[RESPONDER].family == FAMILY_IPV6)
		for (int i = 0; i < FRAMES_AHEAD; i++)
			(void)entries[i][2];
}

static __noinline int look_ahead(const struct sender *s, struct schedule *schedule, __u64 group, const int side)
{
	__u64 number = group * FRAMES_AHEAD * s->senders + s->number;
	__u32 stream = schedule->stream;

	for (int i = 0; i < FRAMES_AHEAD; i++, number += s->senders) {
		struct ahead *ahead = &schedule->ahead[i];

		ahead->connection = connection_of(number, stream, side, 0);
		ahead->position = position(ahead->connection);
	}
	schedule->group = group + 1;
	if (plan.prefetched && stream != PHASE1 && !(plan.churn && stream == CLOSING))
		prefetch(schedule->ahead);
	return 0;
}

/* The connection and four tuple of a schedule's frame `at`. */
static __always_inline struct ahead *ahead_of(const struct sender *s, struct schedule *schedule, __u64 at,
					      const int side)
{
	if (schedule->group != at / FRAMES_AHEAD + 1)
		look_ahead(s, schedule, at / FRAMES_AHEAD, side);
	return &schedule->ahead[at % FRAMES_AHEAD];
}
