/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The generator sends test frames at their due times. The engine runs it as live frames, in a pinned thread per CPU. */
#pragma once

#define LEAST_CREDIT  16 /* frames per reading of the clock while behind schedule */
#define SPIN	      60 /* readings of the clock in one program run while waiting for a due time */
#define DISCARD	      9
#define READING_TRIES 8 /* random connections tried before a frame is skipped */

/* Write an IPv6 header before `octets` octets; returns the checksum sum of its addresses. */
static __always_inline __u64 put_ip6(__u32 *words, int octets, __u8 protocol, struct address source,
				     struct address destination)
{
	words[0] = bpf_htonl(0x60000000);
	words[1] = bpf_htonl(octets << 16 | protocol << 8 | TEST_TTL);
	return put_address6(words + 2, source) + put_address6(words + 6, destination);
}

/* The same of IPv4; `sum`: of its other words. */
static __always_inline __u64 put_ip4(__u32 *words, int octets, __u8 protocol, struct address source,
				     struct address destination, __u64 sum)
{
	__be32 from = bpf_htonl(source.low), to = bpf_htonl(destination.low);
	__u64 addresses = (__u64)from + to;

	words[0] = bpf_htonl(0x45000000 | (sizeof(struct iphdr) + octets));
	words[1] = 0;
	words[2] = bpf_htonl(TEST_TTL << 24 | protocol << 16) | (__u32)(__u16)~fold(sum + addresses) << 16;
	words[3] = from;
	words[4] = to;
	return addresses;
}

static __always_inline int put(const enum frame_kind kind, const bool ipv6, void *data, void *end,
			       const volatile struct side_plan *side, const volatile struct form *form,
			       const volatile struct length *length, const struct flow *flow)
{
	int outer = ipv6 ? 0 : side->outer, octets = length->octets - outer;
	int rest = octets - ETH_HLEN - ip_octets(ipv6);
	__u8 protocol = transport_protocol(kind, ipv6);
	struct address relay = { .high = plan.edges.relay_high, .low = plan.edges.relay_low };
	bool up = plan.edges.emulated;
	void *eth = data, *ip;
	__u64 addresses, sum;

	data += outer;
	ip = data + ETH_HLEN;
	if (data + octets > end || data + up_to_tag(kind, ipv6) > end)
		return -1;
	put_macs(eth, side);
	*(__be16 *)(eth + MACS_OCTETS) = ip_type(ipv6 || outer);
	if (outer)
		put_ip6(eth + ETH_HLEN, octets - ETH_HLEN, IPPROTO_IPIP, up ? flow->tunnel : relay,
			up ? relay : flow->tunnel);
	addresses = ipv6 ? put_ip6(ip, rest, protocol, flow->source, flow->destination)
			 : put_ip4(ip, rest, protocol, flow->source, flow->destination, length->ip_sum);
	sum = length->transport_sum + (has_pseudo_header(kind, ipv6) ? addresses : 0);
	sum += put_payload(kind, data + up_to_payload(kind, ipv6), &flow->tag, form,
			   octets - up_to_payload(kind, ipv6));
	put_transport(kind, ip + ip_octets(ipv6), form, flow, rest, sum);
	return 0;
}

static __always_inline int put_as(const enum frame_kind kind, struct xdp_md *ctx, const volatile struct side_plan *here,
				  const volatile struct form *form, const volatile struct length *length,
				  const struct flow *flow)
{
	void *data = (void *)(long)ctx->data + here->tagged, *end = (void *)(long)ctx->data_end;

	if (here->family == FAMILY_IPV4 ? put(kind, false, data, end, here, form, length, flow)
					: put(kind, true, data, end, here, form, length, flow))
		return -1;
	if (here->tagged)
		put_vlans(data - here->tagged, here, flow->source);
	return 0;
}

static __always_inline int send_frame(const enum frame_kind kind, struct xdp_md *ctx, const int side,
				      const volatile struct side_plan *here, const volatile struct form *form,
				      const volatile struct length *length, const struct flow *flow)
{
	int longer = plan.longest - length->octets - here->tagged;

	/* The kernel makes all live frames of a call with one length, the longest. */
	if ((longer > 0 && bpf_xdp_adjust_tail(ctx, -longer)) || put_as(kind, ctx, here, form, length, flow))
		return XDP_ABORTED;
	return bpf_redirect_map(&ports, side, 0);
}

