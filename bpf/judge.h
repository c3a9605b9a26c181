/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Sorting what arrives: expected, duplicate, reordered, late, damaged, untranslated, mistranslated, foreign. Every
 * frame is dropped at the end: nothing of the test reaches the host's own stack, but for questions to a real server.
 */
#ifndef NATGAUGE_JUDGE_H
#define NATGAUGE_JUDGE_H

enum translation { RIGHT = 0, UNTRANSLATED, MISTRANSLATED };

static __always_inline bool is_background(const struct seen *seen)
{
	return plan.mixed && seen->tag.connection & BACKGROUND_FRAME;
}

/* Not 0 where what no mark tells is wrong: upper halves of addresses, and a source that is the device's to choose. */
static __always_inline __u64 unmarked_wrong(const struct seen *seen, const int side)
{
	const volatile struct side_plan *in = &plan.side[INITIATOR], *out = &plan.side[RESPONDER];
	__u64 wrong;

	if (side == INITIATOR)
		return (seen->source.high ^ in->other.high) | (seen->destination.high ^ in->own.high);
	wrong = seen->destination.high ^ out->own.high;
	/* It may have been left alone; which one it was only the tuple tells. */
	if (plan.source_translated && in->family == out->family)
		wrong |= in_range(&in->own, seen->source);
	if (source_known())
		wrong |= seen->source.high ^ known_sources()->high;
	else if (plan.pool_checked)
		wrong |= !in_range(&plan.pool, seen->source);
	return wrong;
}

/* Whether the mark says that all of the four tuple is right. */
static __always_inline bool marked_right(const struct seen *seen, const int side)
{
	__u64 wrong;

	if (!marks_tuples())
		return false;
	wrong = seen->tag.mark ^
		mark_of(side, seen->source, seen->destination, seen->source_port, seen->destination_port);
	wrong |= unmarked_wrong(seen, side);
	/* One branch for all: the verifier follows both ways of each. */
	barrier_var(wrong);
	return !wrong;
}

/* Whether the mark is what a frame of this trial left with, whatever became of its four tuple: t, where marks tell. */
static __always_inline bool marked(const struct seen *seen, struct tuple *t)
{
	if (!marks_tuples() || is_background(seen))
		return seen->tag.mark == plan.mark;
	if (seen->tag.connection >= plan.connections)
		return false;
	tuple_of(seen->tag.connection, t);
	return seen->tag.mark ==
	       ((seen->tag.kind & STREAM_MASK) == PHASE2_RESPONDER ? mark_for(INITIATOR, t) : mark_for(RESPONDER, t));
}

/* At the Responder: the destination must be the tuple's; the source the device's own, or untouched where it only
 * routes. */
static __always_inline enum translation outside_check(const struct seen *seen, const struct tuple *t)
{
	const volatile struct side_plan *in = &plan.side[INITIATOR], *out = &plan.side[RESPONDER];
	struct address inside = address_at(&in->own, t->source_address);
	bool kept = in->family == out->family && same(seen->source, inside);

	if (plan.source_translated && kept)
		return UNTRANSLATED;
	if (!same(seen->destination, address_at(&out->own, t->destination_address)) ||
	    seen->destination_port != t->destination_port)
		return MISTRANSLATED;
	if (plan.stateless)
		return same(seen->source, address_at(&out->other, t->source_address)) &&
				       seen->source_port == t->source_port
			       ? RIGHT
			       : MISTRANSLATED;
	if (!plan.source_translated)
		return kept && seen->source_port == t->source_port ? RIGHT
		       : in->family != out->family && in_range(&plan.pool, seen->source) &&
				       seen->source_port == t->source_port
			       ? RIGHT
			       : MISTRANSLATED;
	return !plan.pool_checked || in_range(&plan.pool, seen->source) ? RIGHT : MISTRANSLATED;
}

/* At the Initiator everything must be back as it was when the connection was opened. */
static __always_inline enum translation inside_check(const struct seen *seen, const struct tuple *t)
{
	const volatile struct side_plan *in = &plan.side[INITIATOR];
	struct outside outside;

	if (same(seen->source, address_at(&in->other, t->destination_address)) &&
	    seen->source_port == t->destination_port &&
	    same(seen->destination, address_at(&in->own, t->source_address)) &&
	    seen->destination_port == t->source_port)
		return RIGHT;
	if (plan.source_translated && in->family == plan.side[RESPONDER].family &&
	    learned(seen->tag.connection, &outside) && same(seen->destination, outside.address))
		return UNTRANSLATED;
	return MISTRANSLATED;
}

