/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Everything that crosses the border between the frame programs and the engine. The Rust side is generated from this
 * file at build time, so there is no second copy. Addresses and ports are in host byte order here; times in ns of
 * CLOCK_MONOTONIC; lengths in octets, without FCS.
 */
#ifndef NATGAUGE_SHARED_H
#define NATGAUGE_SHARED_H

/* Numbers that both sides know. Enumerators, not macros: the Rust side is generated from types, and macros are none. */
enum constant {
	MAX_SENDERS = 64,
	/* The state table lies in pieces, so that they can be zeroed side by side. */
	MAX_PIECES = 512,
	/* Octets of a connection in the state table; see table.h. */
	ENTRY4_OCTETS = 8,
	ENTRY6_OCTETS = 24,
	/* Duplicates are told apart while no more than 2^21 later frames of their stream have come. */
	WINDOW_WORDS = 65536,
	WORD_FRAMES = 32,
	/* Words with lost frames that have left a window and are remembered. */
	LOST_WORDS = 65536,
	/* Stalls of a sender in one phase that are remembered. */
	MOST_STALLS = 4096,
	/* Frames of a stream whose delays are kept for the difference to the next one's. */
	RECENT_FRAMES = 4096,
	/* Delays: 128 buckets an octave (relative width <= 1/128), exact below 128 ns, up to 2^40 ns. */
	DELAY_BITS = 40,
	DELAY_SUB_BITS = 7,
	DELAY_BUCKETS = (DELAY_BITS - DELAY_SUB_BITS + 1) << DELAY_SUB_BITS,
	/* Sending times have 2^-20 ns of resolution, so a schedule of 10^9 frames is off by less than 1 ms in all. */
	DUE_FRACTION = 20,
	/* RFC 2544 C.2.6.4; each router takes one away. */
	TEST_TTL = 10,
	/* What the 18 octets behind the UDP header hold is struct tag: all that fits into a 64-octet IPv4 frame. */
	TAG_OCTETS = 18,
	/* Of the longest message: an answer with an IPv6 address. */
	MESSAGE_WORDS = 12,
	/* Where a message holds the tag, in letters of four bits each. */
	LETTERS_AT = 13,
	/* One for each word of a four tuple that varies, and one more. */
	MARK_KEYS = 6,
	/* Of a tag's kind: the stream; the rest is the sender. */
	STREAM_BITS = 2,
	STREAM_MASK = (1 << STREAM_BITS) - 1,
	/* A connection's index; one bit more says that a frame is of the background. */
	CONNECTION_BITS = 31,
};

enum side { INITIATOR = 0, RESPONDER = 1, SIDES = 2 };

/* A stream: one direction of one phase. */
enum stream { PHASE1 = 0, PHASE2_INITIATOR = 1, PHASE2_RESPONDER = 2, STREAMS = 3 };

/* Differences of delays are counted by their sign. */
enum sign { NOT_NEGATIVE = 0, NEGATIVE = 1, SIGNS = 2 };

/* What stands behind the UDP header: a tag and padding, or a message of the DNS with the tag in the name. */
enum payload { PAYLOAD_PLAIN = 0, PAYLOAD_QUESTION = 1, PAYLOAD_ANSWER = 2, PAYLOADS = 3 };

enum family { FAMILY_IPV4 = 4, FAMILY_IPV6 = 6 };

/* RFC 9693 section 4.4: pseudorandom is required, the others may be measured as well. */
enum order { ORDER_PERMUTATION = 0, ORDER_INCREASING = 1, ORDER_DECREASING = 2, ORDER_WITH_REPLACEMENT = 3 };

/* RFC 9693 section 4.10. */
enum reading { READING_PSEUDORANDOM = 0, READING_INCREASING = 1, READING_ONCE = 2 };

/* In the frame, little-endian, up to TAG_OCTETS. */
struct tag {
	__u32 mark;	  /* of this trial and of the four tuple to arrive with; see mark.h */
	__u32 connection; /* index, 0 to N-1 */
	__u32 sequence;	  /* within its stream and sender, modulo 2^32 */
	__u8 kind;	  /* stream | sender << STREAM_BITS */
	__u8 sent_low;	  /* sending time, ns modulo 2^40: 8 bits, 16 bits, 16 bits */
	__u16 sent_middle;
	__u16 sent_high;
	__u16 unused; /* not in the frame */
};

