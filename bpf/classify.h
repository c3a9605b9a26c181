/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The receivers: classify frames as expected, duplicate, reordered, late, damaged, untranslated, mistranslated or
 * foreign. Only frames for a real server reach the host's network stack; all other frames are dropped or answered.
 */
#pragma once

#define HEADROOM   128 /* octets by which every frame can grow at its head */
#define DNS_PORT   53
#define NOT_PARSED -1 /* no frame of the plan's transport with room for its tag */
#define UNKNOWN	   15 /* neither a test frame nor a request of the device; no action of XDP is as large */
#define DAMAGED	   16 /* plus the stream, or STREAMS where that cannot be read */

enum translation { RIGHT = 0, UNTRANSLATED, MISTRANSLATED };

/* Not 0 if a frame at `side` is in a tunnel between other ends than the relay and its own customer edge. */
static __always_inline __u64 tunnel_wrong(const struct received_frame *frame, const int side)
{
	struct address right;

	if (!plan.side[side].outer)
		return 0;
	right = side == INITIATOR ? tunnel_of(frame->destination, frame->destination_port)
				  : tunnel_of(frame->source, frame->source_port);
	return (frame->tunnel.high ^ right.high) | (frame->tunnel.low ^ right.low) |
	       (frame->relay.high ^ plan.edges.relay_high) | (frame->relay.low ^ plan.edges.relay_low);
}

/* Not 0 if a part that marks do not cover is wrong: upper halves of addresses, or a source chosen by the device. */
static __always_inline __u64 unmarked_wrong(const struct received_frame *frame, const int side)
{
	const volatile struct side_plan *in = &plan.side[INITIATOR], *out = &plan.side[RESPONDER];
	__u64 wrong;

	if (side == INITIATOR && in->family == FAMILY_IPV4)
		return tunnel_wrong(frame, side);
	if (side == INITIATOR)
		return (frame->source.high ^ in->other.high) |
		       (frame->destination.high ^
			(plan.map_addresses ? map_prefix(frame->destination.low) : in->own.high));
	wrong = tunnel_wrong(frame, side);
	if (out->family == FAMILY_IPV6)
		wrong |= frame->destination.high ^ out->own.high;
	/* Perhaps untranslated; outside_check() compares it with the connection's own source. */
	if (plan.source_translated && in->family == out->family)
		wrong |= in_range(&in->own, frame->source);
	if (plan.set_known)
		wrong |= in_no_set(frame->source_port) |
			 (out->family == FAMILY_IPV6 ? frame->source.high ^ map_prefix(frame->source.low) : 0);
	else if (plan.source_known && out->family == FAMILY_IPV6)
		wrong |= frame->source.high ^ outside_source(0).high;
	else if (plan.pool_checked && !plan.source_known)
		wrong |= !in_range(&plan.pool, frame->source);
	return wrong;
}

/* Whether mark and addresses show that the four tuple is right, without computing the connection's. */
static __always_inline bool mark_confirms(const struct received_frame *frame, const int side)
{
	__u64 wrong;

	if (!plan.marks_tuples)
		return false;
	wrong = frame->tag.mark ^
		mark_of(side, frame->source, frame->destination, frame->source_port, frame->destination_port);
	wrong |= unmarked_wrong(frame, side);
	/* One branch for all comparisons: the verifier follows both ways of each branch. */
	barrier_var(wrong);
	return !wrong;
}

/* Whether the mark is one that this trial sent. Sets t to the connection's four tuple where marks depend on it. */
static __always_inline bool has_mark(const struct received_frame *frame, struct tuple *t)
{
	/* It has no four tuple here. The verifier takes it for a frame that has one where the tag is read again. */
	if (is_background(&frame->tag))
		*t = (struct tuple){};
	if (!plan.marks_tuples || is_background(&frame->tag))
		return frame->tag.mark == plan.mark;
	if (frame->tag.connection >= plan.connections)
		return false;
	tuple_at(position(frame->tag.connection), t);
	return frame->tag.mark ==
	       ((frame->tag.kind & STREAM_MASK) == PHASE2_RESPONDER ? mark_for(INITIATOR, t) : mark_for(RESPONDER, t));
}

