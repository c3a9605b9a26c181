// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * A program for each step that a frame of phase 2 takes, and one for no step. They are compiled from the frame
 * programs' own source, and steps.c gives them a plan and runs them.
 */
#include "../bpf/tester.bpf.c"

#define SEQUENCES 65536 /* connections that the steps visit in turn */

__u64 runs;

/* `code` computes a number from `run`, the number of the run. */
#define STEP(name, code)                                                                                               \
	SEC("xdp") int step_##name(struct xdp_md *ctx)                                                                 \
	{                                                                                                              \
		__u64 run = runs++;                                                                                    \
		__u64 result = (code);                                                                                 \
                                                                                                                       \
		asm volatile("" ::"r"(run), "r"(result)); /* or clang leaves the step out */                           \
		return XDP_DROP;                                                                                       \
	}

static __always_inline struct tuple tuple_of_run(__u64 run)
{
	struct tuple t;

	tuple_at(run % SEQUENCES, &t);
	return t;
}

static __always_inline struct tag tag_of_run(__u64 run)
{
	return (struct tag){
		.connection = run % SEQUENCES, .sequence = run, .kind = PHASE2_INITIATOR, .sent_low = run
	};
}

static __always_inline struct flow flow_of_run(__u64 run)
{
	return (struct flow){ .source = address_at(&plan.side[INITIATOR].own, 0),
			      .destination = address_at(&plan.side[INITIATOR].other, 0),
			      .source_port = run,
			      .destination_port = 1,
			      .tag = tag_of_run(run) };
}

static __always_inline __u64 scheduled(void)
{
	struct sender *s = bpf_map_lookup_elem(&senders, &(__u32){ 0 });
	struct schedule *schedule;

	if (!s)
		return 0;
	schedule = &s->schedule[INITIATOR];
	if (finished(schedule) || !due(s, schedule))
		return 0;
	schedule_next(schedule, ++schedule->made);
	return 1;
}

static __always_inline __u64 found_ahead(__u64 run, const int side)
{
	struct sender *s = bpf_map_lookup_elem(&senders, &(__u32){ 0 });

	return s ? ahead_of(s, &s->schedule[side], run, side)->position : 0;
}

static __always_inline __u64 marked(struct tuple t)
{
	return mark_for(RESPONDER, &t);
}

static __always_inline __u64 sealed(struct tag tag)
{
	return sealed_mark(&tag);
}

static __always_inline __u64 written(struct xdp_md *ctx, struct flow flow)
{
	const volatile struct form *form = &plan.messages[INITIATOR].form[INITIATOR];

	return put_as(FRAME_UDP, ctx, &plan.side[INITIATOR], form, &form->length, &flow);
}

static __always_inline __u64 filled(struct xdp_md *ctx, struct tag tag)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const volatile struct form *form = &plan.messages[INITIATOR].form[INITIATOR];

	return data + TAG_OCTETS > end ? 0 : put_payload(FRAME_UDP, data, &tag, form, TAG_OCTETS);
}

static __always_inline __u64 parsed(struct xdp_md *ctx, bool confirms)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct received_frame frame = {};

	if (!parse_as(FRAME_UDP, data, end, RESPONDER, RESPONDER, &frame))
		return 0;
	return confirms ? mark_confirms(&frame, RESPONDER) : frame.intact;
}

static __always_inline __u64 windowed(struct tag tag)
{
	bool reordered;

	return record_in_window(PHASE2_INITIATOR, &tag, &reordered);
}

static __always_inline __u64 looked_up(__u64 run)
{
	struct outside outside;

	return learned(draw(run, plan.draw_key, SEQUENCES), &outside) + outside.port;
}

static __always_inline __u64 refreshed(__u64 run)
{
	return learn(draw(run, plan.draw_key, SEQUENCES), (struct address){}, 1, false);
}

static __always_inline __u64 delayed(struct tag tag)
{
	struct receiver *r = bpf_map_lookup_elem(&receivers, &(__u32){ 0 });

	if (r)
		record_delay(&r->tally[PHASE2_INITIATOR], tag.sequence & 4095, INITIATOR);
	return 0;
}

STEP(nothing, run)
STEP(clock, bpf_ktime_get_ns())
STEP(schedule, scheduled())
STEP(draw, draw(run, plan.draw_key, SEQUENCES))
STEP(permutation, permute(run % SEQUENCES, TUPLES))
STEP(ahead, found_ahead(run, INITIATOR))
STEP(tuple, tuple_of_run(run).source_port)
STEP(tuple_and_mark, marked(tuple_of_run(run)))
STEP(seal, sealed(tag_of_run(run)))
STEP(checksum, fold(run ^ plan.draw_key))
STEP(payload, filled(ctx, tag_of_run(run)))
STEP(whole_frame, written(ctx, flow_of_run(run)))
STEP(parse, parsed(ctx, false))
STEP(parse_and_confirm, parsed(ctx, true))
STEP(window, windowed(tag_of_run(run)))
STEP(table_read, looked_up(run))
STEP(table_refresh, refreshed(run))
STEP(delay, delayed(tag_of_run(run)))