/* A background frame must arrive as it was sent. */
static __always_inline enum translation background_check(const struct seen *seen, const int side)
{
	struct flow sent = {};

	background_flow(&sent, !side, seen->tag.connection);
	return same(seen->source, sent.source) && same(seen->destination, sent.destination) &&
			       seen->source_port == sent.source_port && seen->destination_port == sent.destination_port
		       ? RIGHT
		       : MISTRANSLATED;
}

static __always_inline void learn_source(struct receiver *r, const struct seen *seen)
{
	enum learning learning = learn(seen->tag.connection, seen->source, seen->source_port);

	r->stored += learning == LEARNED_NEW;
	r->remapped += learning == LEARNED_OTHER;
}

static __always_inline void count_expected(struct receiver *r, const struct seen *seen, __u32 stream, const int side)
{
	struct tally *tally = &r->tally[stream];
	bool reordered = false;
	enum arrival arrival;
	__s64 delay = 0;

	if (plan.stamped)
		delay = delay_of(&seen->tag);
	arrival = arrive(stream, &seen->tag, &reordered);
	if (arrival == DUPLICATE) {
		tally->duplicates++;
		return;
	}
	if (arrival == TOO_OLD || !(control.open & 1 << stream) ||
	    (plan.frame_timeout_ns && delay > (__s64)plan.frame_timeout_ns)) {
		tally->late++;
		note_late(stream, &seen->tag, arrival);
		return;
	}
	tally->received++;
	tally->reordered += reordered;
	if (plan.record_loss_times)
		note_arrival(stream);
	if (plan.record_delays & 1 << stream && (!plan.sampled || is_sample(stream, &seen->tag)))
		record_delay(tally, delay, stream == PHASE2_RESPONDER);
	if (plan.record_variation && plan.record_delays & 1 << stream)
		record_variation(tally, stream, &seen->tag, delay);
	if (is_background(seen))
		tally->background++;
	else if (side == RESPONDER && !plan.stateless)
		learn_source(r, seen);
}

/* Not XDP_TX: on veth its doorbell reaches only peers with an XDP program of their own. */
static __always_inline int send_back(struct xdp_md *ctx)
{
	return bpf_redirect(ctx->ingress_ifindex, 0);
}

/* What comes to a side, in the family that `as` speaks. */
static __always_inline const volatile struct side_plan *arriving(const int side, const int as)
{
	return side == INITIATOR && asks() ? &plan.answers[as] : &plan.side[as];
}

/* The Initiator's own frames come to the Responder, or as answers to itself. */
static __always_inline bool comes_here(__u32 stream, const int side)
{
	return (stream == PHASE2_RESPONDER) == (side == INITIATOR && !asks());
}

/*
 * Turn a question into its answer, at once and whatever the time: the Initiator judges when it comes. The answer is
 * longer; it grows at its head, where XDP always has room, for behind its tail a device may have left none. A real
 * server gets the question as it came, and its answer leaves by the port without us.
 */
static __always_inline int answer(struct xdp_md *ctx, struct receiver *r, const struct seen *seen, __u32 stream)
{
	const volatile struct side_plan *here = &plan.answers[RESPONDER];
	struct flow flow = { .source = seen->destination,
			     .destination = seen->source,
			     .source_port = seen->destination_port,
			     .destination_port = seen->source_port,
			     .tag = seen->tag };
	int longer = here->octets - plan.side[RESPONDER].octets;

	r->tally[stream].questions++;
	if (!plan.stateless)
		learn_source(r, seen);
	if (plan.handed_on)
		return XDP_PASS;
	if (bpf_xdp_adjust_head(ctx, -longer) || put(ctx, here, &flow)) {
		r->unanswered++;
		return XDP_ABORTED;
	}
	return send_back(ctx);
}