/* The destination must be the connection's; the source the device's, or unchanged where the device only routes. */
static __always_inline enum translation outside_check(const struct received_frame *frame, const struct tuple *t)
{
	const volatile struct side_plan *in = &plan.side[INITIATOR], *out = &plan.side[RESPONDER];
	struct address inside = inside_source(t->source_address);
	bool kept = in->family == out->family && same_address(frame->source, inside);
	bool same_port = frame->source_port == t->source_port, right;

	if (plan.source_translated && kept)
		return UNTRANSLATED;
	if (!same_address(frame->destination, address_at(&out->own, t->destination_address)) ||
	    frame->destination_port != t->destination_port || tunnel_wrong(frame, RESPONDER))
		return MISTRANSLATED;
	if (plan.set_known)
		right = same_address(frame->source, outside_source(t->source_address)) &&
			!in_no_set(frame->source_port) &&
			psid_of(frame->source_port) == customer_edge(t->source_address).psid;
	else if (plan.stateless || (plan.edges.emulated && !plan.source_translated))
		right = same_port && same_address(frame->source, outside_source(t->source_address));
	else if (!plan.source_translated)
		right = same_port && (kept || (in->family != out->family && in_range(&plan.pool, frame->source)));
	else
		right = !plan.pool_checked || in_range(&plan.pool, frame->source);
	return right ? RIGHT : MISTRANSLATED;
}

/* At the Initiator addresses and ports must be those with which the connection was opened, swapped. */
static __always_inline enum translation inside_check(const struct received_frame *frame, const struct tuple *t)
{
	const volatile struct side_plan *in = &plan.side[INITIATOR];
	struct outside outside;

	if (same_address(frame->source, address_at(&in->other, t->destination_address)) &&
	    frame->source_port == t->destination_port &&
	    same_address(frame->destination, inside_source(t->source_address)) &&
	    frame->destination_port == t->source_port && !tunnel_wrong(frame, INITIATOR))
		return RIGHT;
	if (plan.source_translated && in->family == plan.side[RESPONDER].family &&
	    learned(frame->tag.connection, &outside) && same_address(frame->destination, outside.address))
		return UNTRANSLATED;
	return MISTRANSLATED;
}

static __always_inline enum translation background_check(const struct received_frame *frame, const int side)
{
	struct flow sent = {};

	background_flow(&sent, !side, frame->tag.connection);
	if (same_address(frame->source, sent.source) && same_address(frame->destination, sent.destination) &&
	    frame->source_port == sent.source_port && frame->destination_port == sent.destination_port)
		return RIGHT;
	return MISTRANSLATED;
}

static __always_inline void learn_source(struct receiver *r, const struct received_frame *frame, __u32 stream)
{
	enum learning learning = learn(frame->tag.connection, frame->source, frame->source_port, stream == PHASE1);

	/* A frame of phase 2 opens connections whose opening was lost. */
	if (learning == LEARNED_NEW && stream == PHASE1)
		r->stored++;
	else if (learning == LEARNED_OTHER)
		r->remapped++;
}