/* Native IPv6 between other hosts, drawn (RFC 4814 section 4) by tag.connection, so the receiver can compute them. */
static __always_inline void background_flow(struct flow *flow, const int side, __u32 connection)
{
	const volatile struct addresses *own = &plan.background[side].own, *other = &plan.background[!side].own;
	__u64 draw = connection & (BACKGROUND_FRAME - 1);
	__u16 high = 1024 + (((draw & 0xffff) * 64512) >> 16), low = 1 + (((draw >> 16) * 49151) >> 15);

	flow->tag.mark = plan.mark;
	flow->tag.connection = connection;
	flow->source = address_at(own, (draw * own->count) >> CONNECTION_BITS);
	flow->destination = address_at(other, (draw * other->count) >> CONNECTION_BITS);
	flow->source_port = side == INITIATOR ? high : low;
	flow->destination_port = side == INITIATOR ? low : high;
}

/* Whether a connection that the state table has was found for the Responder's frame, by further draws. */
static __noinline int drawn_again(struct ahead *ahead, __u64 number, __u32 stream, struct outside *outside)
{
	for (int try = 1; try < READING_TRIES; try++) {
		ahead->connection = connection_of(number, stream, RESPONDER, try);
		if (!learned(ahead->connection, outside))
			continue;
		ahead->position = position(ahead->connection);
		return 1;
	}
	return 0;
}

/*
 * Addresses, ports and tag of a connection's frame. The Responder sends only swapped four tuples from the state table
 * (RFC 9693 section 4.7). In stateless trials it draws any connection of the plan (RFC 4814 section 4). Returns 0 when
 * no stored connection was found. With churn, the frames of a connection that was not opened are counted as lost.
 */
static __always_inline int connection_flow(struct flow *flow, struct ahead *ahead, __u64 number, __u32 stream,
					   const int side)
{
	struct outside outside = {};
	struct tuple t;

	if (side == RESPONDER && !plan.stateless && !learned(ahead->connection, &outside) &&
	    (plan.churn || plan.reading != READING_PSEUDORANDOM || !drawn_again(ahead, number, stream, &outside)))
		return 0;
	tuple_at(ahead->position, &t);
	flow->tag.mark = mark_for(!side, &t);
	flow->tag.connection = ahead->connection;
	if (side == INITIATOR) {
		flow->source = inside_source(t.source_address);
		flow->destination = address_at(&plan.side[INITIATOR].other, t.destination_address);
		if (plan.side[INITIATOR].outer)
			flow->tunnel = map_address(customer_edge(t.source_address));
		flow->source_port = t.source_port;
		flow->destination_port = t.destination_port;
		return 1;
	}
	if (plan.stateless) {
		outside.address = outside_source(t.source_address);
		outside.port = t.source_port;
	}
	flow->source = address_at(&plan.side[RESPONDER].own, t.destination_address);
	flow->destination = outside.address;
	if (plan.side[RESPONDER].outer)
		flow->tunnel = tunnel_of(outside.address, outside.port);
	flow->source_port = t.destination_port;
	flow->destination_port = outside.port;
	return 1;
}

/* Update s->now_ns and detect stalls. Returns false before the schedule's start. */
static __always_inline bool read_clock(struct sender *s)
{
	__u64 now = bpf_ktime_get_ns() - s->start_ns, gap = now - s->now_ns, at = s->stalls;
	struct stalls *stalls;

	if ((__s64)now < 0)
		return false;
	/* At the first reading the gap is the thread's delay after the schedule's start. */
	if ((__s64)gap > (__s64)plan.stall_ns) {
		stalls = bpf_map_lookup_elem(&sender_stalls, &s->number);
		if (stalls && at < MOST_STALLS)
			stalls->list[at] = (struct stall){ .from_ns = s->now_ns, .to_ns = now };
		s->stalls++;
		s->stalled_ns += gap;
		if (gap > s->worst_stall_ns)
			s->worst_stall_ns = gap;
	}
	s->now_ns = now;
	return true;
}

static __always_inline void record_lag(struct sender *s, struct schedule *schedule, __u64 when, bool last)
{
	__u64 lag = s->now_ns - when;

	if (!s->first_ns)
		s->first_ns = s->now_ns;
	schedule->lag_samples++;
	schedule->lag_sum += lag;
	if (lag > schedule->lag_worst)
		schedule->lag_worst = lag;
	if (last) {
		schedule->lag_final = lag;
		schedule->last_ns = s->now_ns;
	}
}