/* Exact division of x < 2^31 by multiplication when shift is not 0, otherwise by a division. */
struct divisor {
	__u64 by;
	__u64 magic;
	__u32 shift;
	__u32 unused;
};

/* Set in a tag's connection: a background frame, the rest is its draw. Connections are fewer than that. */
#define BACKGROUND_FRAME (1U << CONNECTION_BITS)

/* Addresses first, first + step, ...; only the lower 64 bits vary. IPv4 uses the lower 32 bits of low. */
struct addresses {
	__u64 high;
	__u64 low;
	__u64 step;
	__u64 count;
};

/* A keyed permutation of [0, size): a Feistel network over rows x columns, the smallest rectangle that holds it. */
struct permutation {
	__u64 size;
	__u64 rows;
	struct divisor columns;
	__u32 key[3];
	__u32 unused;
};

/* Which frames of a stream are timed: every so many, from one on, at most so many. */
struct sampling {
	__u64 from;
	__u64 every;
	__u64 frames;
};

/* Octets as they lie in a frame, but for identifier and letters, which each frame has of its own. */
struct message {
	__u64 words[MESSAGE_WORDS];
	__u64 mask[MESSAGE_WORDS]; /* what one that is received must have as words has it */
};

struct side_plan {
	__u32 ethernet[3]; /* gateway's and own address as they lie in a frame */
	enum family family;
	__u32 octets; /* length of the frames on this side */
	__u16 mac[3];
	__u16 unused;
	enum payload payload;
	/* Sums of what no frame changes, as the checksum adds it. */
	__u64 ip_sum;	      /* IPv4 header without addresses */
	__u64 transport_sum;  /* pseudo header without addresses, transport header without ports, padding or message */
	struct addresses own; /* answered by ARP and NDP */
	struct addresses other; /* the far side's hosts as this side writes them */
};

/* Fixed for a trial; load-time constants, so no frame pays for an option. */
struct plan {
	__u32 mark;
	enum order order;
	enum reading reading;
	__u32 stamped;	     /* 1: every frame carries its own sending time */
	__u32 record_delays; /* bit per stream */
	__u32 source_translated;
	__u32 pool_checked;
	__u32 batch;	 /* turns of a sender whose frames leave together; 1: waiting is done inside the program */
	__u32 stateless; /* 1: no phase 1, nothing is learned */
	__u32 stepped;	 /* 1: the rates change within phase 2 */
	__u32 sampled;	 /* 1: only the frames that sampling names are timed */
	__u32 record_variation;
	__u32 record_loss_times;
	__u32 handed_on; /* 1: a question that came as it should goes on to the stack behind the port */
	__u32 senders;
	/* Phase 2: frame i of a direction is foreground when i modulo mix_of < mix_foreground (RFC 8219 section 5.3).
	 */
	__u32 mixed;
	__u32 mix_of;
	__u32 mix_foreground;
	__u32 longest;		/* octets of the longest of all frames */
	__u32 fetched_ahead;	/* 1: the state table is larger than a core's nearest caches, and read at random */
	__u64 frame_timeout_ns; /* 0: none */
	__u64 stall_ns;		/* a sender that did nothing for longer stood still */
	__u64 connections;
	__u64 draw_key;
	__u64 mark_keys[MARK_KEYS];
	__u32 source_port_first;
	__u32 destination_port_first;
	struct divisor pieces; /* connections in a piece of the state table */
	struct divisor source_ports;
	struct divisor source_addresses;
	struct divisor destination_ports;
	__u64 space; /* four tuples in all */
	struct permutation tuples;
	struct permutation readings;
	struct addresses pool;
	struct sampling sampling[STREAMS];
	struct side_plan side[SIDES];
	struct side_plan background[SIDES]; /* native IPv6 */
	struct side_plan answers[SIDES];    /* where the Initiator sends questions */
	struct message messages[PAYLOADS];
};

/* The engine writes, the programs read, while they run. */
struct control {
	__u32 stop;
	__u32 open;	    /* bit per stream: its frames are on time */
	__u32 generator_id; /* program id, to know whose redirect failed */
	__u32 port_ifindex[SIDES];
	__u32 port_netns[SIDES]; /* inode number of the namespace */
	__u32 unused;
	__u64 done[MAX_SENDERS]; /* written by a sender when its last frame is made */
};