static __always_inline void count_expected(struct receiver *r, const struct received_frame *frame, __u32 stream,
					   const int side)
{
	struct tally *tally = &r->tally[stream];
	bool reordered = false;
	enum arrival arrival;
	__s64 delay = 0;

	/* A period numbers its frames as the one before; only openings have numbers of their own. */
	if (stream != PHASE1 && is_of_earlier(&frame->tag))
		return;
	if (plan.stamped)
		delay = time_since(&frame->tag, bpf_ktime_get_ns());
	arrival = record_in_window(stream, &frame->tag, &reordered);
	if (arrival == DUPLICATE) {
		tally->duplicates++;
		return;
	}
	if (stream == PHASE1 && is_of_earlier(&frame->tag))
		return;
	if (arrival == TOO_OLD || !(control.open & 1 << stream) ||
	    (plan.frame_timeout_ns && delay > (__s64)plan.frame_timeout_ns)) {
		add_value(&tally->late, plan.stamped ? delay : time_since(&frame->tag, bpf_ktime_get_ns()));
		record_late(stream, &frame->tag, arrival);
		return;
	}
	tally->received++;
	if (reordered)
		tally->reordered++;
	if (plan.accept_zero_checksum)
		tally->zero_checksums += frame->unchecked;
	if (plan.record_loss_times)
		record_arrival(stream);
	if (plan.record_delays & 1 << stream && (!plan.sampled || is_sample(stream, &frame->tag)))
		record_delay(tally, delay, stream == PHASE2_RESPONDER);
	if (plan.record_variation && plan.record_delays & 1 << stream)
		record_variation(tally, stream, &frame->tag, delay);
	if (frame->size < MOST_SIZES)
		tally->sized[frame->size]++;
	if (is_background(&frame->tag))
		tally->background++;
	else if (side == RESPONDER && !plan.stateless && !is_flood(frame->tag.connection))
		learn_source(r, frame, stream);
}

/* Whether trials of the plan have frames of this stream. */
static __always_inline bool is_sent(__u32 stream)
{
	return stream != CLOSING || plan.churn;
}

/* Not XDP_TX: on veth it wakes only peers that have an XDP program themselves. */
static __always_inline int send_back(struct xdp_md *ctx)
{
	return bpf_redirect(ctx->ingress_ifindex, 0);
}

/*
 * Turn a frame into the message that follows it at once; the last receiver checks whether that is late. A longer
 * message grows at its head, where every driver leaves room, or at its tail, where a driver may have left none. A real
 * server gets the unchanged frame through the network stack and responds itself.
 */
static __always_inline int react(const enum frame_kind kind, struct xdp_md *ctx, struct receiver *r,
				 const struct received_frame *frame, __u32 stream, const int side)
{
	const enum frame_kind next_kind = is_within(kind, FRAME_SYN, FRAME_FIN_ACK) ? kind + 1 : kind;
	const volatile struct form *next = &arriving(next_kind, !side)->form[side];
	struct flow flow = { .source = frame->destination,
			     .destination = frame->source,
			     .tunnel = frame->tunnel,
			     .source_port = frame->destination_port,
			     .destination_port = frame->source_port,
			     .tag = frame->tag };
	int longer = next->length.octets - arriving(kind, side)->form[side].length.octets;
	bool at_tail = longer > HEADROOM;

	r->tally[stream].followed[message_number(kind, !side)]++;
	/* A SYN alone opens no connection. */
	if (side == RESPONDER && !plan.stateless && kind != FRAME_SYN)
		learn_source(r, frame, stream);
	if (plan.handed_on)
		return XDP_PASS;
	if (is_tcp(kind)) {
		/* The Responder derives its time stamp from that of the SYN, and both repeat these stamps. */
		r->signs[side].restamped += kind == FRAME_SYN_ACK && frame->stamps[0] - tcp_key(RESPONDER) !=
									     frame->stamps[1] - tcp_key(INITIATOR);
		flow.stamps[0] = kind == FRAME_SYN ? frame->stamps[0] - tcp_key(INITIATOR) + tcp_key(RESPONDER)
						   : frame->stamps[1];
		flow.stamps[1] = frame->stamps[0];
	}
	if ((at_tail ? bpf_xdp_adjust_tail(ctx, longer) : bpf_xdp_adjust_head(ctx, -longer)) ||
	    put_as(next_kind, ctx, &plan.side[side], next, &next->length, &flow)) {
		r->unanswered[side]++;
		return XDP_ABORTED;
	}
	return send_back(ctx);
}