/* Whether sending now would exceed the highest rate after a stall: a burst could overflow the device's ring. */
static __always_inline bool exceeds_catch_up(struct sender *s, __u64 when)
{
	__u64 allowed;

	if (!s->catch_up_percent)
		return false;
	if (s->now_ns - when <= s->slack_ns) {
		s->behind_ns = 0;
		return false;
	}
	allowed = s->behind_due_ns + (s->now_ns - s->behind_ns) * s->catch_up_percent / 100;
	if (s->behind_ns && when > allowed)
		return true;
	if (!s->behind_ns || allowed - when > s->slack_ns) { /* a stall starts it again: no burst after it either */
		s->behind_ns = s->now_ns;
		s->behind_due_ns = when;
	}
	return false;
}

/*
 * Whether the next frame may leave. Behind schedule, the clock is read once for frames that leave together, those of a
 * batch, unless they carry their time.
 */
static __always_inline bool due(struct sender *s, struct schedule *schedule)
{
	__u64 when = schedule->next_due >> DUE_FRACTION;
	bool last = schedule->made + schedule->skipped + 1 == schedule->frames;

	if (!plan.stamped && !last && s->credit && when <= s->now_ns) {
		s->credit--;
		return true;
	}
	if (!read_clock(s))
		return false;
	if (plan.batch == 1)
		for (int i = 0; i < SPIN && when > s->now_ns; i++)
			read_clock(s);
	if (when > s->now_ns || exceeds_catch_up(s, when))
		return false;
	s->credit = (plan.batch > LEAST_CREDIT ? plan.batch : LEAST_CREDIT) - 1;
	record_lag(s, schedule, when, last);
	return true;
}

static __always_inline void schedule_next(struct schedule *schedule, __u64 next)
{
	if (!plan.stepped || next < schedule->step_at)
		schedule->next_due += schedule->interval;
	else if (next == schedule->step_at)
		schedule->next_due = schedule->step_due;
	else
		schedule->next_due += schedule->step_interval;
}

static __always_inline int send_as(const enum frame_kind kind, struct xdp_md *ctx, struct schedule *schedule,
				   const int side, const bool background, const struct flow *flow)
{
	const volatile struct message *message = &plan.messages[message_number(kind, side)];
	const volatile struct side_plan *here = background ? &plan.background[side] : &plan.side[side];
	const volatile struct form *form = background ? &plan.background_form : &message->form[side];
	__u32 size = size_of(kind, &flow->tag);

	schedule->made++;
	if (background)
		schedule->background++;
	if (size < MOST_SIZES)
		schedule->sized[size]++;
	return send_frame(kind, ctx, side, here, form,
			  length_of(size, &flow->tag, form, background ? BACKGROUND_LINK : side), flow);
}

static __always_inline int send(const enum transport_kind transport, struct xdp_md *ctx, struct schedule *schedule,
				const int side, __u32 stream, __u64 now, struct flow *flow)
{
	if (transport != TRANSPORT_TCP)
		return send_as(datagram_of(transport), ctx, schedule, side, false, flow);
	flow->stamps[0] = tcp_stamp(side, now);
	if (stream == PHASE1)
		return send_as(FRAME_SYN, ctx, schedule, side, false, flow);
	flow->stamps[1] = tcp_stamp(!side, now);
	if (side == RESPONDER && tcp_message(FRAME_SYN_ACK)->streams & 1 << PHASE2_RESPONDER)
		return send_as(FRAME_SYN_ACK, ctx, schedule, side, false, flow);
	if (closes(stream))
		return send_as(FRAME_FIN, ctx, schedule, side, false, flow);
	return send_as(side == INITIATOR ? FRAME_DATA_UP : FRAME_DATA_DOWN, ctx, schedule, side, false, flow);
}

enum purpose { BEFORE_ITS_GROUP, BROADCAST, BACKGROUND, FOREGROUND };

/*
 * What a frame of phase 2 is for. Its turn decides, its number among those of its group: by its own number, all frames
 * of some groups could be of one kind. Groups are ahead of each other, so that their broadcasts do not follow each
 * other.
 */
static __always_inline enum purpose purpose_of(__u64 number, const int side)
{
	__u64 turn = number, group, groups = plan.modifiers.groups, every = plan.modifiers.broadcast_every;

	if (groups) {
		group = number % groups;
		if (number < group * plan.modifiers.group_frames[side])
			return BEFORE_ITS_GROUP;
		turn = number / groups + (group * plan.modifiers.stagger >> 32);
	}
	if (every && turn % every == every - 1)
		return BROADCAST;
	if (every)
		turn -= turn / every;
	return plan.mixed && turn % plan.mix_of >= plan.mix_foreground ? BACKGROUND : FOREGROUND;
}

