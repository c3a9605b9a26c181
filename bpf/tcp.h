/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * TCP (RFC 9293) without a stack: both sequence numbers of a connection follow from its index, so nothing is stored. A
 * handshake has no payload. The index travels in the Initiator's initial sequence number, and the sending time of the
 * SYN in its time stamp (RFC 7323), which all three frames contain. Frames of phase 2 have a tag, as UDP's have, and
 * always the first octets of the connection, so they are within the window.
 */
#ifndef NATGAUGE_TCP_H
#define NATGAUGE_TCP_H

#define TCP_SEQUENCE	   1 /* words of the header */
#define TCP_ACKNOWLEDGMENT 2
#define TCP_FLAGS_WORD	   3
#define TCP_CHECKSUM	   4
#define TCP_FLAGS_AT	   13 /* octet of the header */
#define TCP_STAMP_SHIFT	   10 /* a tick of the time stamps is 1024 ns, as of Linux's option for microseconds */

enum tcp_flags { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_PSH = 8, TCP_ACK = 16 };

/* A frame's position in the two streams of octets. */
struct tcp_numbers {
	__u32 sequence, acknowledgment;
};

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

/* A side's key. */
static __always_inline __u32 tcp_key(const int side)
{
	return plan.mark_keys[side];
}

/* Word of the header with the sender's time stamp; the next word echoes the peer's. */
static __always_inline int tcp_stamp_word(const enum frame_kind kind)
{
	return is_opening(kind) ? 7 : 6;
}

/* A side's time stamp at a time of the monotonic clock. */
static __always_inline __u32 tcp_stamp(const int side, __u64 ns)
{
	return tcp_key(side) + (__u32)(ns >> TCP_STAMP_SHIFT);
}

/* The numbers in a connection's frames of this kind. */
static __always_inline struct tcp_numbers tcp_numbers_of(const enum frame_kind kind, __u32 connection)
{
	__u32 initiator = scrambled(connection, tcp_key(INITIATOR));
	__u32 responder = scrambled(initiator, tcp_key(RESPONDER));

	switch (kind) {
	case FRAME_SYN:
		return (struct tcp_numbers){ initiator, 0 };
	case FRAME_SYN_ACK:
		return (struct tcp_numbers){ responder, initiator + 1 };
	case FRAME_DATA_DOWN:
		return (struct tcp_numbers){ responder + 1, initiator + 1 };
	default:
		return (struct tcp_numbers){ initiator + 1, responder + 1 };
	}
}

/* `sum`: of pseudo header and payload; `stamps`: the sender's time stamp, and the echo of its peer's. */
static __always_inline void put_tcp(const enum frame_kind kind, __be32 *to, const volatile struct form *form,
				    __u32 ports, __u32 connection, const __u32 *stamps, __u64 sum)
{
	struct tcp_numbers numbers = tcp_numbers_of(kind, connection);
	const int stamp = tcp_stamp_word(kind);
	__be32 sequence = bpf_htonl(numbers.sequence), acknowledgment = bpf_htonl(numbers.acknowledgment);
	__be32 own = bpf_htonl(stamps[0]), echo = bpf_htonl(stamps[1]);

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

/* Whether length and flags of a header are those of the form's. */
static __always_inline bool tcp_is(const __be32 *from, const volatile struct form *form)
{
	return (__u16)from[TCP_FLAGS_WORD] == (__u16)form->header[TCP_FLAGS_WORD];
}

static __always_inline void parse_stamps(const enum frame_kind kind, const __be32 *from, __u32 *stamps)
{
	stamps[0] = bpf_ntohl(from[tcp_stamp_word(kind)]);
	stamps[1] = bpf_ntohl(from[tcp_stamp_word(kind) + 1]);
}

/* The tag of a frame of the handshake. A number that is of no connection results in mark 0, which no trial has. */
static __always_inline void parse_handshake(const enum frame_kind kind, struct tag *tag, const __be32 *from,
					    const __u32 *stamps)
{
	__u32 first = kind == FRAME_SYN	  ? bpf_ntohl(from[TCP_SEQUENCE])
		      : kind == FRAME_ACK ? bpf_ntohl(from[TCP_SEQUENCE]) - 1
					  : bpf_ntohl(from[TCP_ACKNOWLEDGMENT]) - 1;
	__u32 ticks = stamps[kind == FRAME_SYN_ACK] - tcp_key(INITIATOR);
	__u64 sent = (__u64)ticks << TCP_STAMP_SHIFT;

	tag->connection = unscrambled(first, tcp_key(INITIATOR));
	tag->mark = tag->connection < plan.connections ? plan.mark : 0;
	/* In phase 1 the senders take the connections in turn. */
	tag->sequence = tag->connection / plan.senders;
	tag->kind = PHASE1 | (tag->connection % plan.senders) << STREAM_BITS;
	tag->sent_low = sent;
	tag->sent_middle = sent >> 8;
	tag->sent_high = sent >> 24;
}

/* Whether both numbers are those of the connection. */
static __always_inline bool tcp_numbers_match(const enum frame_kind kind, const __be32 *from, __u32 connection)
{
	struct tcp_numbers right = tcp_numbers_of(kind, connection);

	return bpf_ntohl(from[TCP_SEQUENCE]) == right.sequence &&
	       bpf_ntohl(from[TCP_ACKNOWLEDGMENT]) == right.acknowledgment;
}

/* Time stamps of the reaction to a frame with these: those of the time at which the SYN was sent. */
static __always_inline void reaction_stamps(const enum frame_kind kind, const __u32 *received, __u32 *stamps)
{
	stamps[0] = kind == FRAME_SYN ? received[0] - tcp_key(INITIATOR) + tcp_key(RESPONDER) : received[1];
	stamps[1] = received[0];
}

#endif