/* `right`: the mark confirms the four tuple. Otherwise t is the connection's four tuple where marks depend on it. */
static __always_inline int classify_marked(const enum frame_kind kind, struct xdp_md *ctx, struct receiver *r,
					   const struct received_frame *frame, const int side, bool right,
					   struct tuple *t)
{
	__u32 stream = frame->tag.kind & STREAM_MASK;
	enum translation translation;

	if (frame->other && is_sent(stream)) {
		r->tally[stream].wrong[message_number(kind, !side)]++;
		return XDP_DROP;
	}
	if (!frame->intact || !is_sent(stream) ||
	    (frame->tag.connection >= plan.connections && !is_background(&frame->tag)))
		return DAMAGED + (is_sent(stream) ? stream : STREAMS);
	/* Reactions belong to the stream of the frame that caused them. */
	if (!(arriving(kind, side)->streams >> stream & 1)) {
		translation = MISTRANSLATED; /* it returned to its sender */
	} else if (is_background(&frame->tag)) {
		translation = background_check(frame, side);
	} else if (right) {
		translation = RIGHT;
	} else {
		if (!plan.marks_tuples)
			tuple_at(position(frame->tag.connection), t);
		translation = side == RESPONDER ? outside_check(frame, t) : inside_check(frame, t);
	}
	if (translation == UNTRANSLATED) {
		r->tally[stream].untranslated++;
	} else if (translation == MISTRANSLATED) {
		r->tally[stream].mistranslated++;
		if (!r->stray[side].seen)
			r->stray[side] = (struct stray){ frame->source.high, frame->source.low, frame->source_port, 1 };
	} else if (arriving(kind, side)->followed) {
		return react(kind, ctx, r, frame, stream, side);
	} else {
		count_expected(r, frame, stream, side);
	}
	return XDP_DROP;
}

/* Applies `code`, a macro, to each kind of TCP segments. */
#define TCP_KINDS(code)                                                                                                \
	code(FRAME_SYN) code(FRAME_SYN_ACK) code(FRAME_ACK) code(FRAME_RESPONSE) code(FRAME_FIN) code(FRAME_FIN_ACK)   \
		code(FRAME_LAST_ACK) code(FRAME_DATA_UP) code(FRAME_DATA_DOWN)

/* Parses a frame in the form of the other side, which a device between different families did not translate. */
static __always_inline bool parse_untranslated(const enum transport_kind transport, void *data, void *end,
					       const int side, struct received_frame *frame)
{
	if (transport != TRANSPORT_TCP)
		return parse_as(datagram_of(transport), data, end, side, !side, frame);
	switch (tcp_kind(data, end, side, !side)) {
#define PARSE(kind)                                                                                                    \
	case kind:                                                                                                     \
		return tcp_sender(kind) != side && parse_as(kind, data, end, side, !side, frame);
		TCP_KINDS(PARSE)
	default:
		return false;
	}
}

/* Whether it answers an echo request of this trial, whose identifier is the lower half of the trial's mark. */
static __always_inline bool is_echo_reply(void *data, void *end)
{
	const bool ipv6 = plan.side[INITIATOR].link == FAMILY_IPV6;
	const void *ip = data + ETH_HLEN;
	const __u8 *icmp = ip + ip_octets(ipv6);

	return (const void *)(icmp + 8) <= end && ether_type(data) == ip_type(ipv6) &&
	       protocol_of(ip, ipv6) == transport_protocol(FRAME_ECHO, ipv6) && icmp[0] == (ipv6 ? 129 : 0) &&
	       *(const __be16 *)(icmp + 4) == bpf_htons(plan.mark & 0xffff);
}