/* In place of a test frame: from an own address to all, for the discard port (RFC 863), so that nobody forwards it. */
static __always_inline int send_broadcast(struct xdp_md *ctx, struct schedule *schedule, const int side)
{
	const volatile struct side_plan *here = &plan.modifiers.broadcast[side];
	const volatile struct form *form = &plan.modifiers.broadcast_form[side];
	struct flow flow = { .source = address_at(&here->own, 0),
			     .destination = address_at(&here->other, 0),
			     .source_port = DISCARD,
			     .destination_port = DISCARD };

	schedule->skipped++;
	schedule->aside++;
	schedule->broadcasts++;
	return send_frame(FRAME_UDP, ctx, side, here, form, &form->length, &flow);
}

/* Send the next frame of one side's schedule, if it is due. */
static __always_inline int send_next(const enum transport_kind transport, struct xdp_md *ctx, struct sender *s,
				     struct schedule *schedule, const int side)
{
	struct flow flow = {};
	__u64 taken = schedule->made + schedule->skipped, at = schedule->first + taken, number, stamp;
	__u32 stream = schedule->stream;
	enum purpose purpose;

	if (!due(s, schedule))
		return XDP_DROP;
	schedule_next(schedule, taken + 1);
	number = at * s->senders + s->number;
	purpose = stream == PHASE1 ? FOREGROUND : purpose_of(number, side);
	if (purpose == BEFORE_ITS_GROUP) {
		schedule->skipped++;
		schedule->aside++;
		return XDP_DROP;
	}
	if (purpose == BROADCAST)
		return send_broadcast(ctx, schedule, side);
	stamp = s->start_ns + s->now_ns;
	/* Openings continue the sequence of phase 1. */
	flow.tag.sequence = plan.churn && stream == PHASE1 ? at : schedule->made;
	flow.tag.kind = stream | s->number << STREAM_BITS;
	set_sent(&flow.tag, stamp);
	if (purpose == BACKGROUND) {
		background_flow(&flow, side,
				BACKGROUND_FRAME | draw(number, plan.draw_key ^ 0x7f4a7c15, BACKGROUND_FRAME));
		return send_as(FRAME_UDP, ctx, schedule, side, true, &flow);
	}
	if (!connection_flow(&flow, ahead_of(s, schedule, at, side), number, stream, side)) {
		schedule->skipped++;
		return XDP_DROP;
	}
	return send(transport, ctx, schedule, side, stream, stamp, &flow);
}

static __always_inline bool finished(const struct schedule *schedule)
{
	return schedule->made + schedule->skipped >= schedule->frames;
}

/* The Initiator's schedule whose frame is due first. */
static __always_inline struct schedule *initiators(struct sender *s)
{
	struct schedule *first = &s->schedule[INITIATOR], *other;

	if (!plan.churn)
		return first;
#pragma unroll
	for (int at = OPENING_SCHEDULE; at < SCHEDULES; at++) {
		other = &s->schedule[at];
		if (!finished(other) && (finished(first) || other->next_due <= first->next_due))
			first = other;
	}
	return first;
}

static __always_inline int generate(const enum transport_kind transport, struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct sender *s = bpf_map_lookup_elem(&senders, &zero);
	struct schedule *initiator, *responder;

	if (!s || !s->active || control.stop)
		return XDP_DROP;
	initiator = initiators(s);
	responder = &s->schedule[RESPONDER];
	if (finished(initiator) && finished(responder)) {
		/*
		 * The frames of a batch leave when it ends. In placement `shared` the device processes them before the
		 * next batch begins. So after another `batch` runs, the last frame has been processed.
		 */
		if (++s->idle < plan.batch)
			return XDP_DROP;
		if (read_clock(s))
			s->settled_ns = s->now_ns;
		s->active = 0;
		control.done[s->number & (MAX_SENDERS - 1)] = 1;
		return XDP_DROP;
	}
	if (!finished(responder) && (finished(initiator) || responder->next_due < initiator->next_due))
		return send_next(transport, ctx, s, responder, RESPONDER);
	return send_next(transport, ctx, s, initiator, INITIATOR);
}

#define GENERATOR(name, transport)                                                                                     \
	SEC("xdp") int generate_##name(struct xdp_md *ctx)                                                             \
	{                                                                                                              \
		return generate(transport, ctx);                                                                       \
	}
TRANSPORTS(GENERATOR)

/* Self-test and redirect floor: the kernel's own path, without writing or reading: no tester costs less. */
SEC("xdp")
int redirect_only(struct xdp_md *ctx)
{
	return bpf_redirect_map(&ports, (control.redirected++ & control.redirect_both) ^ control.redirect_first, 0);
}