/* Of the redirect floor: which port a frame goes to. */
struct aim {
	__u32 first; /* the first frame's side */
	__u32 both;  /* 1: the next one's is the other, and so on */
	__u32 turn;
	__u32 unused;
};

/* One direction of one sender. */
struct schedule {
	__u64 frames; /* to be made by this sender */
	__u64 made;
	__u64 skipped;	  /* readings that found no stored connection */
	__u64 background; /* of those made */
	__u64 next_due;	  /* ns since start << DUE_FRACTION */
	__u64 interval;	  /* ns << DUE_FRACTION */
	/* Where the rates change: the first frame of the new one, when it is due, and the new interval. */
	__u64 step_at;
	__u64 step_due;
	__u64 step_interval;
	__u64 lag_worst; /* ns */
	__u64 lag_sum;	 /* ns, over lag_samples readings of the clock */
	__u64 lag_samples;
	__u64 lag_final; /* of the last frame */
	__u64 last_ns;	 /* since start, when the last frame was made */
};

/* A sender is a thread pinned to a CPU; its state is that CPU's. */
struct sender {
	__u64 start_ns;
	__u64 now_ns;	/* since start, when the clock was last read */
	__u64 first_ns; /* since start, of the first frame; 0 = none yet */
	__u64 stalls;
	__u64 stalled_ns;
	__u64 worst_stall_ns;
	__u32 credit; /* frames that may leave before the clock is read again */
	__u32 number;
	__u32 senders;
	__u32 active;
	__u32 idle; /* turns since the last frame of all was made */
	__u32 unused;
	__u64 catch_up_percent; /* of its rate, the most while it makes up for a stall; 0 = as fast as it can */
	__u64 slack_ns;		/* so far behind it may be without making up for it slowly */
	/* Since when it makes up for a stall, and when the frame was due that left then; 0 = it does not. */
	__u64 behind_ns;
	__u64 behind_due_ns;
	__u64 settled_ns;	   /* since start, when the batch of the last frame had been worked off */
	enum stream stream[SIDES]; /* which stream each side's schedule feeds */
	struct schedule schedule[SIDES];
};

/* When a sender did nothing of its task: between two readings of the clock, ns since its schedule's start. */
struct stall {
	__u64 from_ns;
	__u64 to_ns;
};

/* A sender's first ones of a phase, as many as it counted. */
struct stalls {
	struct stall list[MOST_STALLS];
};

/* Raw counts of one stream; see the trial contract for the words. */
struct tally {
	__u64 received;
	__u64 duplicates;
	__u64 reordered;
	__u64 late;
	__u64 damaged;
	__u64 untranslated;
	__u64 mistranslated;
	__u64 delays;
	__u64 negative;
	__s64 delay_minimum;
	__s64 delay_maximum;
	__s64 delay_sum;
	__u64 background; /* of those received */
	__u64 pairs;
	__s64 variation_minimum;
	__s64 variation_maximum;
	__u64 questions;     /* that came to the Responder as they should; what is received then are their answers */
	__u64 wrong_answers; /* whole ones that say something else; not among those received */
};

/* What came of one stream of one sender. */
struct window {
	__u32 next;   /* sequence after the highest seen */
	__u32 losses; /* of those below; more than LOST_WORDS: the others are forgotten */
	__u64 lost;   /* 1 + sequence of the last frame that has left the window unseen, or came too late; 0: none */
	__u64 words[WINDOW_WORDS];
	/* Frames that have left the window unseen, or came too late: a word's number above flags of what it lacks. */
	__u64 missing[LOST_WORDS];
};

/* The two arrivals of a stream with the longest time between them, and the last one; 0: none yet. */
struct silence {
	__u64 from_ns;
	__u64 to_ns;
	__u64 last_ns;
};

/* Per CPU. */
struct receiver {
	struct tally tally[STREAMS];
	__u64 foreign[SIDES];
	__u64 damaged_unmarked[SIDES]; /* broken so badly that no stream can be named */
	__u64 neighbour_replies[SIDES];
	__u64 stored;
	__u64 remapped;
	__u64 unanswered; /* questions that could not be made into an answer */
};

/* Per CPU, per port; what the port did with what it was given. */
struct port_tally {
	__u64 accepted;
	__u64 refused;
	__u64 redirect_errors;
};

#endif