/* Other frames: neighbour solicitations and ARP requests, frames as the other side sent them, foreign ones. */
static __always_inline int classify_other(const enum transport_kind transport, struct xdp_md *ctx, struct receiver *r,
					  const int side)
{
	const volatile struct side_plan *here = &plan.side[side];
	void *data = untagged_start(ctx, side), *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct received_frame frame = {};
	struct tuple t;
	int answered = 0;

	if ((void *)(eth + 1) > end)
		return XDP_DROP;
	if (eth->h_proto == bpf_htons(ETH_P_ARP))
		answered = answer_arp(ctx, here);
	else if (eth->h_proto == bpf_htons(ETH_P_IPV6))
		answered = answer_solicitation(ctx, here);
	if (!answered && plan.mixed)
		answered = answer_solicitation(ctx, &plan.background[side]);
	if (answered) {
		r->neighbour_replies[side]++;
		return send_back(ctx);
	}
	/* answer_solicitation() may have resized the frame. */
	data = untagged_start(ctx, side);
	end = (void *)(long)ctx->data_end;
	if (plan.side[INITIATOR].link != plan.side[RESPONDER].link &&
	    parse_untranslated(transport, data, end, side, &frame) && is_sent(frame.tag.kind & STREAM_MASK) &&
	    has_mark(&frame, &t))
		r->tally[frame.tag.kind & STREAM_MASK].untranslated++;
	else if (plan.modifiers.queried && side == INITIATOR && is_echo_reply(data, end))
		r->signs[side].answers++;
	else if (transport == TRANSPORT_TCP && is_reset(data, end, here))
		r->signs[side].resets++;
	else
		return UNKNOWN;
	return XDP_DROP;
}

static __always_inline int receive_as(const enum frame_kind kind, struct xdp_md *ctx, struct receiver *r,
				      const int side)
{
	void *data = untagged_start(ctx, side), *end = (void *)(long)ctx->data_end;
	struct received_frame frame = {};
	struct tuple t;
	bool parsed, right;

	parsed = parse_as(kind, data, end, side, side, &frame);
	if (kind == FRAME_UDP && !parsed && plan.mixed && plan.side[side].family == FAMILY_IPV4) {
		parsed = parse(FRAME_UDP, true, data, end, BACKGROUND_LINK, &plan.background_form, &frame);
		if (parsed && (frame.tag.mark != plan.mark || !is_background(&frame.tag)))
			return !frame.intact && is_own(frame.destination, side) ? DAMAGED + STREAMS : NOT_PARSED;
	}
	if (!parsed)
		return NOT_PARSED;
	right = mark_confirms(&frame, side);
	if (right || has_mark(&frame, &t))
		return classify_marked(kind, ctx, r, &frame, side, right, &t);
	/* With a wrong checksum it is taken for a damaged test frame. */
	if (!frame.intact && !frame.other && is_own(frame.destination, side))
		return DAMAGED + STREAMS;
	if (is_untagged(kind) && frame.intact && has_recent_stamp(kind, frame.stamps) &&
	    is_own(frame.destination, side))
		r->signs[side].renumbered++;
	else
		r->foreign[side]++;
	return XDP_DROP;
}

/* A function for each kind, which the compiler may not inline: together they would exceed the stack. */
#define RECEIVER(kind)                                                                                                 \
	static __noinline int receive_##kind(struct xdp_md *ctx, struct receiver *r)                                   \
	{                                                                                                              \
		return receive_as(kind, ctx, r, !tcp_sender(kind));                                                    \
	}
TCP_KINDS(RECEIVER)

static __noinline int receive_other(struct xdp_md *ctx, struct receiver *r, int side)
{
	return classify_other(TRANSPORT_TCP, ctx, r, side & 1);
}

static __always_inline int receive_tcp(struct xdp_md *ctx, struct receiver *r, const int side)
{
	int verdict = NOT_PARSED;

	switch (tcp_kind(untagged_start(ctx, side), (void *)(long)ctx->data_end, side, side)) {
#define RECEIVE(kind)                                                                                                  \
	case kind:                                                                                                     \
		verdict = tcp_sender(kind) == side ? NOT_PARSED : receive_##kind(ctx, r);                              \
		break;
		TCP_KINDS(RECEIVE)
	default:
		break;
	}
	return verdict == NOT_PARSED ? receive_other(ctx, r, side) : verdict;
}

