/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * TCP (RFC 9293) without a stack: both sequence numbers of a connection follow from its index, so nothing is stored.
 * Segments of data in phase 2 have a tag, and always the first octets of the connection, so they are within the window.
 * The others have none: the Initiator's initial sequence number contains the index, and the time stamp (RFC 7323) of
 * the first segment, which all reactions repeat, its sending time.
 */
#pragma once

#define TCP_SEQUENCE	   1 /* words of the header */
#define TCP_ACKNOWLEDGMENT 2
#define TCP_FLAGS_WORD	   3
#define TCP_CHECKSUM	   4
#define TCP_STAMP_SHIFT	   10 /* a tick of the time stamps is 1024 ns, as of Linux's option for microseconds */

/* A permutation of all 32-bit numbers: steps of MurmurHash3's finalizer, each of which has an inverse. */
static __always_inline __u32 scrambled(__u32 x, __u32 key)
{
	x = (x + key) * 0x9e3779b1;
	return (x ^ x >> 16) * 0x85ebca6b;
}

/* Its inverse: the factors are those of above to the power of -1 modulo 2^32. */
static __always_inline __u32 unscrambled(__u32 x, __u32 key)
{
	x *= 0xa5cb9243;
	return (x ^ x >> 16) * 0x0e8b2f51 - key;
}

static __always_inline __u32 tcp_key(const int side)
{
	return plan.mark_keys[side];
}

/* Word of the header with the sender's time stamp; the next word echoes the peer's. */
static __always_inline int tcp_stamp_word(const enum frame_kind kind)
{
	return is_opening(kind) ? 7 : 6;
}

/* The side that sends segments of this kind: they alternate. */
static __always_inline int tcp_sender(const enum frame_kind kind)
{
	return (kind - FRAME_SYN) % SIDES;
}

static __always_inline const volatile struct message *tcp_message(const enum frame_kind kind)
{
	return &plan.messages[kind - FRAME_SYN];
}

/* Whether frames of a stream close connections, in the order in which these were opened. */
static __always_inline bool closes(__u32 stream)
{
	return plan.closes && plan.closes >> stream & 1;
}

/* A side's time stamp at a time of the monotonic clock. */
static __always_inline __u32 tcp_stamp(const int side, __u64 ns)
{
	return tcp_key(side) + (__u32)(ns >> TCP_STAMP_SHIFT);
}

/* Set both numbers of a segment, as in a frame. */
static __always_inline void find_numbers(const enum frame_kind kind, __u32 connection, __be32 *sequence,
					 __be32 *acknowledgment)
{
	const volatile struct message *message = tcp_message(kind);
	__u32 initiator = scrambled(connection, tcp_key(INITIATOR));
	__u32 responder = scrambled(initiator, tcp_key(RESPONDER));
	bool up = tcp_sender(kind) == INITIATOR;

	*sequence = bpf_htonl((up ? initiator : responder) + message->sequence);
	*acknowledgment = kind == FRAME_SYN ? 0 : bpf_htonl((up ? responder : initiator) + message->acknowledgment);
}

/* `sum`: of pseudo header and payload; `stamps`: the sender's time stamp, and the echo of its peer's. */
static __always_inline void put_tcp(const enum frame_kind kind, __be32 *to, const volatile struct form *form,
				    __u32 ports, __u32 connection, const __u32 *stamps, __u64 sum)
{
	const int stamp = tcp_stamp_word(kind);
	__be32 own = bpf_htonl(stamps[0]), echo = bpf_htonl(stamps[1]), sequence, acknowledgment;

	find_numbers(kind, connection, &sequence, &acknowledgment);
	sum += (__u64)ports + sequence + acknowledgment + own + echo;
	to[0] = ports;
	to[TCP_SEQUENCE] = sequence;
	to[TCP_ACKNOWLEDGMENT] = acknowledgment;
	to[TCP_FLAGS_WORD] = form->header[TCP_FLAGS_WORD];
	to[TCP_CHECKSUM] = (__u16)~fold(sum);
	for (int word = TCP_CHECKSUM + 1; word < stamp; word++)
		to[word] = form->header[word];
	to[stamp] = own;
	to[stamp + 1] = echo;
	if (stamp + 2 < header_octets(kind) / 4)
		to[stamp + 2] = form->header[stamp + 2];
}

/* The tag of a segment without one. A number that is of no connection results in mark 0, which no trial has. */
static __always_inline void parse_untagged(const enum frame_kind kind, struct tag *tag, const __be32 *from,
					   const __u32 *stamps)
{
	const volatile struct message *message = tcp_message(kind);
	bool up = tcp_sender(kind) == INITIATOR;
	__u32 first = up ? bpf_ntohl(from[TCP_SEQUENCE]) - message->sequence
			 : bpf_ntohl(from[TCP_ACKNOWLEDGMENT]) - message->acknowledgment;
	__u32 ticks = (up ? stamps[0] : stamps[1]) - tcp_key(INITIATOR);
	/* A stamp is rounded down: the middle of its tick is right on average. */
	__u64 sent = ((__u64)ticks << TCP_STAMP_SHIFT) + (1 << (TCP_STAMP_SHIFT - 1));
	__u32 number;

	tag->connection = unscrambled(first, tcp_key(INITIATOR));
	tag->mark = tag->connection < plan.connections ? plan.mark : 0;
	/* The senders take the connections in turn, in the order in which they are opened. A reaction has no number. */
	number = plan.opens_permuted && !message->followed ? permute(tag->connection, OPENINGS) : tag->connection;
	tag->sequence = number / plan.senders;
	tag->kind = message->stream | (number % plan.senders) << STREAM_BITS;
	set_sent(tag, sent);
}

static __always_inline bool tcp_numbers_match(const enum frame_kind kind, const __be32 *from, __u32 connection)
{
	__be32 sequence, acknowledgment;

	find_numbers(kind, connection, &sequence, &acknowledgment);
	return from[TCP_SEQUENCE] == sequence && from[TCP_ACKNOWLEDGMENT] == acknowledgment;
}

/* The last ACK and the third segment can have the same flags. Whether the numbers are those of the last ACK. */
static __always_inline bool is_last_ack(const __be32 *from)
{
	const volatile struct message *last = tcp_message(FRAME_LAST_ACK);
	__u32 initiator = bpf_ntohl(from[TCP_SEQUENCE]) - last->sequence;

	return last->streams &&
	       bpf_ntohl(from[TCP_ACKNOWLEDGMENT]) - last->acknowledgment == scrambled(initiator, tcp_key(RESPONDER));
}

/* Whether the first segment's time stamp, which reactions repeat, is of the last 17 s: keys of others make others. */
static __always_inline bool has_recent_stamp(const enum frame_kind kind, const __u32 *stamps)
{
	__u32 first = tcp_sender(kind) == INITIATOR ? stamps[0] : stamps[1];

	return !((tcp_stamp(INITIATOR, bpf_ktime_get_ns()) - first) >> 24);
}

static __always_inline bool is_reset(void *data, void *end, const volatile struct side_plan *here)
{
	const bool ipv6 = here->family == FAMILY_IPV6;
	const void *ip = data + here->outer + ETH_HLEN;
	const struct tcphdr *tcp = ip + ip_octets(ipv6);

	return (const void *)(tcp + 1) <= end && ether_type(data) == ip_type(here->link == FAMILY_IPV6) &&
	       protocol_of(ip, ipv6) == IPPROTO_TCP && tcp->rst;
}