/* `right`: the mark has said so of the four tuple; otherwise it is t where marks tell of it. */
static __always_inline int sort_marked(struct xdp_md *ctx, struct receiver *r, const struct seen *seen, const int side,
				       bool right, struct tuple *t)
{
	__u32 stream = seen->tag.kind & STREAM_MASK;
	enum translation translation;

	if (seen->other && side == INITIATOR && stream < STREAMS) {
		r->tally[stream].wrong_answers++;
		return XDP_DROP;
	}
	if (!seen->intact || seen->other || stream >= STREAMS ||
	    (seen->tag.connection >= plan.connections && !is_background(seen))) {
		if (stream < STREAMS)
			r->tally[stream].damaged++;
		else
			r->damaged_unmarked[side]++;
		return XDP_DROP;
	}
	if (!comes_here(stream, side)) {
		translation = MISTRANSLATED; /* it came back to where it was sent from */
	} else if (is_background(seen)) {
		translation = background_check(seen, side);
	} else if (right) {
		translation = RIGHT;
	} else {
		if (!marks_tuples())
			tuple_of(seen->tag.connection, t);
		translation = side == RESPONDER ? outside_check(seen, t) : inside_check(seen, t);
	}
	if (translation == UNTRANSLATED)
		r->tally[stream].untranslated++;
	else if (translation == MISTRANSLATED)
		r->tally[stream].mistranslated++;
	else if (side == RESPONDER && asks())
		return answer(ctx, r, seen, stream);
	else
		count_expected(r, seen, stream, side);
	return XDP_DROP;
}

/* What is no intact, marked frame of this side's family: neighbours asking, leaks of the other family, the rest. */
static __always_inline int sort_other(struct xdp_md *ctx, struct receiver *r, const int side)
{
	const volatile struct side_plan *here = &plan.side[side];
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct seen seen = {};
	struct tuple t;
	int answered = 0;

	if ((void *)(eth + 1) > end)
		return XDP_DROP;
	if (eth->h_proto == bpf_htons(ETH_P_ARP))
		answered = answer_arp(data, end, here);
	else if (eth->h_proto == bpf_htons(ETH_P_IPV6))
		answered = answer_solicitation(ctx, here);
	if (!answered && plan.mixed)
		answered = answer_solicitation(ctx, &plan.background[side]);
	if (answered) {
		r->neighbour_replies[side]++;
		return send_back(ctx);
	}
	/* answer_solicitation() may have moved the frame. */
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (plan.side[INITIATOR].family != plan.side[RESPONDER].family &&
	    (here->family == FAMILY_IPV4 ? see6(data, end, arriving(side, !side), &seen)
					 : see4(data, end, arriving(side, !side), &seen)) &&
	    (seen.tag.kind & STREAM_MASK) < STREAMS && marked(&seen, &t))
		r->tally[seen.tag.kind & STREAM_MASK].untranslated++;
	else
		r->foreign[side]++;
	return XDP_DROP;
}

/* A frame between the tester's own addresses whose mark is wrong and whose checksum fails was ours once. */
static __always_inline bool broken_mark(const struct seen *seen, const int side)
{
	return !seen->intact && !seen->other && in_range(&plan.side[side].own, seen->destination);
}

static __always_inline int receive(struct xdp_md *ctx, const int side)
{
	const volatile struct side_plan *here = arriving(side, side);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct seen seen = {};
	struct receiver *r;
	struct tuple t;
	__u32 zero = 0;
	bool udp, right;

	r = bpf_map_lookup_elem(&receivers, &zero);
	if (!r)
		return XDP_DROP;
	udp = here->family == FAMILY_IPV4 ? see4(data, end, here, &seen) : see6(data, end, here, &seen);
	if (!udp && plan.mixed && here->family == FAMILY_IPV4) {
		udp = see6(data, end, &plan.background[side], &seen);
		udp = udp && seen.tag.mark == plan.mark && is_background(&seen);
	}
	if (!udp)
		return sort_other(ctx, r, side);
	right = marked_right(&seen, side);
	if (right || marked(&seen, &t))
		return sort_marked(ctx, r, &seen, side, right, &t);
	if (broken_mark(&seen, side))
		r->damaged_unmarked[side]++;
	else
		r->foreign[side]++;
	return XDP_DROP;
}

SEC("xdp")
int receive_initiator(struct xdp_md *ctx)
{
	return receive(ctx, INITIATOR);
}

SEC("xdp")
int receive_responder(struct xdp_md *ctx)
{
	return receive(ctx, RESPONDER);
}

/* Timed like a receiver: what the kernel's timing of a program itself takes. */
SEC("xdp")
int receive_nothing(struct xdp_md *ctx)
{
	return XDP_DROP;
}

#endif