/* Counts what was taken for no test frame, or for a damaged one, as what it is. */
static __always_inline int sorted(struct xdp_md *ctx, struct receiver *r, const int side, int verdict)
{
	__u32 stream = verdict - DAMAGED; /* of what is UNKNOWN, more than there are */

	if (verdict < UNKNOWN)
		return verdict;
	if (stream > STREAMS)
		stream = STREAMS;
	if (count_odd(ctx, &r->odd[side][stream], side))
		return XDP_DROP;
	if (verdict == UNKNOWN)
		r->foreign[side]++;
	else if (stream < STREAMS)
		r->tally[stream].damaged++;
	else
		r->damaged_unmarked[side]++;
	return XDP_DROP;
}

static __always_inline bool is_dns_query(const struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const bool ipv6 = plan.side[RESPONDER].family == FAMILY_IPV6;
	const void *ip = data + ETH_HLEN;
	const struct udphdr *udp = ip + ip_octets(ipv6);

	return (void *)(udp + 1) <= end && protocol_of(ip, ipv6) == IPPROTO_UDP && udp->dest == bpf_htons(DNS_PORT);
}

/*
 * Counts a frame in another VLAN. An answer in another VLAN is none, so the self-test, which counts foreign frames,
 * must not see it. Inlined, the compiler would keep the frame's address in 32 bits, which the kernel refuses.
 */
static __noinline int is_elsewhere(struct xdp_md *ctx, struct receiver *r, const int side)
{
	if (has_vlans(ctx, side))
		return 0;
	count_odd(ctx, &r->odd[side][STREAMS], side);
	return 1;
}

static __always_inline int receive(const enum transport_kind transport, struct xdp_md *ctx, const int side)
{
	struct receiver *r;
	__u32 zero = 0;
	int verdict;

	r = bpf_map_lookup_elem(&receivers, &zero);
	if (!r)
		return XDP_DROP;
	if (plan.side[side].tagged && is_elsewhere(ctx, r, side))
		return XDP_DROP;
	if (transport == TRANSPORT_UDP && side == RESPONDER && plan.handed_on == HAND_ALL) {
		verdict = classify_other(transport, ctx, r, side);
		/* The self-test waits for an answer of the device's; during a trial they are the server's. */
		r->foreign[side] += verdict == UNKNOWN && !control.open;
		if (verdict == UNKNOWN && is_dns_query(ctx))
			r->tally[control.open & 1 << PHASE1 ? PHASE1 : PHASE2_INITIATOR].asked += !!control.open;
		return verdict == UNKNOWN ? XDP_PASS : verdict;
	}
	if (transport == TRANSPORT_TCP)
		return sorted(ctx, r, side, receive_tcp(ctx, r, side));
	verdict = receive_as(datagram_of(transport), ctx, r, side);
	return sorted(ctx, r, side, verdict == NOT_PARSED ? classify_other(transport, ctx, r, side) : verdict);
}

#define RECEIVERS(name, transport)                                                                                     \
	SEC("xdp") int receive_##name##_initiator(struct xdp_md *ctx)                                                  \
	{                                                                                                              \
		return receive(transport, ctx, INITIATOR);                                                             \
	}                                                                                                              \
	SEC("xdp") int receive_##name##_responder(struct xdp_md *ctx)                                                  \
	{                                                                                                              \
		return receive(transport, ctx, RESPONDER);                                                             \
	}
TRANSPORTS(RECEIVERS)

/* Does nothing: measures the overhead of the kernel's own timing of programs, and is the redirect floor's receiver. */
SEC("xdp")
int receive_nothing(struct xdp_md *ctx)
{
	return XDP_DROP;
}
