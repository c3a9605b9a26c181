/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * All types and numbers that frame programs and engine share. The Rust side is generated from this file at build time.
 * Addresses and ports are in host byte order, times in ns of CLOCK_MONOTONIC, lengths in octets without FCS.
 */
#pragma once

/* Numbers for both sides. Enumerators, because the Rust side is generated from types and macros leave none. */
enum constant {
	MAX_SENDERS = 64,
	MAX_PIECES = 512, /* of the state table, which several threads allocate and zero in parallel */
	/* Octets of the state table per connection; see table.h. */
	ENTRY4_OCTETS = 8,
	ENTRY6_OCTETS = 24,
	/* A duplicate is recognized unless more than 2^21 later frames of its stream have arrived before it. */
	WINDOW_WORDS = 65536,
	WORD_FRAMES = 32,
	LOST_WORDS = 65536,   /* words with lost frames that are recorded after they have left the window */
	MOST_STALLS = 4096,   /* recorded ones per sender and phase */
	RECENT_FRAMES = 4096, /* of a stream, whose delays are kept to compute differences between neighbours */
	/* Delays: 128 buckets per octave (relative width <= 1/128), exact below 128 ns, up to 2^40 ns. */
	DELAY_BITS = 40,
	DELAY_SUB_BITS = 7,
	DELAY_BUCKETS = (DELAY_BITS - DELAY_SUB_BITS + 1) << DELAY_SUB_BITS,
	/* Resolution of sending times is 2^-20 ns: a schedule of 10^9 frames is off by less than 1 ms in total. */
	DUE_FRACTION = 20,
	FRAMES_AHEAD = 16, /* frames of a schedule whose four tuples are computed together */
	TEST_TTL = 10,	   /* RFC 2544 C.2.6.4; each router decrements it */
	/* Octets of struct tag in a frame, after the UDP header: all that a 64-octet IPv4 frame has room for. */
	TAG_OCTETS = 18,
	MOST_MESSAGES = 9,  /* of a connection */
	MOST_SIZES = 8,	    /* of the frames of one direction */
	MOST_VLANS = 2,	    /* tags of a frame */
	HEADER_WORDS = 10,  /* of 32 bits, of the longest header after IP */
	CONTENT_WORDS = 12, /* of 64 bits, of the longest DNS message, a response with an IPv6 address */
	LETTERS_AT = 13,    /* octets before the tag in a DNS message, which is written as letters of four bits each */
	MARK_KEYS = 6,	    /* one for each 32-bit word of a four tuple that varies, and one more */
	SEAL_KEYS = 4,	    /* of the seal of a tag; see mark.h */
	/* Lower bits of a tag's kind hold the stream, the others the sender. */
	STREAM_BITS = 2,
	STREAM_MASK = (1 << STREAM_BITS) - 1,
	CONNECTION_BITS = 31, /* of a connection's index; the next bit marks background frames */
};

enum side { INITIATOR = 0, RESPONDER = 1, SIDES = 2 };

/* A stream: one direction of one phase. PHASE1 has all frames that open connections, and CLOSING those that close them
 * while others are opened, or those of a flood, which get no further frame. */
enum stream { PHASE1 = 0, PHASE2_INITIATOR = 1, PHASE2_RESPONDER = 2, CLOSING = 3, STREAMS = 4 };

/* Schedules of a sender: one of each side, and the Initiator's further ones with churn. */
enum schedules { OPENING_SCHEDULE = SIDES, CLOSING_SCHEDULE, SCHEDULES };

/* Delay differences are counted separately by sign. */
enum sign { NOT_NEGATIVE = 0, NEGATIVE = 1, SIGNS = 2 };

/* The header between IP and the tag. */
enum transport_kind { TRANSPORT_UDP = 0, TRANSPORT_ICMP = 1, TRANSPORT_TCP = 2 };

/*
 * Kinds of test frames. FRAME_SYN to FRAME_LAST_ACK are the messages of a TCP connection in their order, FRAME_ACK may
 * contain a request, and FRAME_FIN may be a reset. Of all of TCP the Initiator sends the even ones (tcp_sender).
 */
enum frame_kind {
	FRAME_UDP = 0,
	FRAME_ECHO,
	FRAME_SYN,
	FRAME_SYN_ACK,
	FRAME_ACK,
	FRAME_RESPONSE,
	FRAME_FIN,
	FRAME_FIN_ACK,
	FRAME_LAST_ACK,
	FRAME_DATA_DOWN,
	FRAME_DATA_UP,
};

enum family { FAMILY_IPV4 = 4, FAMILY_IPV6 = 6 };

/* RFC 9693 section 4.4 requires pseudorandom order and allows the others in addition. */
enum order { ORDER_PERMUTATION = 0, ORDER_INCREASING = 1, ORDER_DECREASING = 2, ORDER_WITH_REPLACEMENT = 3 };

/* RFC 9693 section 4.10. */
enum reading { READING_PSEUDORANDOM = 0, READING_INCREASING = 1, READING_ONCE = 2 };

/* Identifies a test frame. Its first TAG_OCTETS are in the frame, in little-endian order. */
struct tag {
	/* From the trial and the four tuple expected on arrival; see mark.h. In the frame under a seal. */
	__u32 mark;
	__u32 connection; /* index, 0 to N-1 */
	__u32 sequence;	  /* within its stream and sender, modulo 2^32 */
	__u8 kind;	  /* stream | sender << STREAM_BITS */
	__u8 sent_low;	  /* sending time, ns modulo 2^40: 8 bits, 16 bits, 16 bits */
	__u16 sent_middle;
	__u16 sent_high;
	__u16 unused; /* not in the frame */
};

/* Division of x < 2^31: by multiplication, which is exact, where shift is not 0; otherwise by a division. */
struct divisor {
	__u64 by;
	__u64 magic;
	__u32 shift;
};

/* Set in tag.connection of background frames, whose other bits hold their random draw. Indexes are below it. */
#define BACKGROUND_FRAME (1U << CONNECTION_BITS)

/*
 * Range of addresses first, first + step, ...; only the lower 64 bits vary. IPv4 uses the lower 32 bits of low. Behind
 * a prefix, low is an IPv4 address, which is embedded after its `prefix` bits, 32 to 64; high has the bits that are
 * equal in all addresses (RFC 6052 section 2.2).
 */
struct addresses {
	__u64 high;
	__u64 low;
	__u64 step;
	__u64 count;
	__u64 prefix; /* 0: the addresses embed nothing, or count in their last 32 bits */
};

/* A keyed permutation of [0, size): a Feistel network over rows x columns >= size. */
struct permutation {
	__u64 size;
	__u64 rows;
	struct divisor columns;
	__u32 key[3];
	__u32 inverse; /* 1: of the permutation with these keys from the last to the first */
};

/* Timed frames of a stream: from, from + every, ..., at most `frames` of them. */
struct sampling {
	__u64 from;
	__u64 every;
	__u64 frames;
};

/* A DNS message as in a frame; identifier and letters of the name, which differ between frames, are 0. */
struct content {
	__u64 words[CONTENT_WORDS];
	__u64 mask[CONTENT_WORDS]; /* bits in which a received message must equal words */
	/* Bits in which the message about a name with an AAAA record of its own differs, and its checksum sum. */
	__u64 other[CONTENT_WORDS];
	__u64 other_sum;
};

/* What depends on the length of frames. The checksum sums are of the octets that are equal in all of them. */
struct length {
	__u32 octets;
	__u64 ip_sum;	     /* IPv4 header without addresses */
	__u64 transport_sum; /* pseudo header without addresses, transport header without ports, rest of payload */
};

/* Frames of one message, as written on one side. */
struct form {
	struct length length;
	__u32 lettered; /* 1: after the transport header `content` with the tag in letters; 0: tag and padding */
	__u32 reply;	/* ICMP: 1: the identifier is the destination's */
	__u32 header[HEADER_WORDS]; /* after IP, as in a frame; 0 where frames differ */
	struct content content;
};

/* Links on which frames have a length of their own: those of both sides, and either with native IPv6. */
enum link { BACKGROUND_LINK = SIDES, LINKS };

/* Sizes of the tagged frames of one side: `of` consecutive ones have each size as often as its weight says. */
struct size_mix {
	__u32 of;
	__u32 step;		 /* has no divisor in common with `of`: spreads the frames of one size */
	__u32 below[MOST_SIZES]; /* ends of the sizes' parts of [0, of) */
	struct length length[LINKS][MOST_SIZES];
};

/* A frame of a connection. */
struct message {
	__u32 streams;	/* of whose connections it is a part, a bit each; 0: not sent in this trial */
	__u16 stream;	/* the first of them */
	__u16 followed; /* 1: its receiver sends the next message at once */
	/* TCP: relative to the initial sequence numbers of the sender and of its peer. */
	__u32 sequence, acknowledgment;
	struct form form[SIDES];
};

struct side_plan {
	__u32 ethernet[3]; /* gateway's and own MAC address, as in a frame */
	enum family family;
	enum family link; /* of the outer header where the frames are in a tunnel; otherwise the same */
	__u16 mac[3];
	__u16 outer;		     /* octets of the outer header; 0: the frames are in no tunnel (RFC 2473) */
	__u16 tagged;		     /* octets of VLAN tags, in no other length */
	__u16 vlan_each;	     /* 1: own address i has the VLAN of the last tag, plus i */
	__u32 vlans[MOST_VLANS];     /* EtherType and VLAN of each tag, the outermost first */
	struct addresses own;	     /* of this side's hosts */
	struct addresses other;	     /* of the other side's hosts, as written on this side */
	struct addresses neighbours; /* for which ARP and NDP are answered */
};

/*
 * Customer edges (RFC 7597 sections 5 and 6) that the Initiator emulates before a relay, or that are the device, whose
 * relay the Responder emulates if it speaks IPv6; otherwise the relay is part of the device. Edge 0 has the first PSID
 * of the first address, the next edge the next PSID, and so on. They translate to IPv6, or tunnel IPv4 to the relay.
 */
struct customer_edges {
	__u64 prefix;		     /* upper half of the rule IPv6 prefix */
	__u64 relay_high, relay_low; /* address of the other end of their tunnels */
	__u64 first;		     /* number of the first edge that sends */
	struct divisor per_address;  /* edges that share an IPv4 address */
	__u32 emulated;		     /* 1: the Initiator's source addresses and ports are those of customer edges */
	__u32 first_address;
	__u32 suffix_mask; /* of the IPv4 address, without the rule IPv4 prefix */
	__u32 first_psid;
	/* Of a port: its first bits, a, are not all 0, and its PSID is followed by so many. */
	__u32 offset_shift; /* 16 - a; 16: there are none */
	__u32 psid_shift;
	__u32 psid_length;  /* bits, k */
	__u32 suffix_shift; /* of the embedded address bits in the upper half */
	__u32 tested;	    /* 1: the device is the edges; edge i is that of the Initiator's address i */
};

/* Conditions of phase 2 beside its rates; all zero: none. */
struct modifiers {
	__u64 broadcast_every; /* one frame in so many is a broadcast (RFC 2544 section 11.1) */
	__u32 queried;	       /* 1: the Initiator's port sends the device ICMP echo requests (RFC 2544 section 11.2) */
	__u32 groups;	       /* connection i begins with group i modulo so many (RFC 8219 section 10.2.2) */
	__u64 group_frames[SIDES]; /* of a side's schedule, between the beginnings of two groups */
	__u64 stagger;		   /* turns by which a group is ahead of the one before it, times 2^32 */
	struct side_plan broadcast[SIDES];
	struct form broadcast_form[SIDES];
};

/* What goes to the network stack of the Responder's port, where a real server is. */
enum handing {
	HAND_NOTHING,
	HAND_QUERIES, /* those that are correct */
	HAND_ALL,     /* the device answers queries, and may ask others */
};

/* Constant during a trial. The engine writes it into the instructions, so unused options cost no frame anything. */
struct plan {
	__u32 mark;
	enum order order;
	enum reading reading;
	__u32 stamped;	     /* 1: every frame carries its own sending time */
	__u32 record_delays; /* bit per stream */
	__u32 source_translated;
	__u32 pool_checked;
	__u32 batch;	 /* program runs whose frames leave together; 1: the program itself waits for due times */
	__u32 stateless; /* 1: no phase 1, and no use of the state table */
	__u32 stepped;	 /* 1: the rates change within phase 2 */
	__u32 sampled;	 /* 1: only the frames selected by sampling are timed */
	__u32 record_variation;
	__u32 record_loss_times;
	enum handing handed_on;
	__u32 senders;
	__u32 accept_zero_checksum; /* 1: a UDP checksum of 0 over IPv6 does not make a frame a damaged one */
	/* Phase 2: turn i of a direction, without broadcasts, is in the foreground if i modulo mix_of < mix_foreground
	 * (RFC 8219 section 5.3). */
	__u32 mixed;
	__u32 mix_of;
	__u32 mix_foreground;
	__u32 longest;	  /* octets of the longest frames */
	__u32 sized;	  /* bit per stream: its tagged frames have the sizes of its side's mix */
	__u32 prefetched; /* 1: the state table exceeds a core's own caches and is read at random */
	/*
	 * 1: a connection's number is its position among the four tuples, and phase 1 opens these in permuted order.
	 * Then phase 2 draws positions, and computes no permutation. Only where the state table fits into the caches,
	 * because phase 1 writes it in the order of opening.
	 */
	__u32 opens_permuted;
	__u32 closes; /* bit per stream: its frames close connections */
	__u32 churn;  /* 1: phase 2 opens connections, too, and the oldest leave */
	__u32 flood;  /* 1: the host after the last source address opens further ones */
	/* Of the Initiator's frames at the Responder: 1: source address and port are known in advance. */
	__u32 source_known;
	__u32 set_known; /* 1: source address and port set are known in advance, but not the port */
	/*
	 * 1: marks depend on the four tuple. Not with reactions, because they return the mark that arrived; not in
	 * segments without a tag; and not where the device keeps the source port but not the source address.
	 */
	__u32 marks_tuples;
	__u32 map_addresses;	/* 1: the Initiator emulates customer edges that translate */
	__u64 frame_timeout_ns; /* 0: none */
	/* Shares, times 2^32, of names with an AAAA record of their own, and of queries with a name of phase 1. */
	__u64 aaaa_below;
	__u64 cached_below;
	__u64 stall_ns;	   /* a sender that is inactive for longer has stalled */
	__u64 connections; /* of the whole trial */
	__u64 flood_from;  /* the first connection of the flood */
	__u64 drawn_from;  /* the first of the connections that phase 2 draws, and their number */
	__u64 drawn;
	__u64 left_per_frame[SIDES]; /* connections that leave during a frame of a side's schedule, times 2^32 */
	struct divisor open;	     /* connections at a time, the entries of the state table */
	__u64 draw_key;
	__u64 mark_keys[MARK_KEYS];
	__u64 seal_keys[SEAL_KEYS];
	__u32 source_port_first; /* of customer edges: position in the port set */
	__u32 destination_port_first;
	struct divisor pieces; /* connections in a piece of the state table */
	struct divisor source_ports;
	struct divisor source_addresses;
	struct divisor destination_ports;
	__u64 space; /* number of four tuples in the ranges */
	struct permutation tuples;
	struct permutation readings;
	struct permutation openings; /* the inverse of `tuples` */
	struct addresses pool;
	struct customer_edges edges;
	struct sampling sampling[STREAMS];
	struct side_plan side[SIDES];
	struct message messages[MOST_MESSAGES];
	struct side_plan background[SIDES]; /* native IPv6 */
	struct form background_form;
	struct modifiers modifiers;
	struct size_mix sizes[SIDES]; /* by sender */
};

/* Written by the engine and read by the programs while they run. */
struct control {
	__u32 stop;
	__u32 open;	    /* bit per stream: frames that arrive now are not late */
	__u32 generator_id; /* program id, to recognize its failed redirects */
	__u32 port_ifindex[SIDES];
	__u32 port_netns[SIDES]; /* inode number of the namespace */
	/* Of the frames that are only redirected: the side of the first, 1 if sides alternate, and how many were. */
	__u32 redirect_first, redirect_both, redirected;
	/* ns; frames sent earlier are not of this phase, although it numbers its frames as theirs. 0: it does not */
	__u64 since;
	__u64 done[MAX_SENDERS]; /* set by a sender after its last frame */
};

/* A frame's connection, and the position of its four tuple. */
struct ahead {
	__u64 connection;
	__u64 position;
};

/* One direction's schedule of one sender. */
struct schedule {
	__u64 first;  /* frames of earlier periods */
	__u64 frames; /* that this sender has to send */
	__u64 made;
	__u64 skipped;	  /* frames not sent, because no stored connection was found for them */
	__u64 background; /* frames; part of made */
	__u64 aside; /* part of skipped: broadcasts in place of test frames, and frames of groups that had not begun */
	__u64 broadcasts;
	__u64 next_due; /* ns since start << DUE_FRACTION */
	__u64 interval; /* ns << DUE_FRACTION */
	/* Change of the rate: number and due time of the first frame after it, and the new interval. */
	__u64 step_at;
	__u64 step_due;
	__u64 step_interval;
	__u64 lag_worst; /* ns */
	__u64 lag_sum;	 /* ns, over lag_samples readings of the clock */
	__u64 lag_samples;
	__u64 lag_final;	 /* ns, of the last frame */
	__u64 last_ns;		 /* since start; time of the last frame */
	__u64 sized[MOST_SIZES]; /* part of made, by size */
	enum stream stream;
	__u64 group; /* 1 + number of the FRAMES_AHEAD frames that `ahead` has; 0: none */
	struct ahead ahead[FRAMES_AHEAD];
};

/* State of a sender, a thread pinned to a CPU; per CPU. */
struct sender {
	__u64 start_ns;
	__u64 now_ns;	/* since start; last reading of the clock */
	__u64 first_ns; /* since start; time of the first frame; 0 = none yet */
	__u64 stalls;
	__u64 stalled_ns;
	__u64 worst_stall_ns;
	__u32 credit; /* frames that may leave before the clock is read again */
	__u32 number;
	__u32 senders;
	__u32 active;
	__u32 idle;		/* program runs since the last frame */
	__u64 catch_up_percent; /* highest rate after a stall, in % of the rate; 0 = unlimited */
	__u64 slack_ns;		/* lag that is made up without that limit */
	/* Start of catching up, and due time of the frame sent then; 0 = not catching up. */
	__u64 behind_ns;
	__u64 behind_due_ns;
	__u64 settled_ns; /* since start; completion of the last frame's batch */
	struct schedule schedule[SCHEDULES];
};

/* Interval between two readings of the clock in which a sender was inactive; ns since its schedule's start. */
struct stall {
	__u64 from_ns;
	__u64 to_ns;
};

/* A sender's first stalls of a phase; sender.stalls is their number. */
struct stalls {
	struct stall list[MOST_STALLS];
};

/* So many values, their range, and their sum. */
struct values {
	__u64 count;
	__s64 minimum;
	__s64 maximum;
	__s64 sum;
};

/* Raw counts of one stream; trial/result-1.schema.json defines the words. */
struct tally {
	__u64 received;
	__u64 duplicates;
	__u64 reordered;
	__u64 damaged;
	__u64 untranslated;
	__u64 mistranslated;
	struct values late; /* delays of late frames */
	struct values delays;
	__u64 negative; /* part of delays */
	struct values variations;
	__u64 background;	       /* part of received */
	__u64 followed[MOST_MESSAGES]; /* correct ones that a reaction follows; received counts the last reaction */
	__u64 wrong[MOST_MESSAGES];    /* intact, but with other content; not part of received */
	__u64 zero_checksums;	       /* part of received: over IPv6 with a UDP checksum of 0 */
	__u64 asked;		       /* queries of the device while the stream's frames are under way */
	__u64 sized[MOST_SIZES];       /* part of received, by size */
};

/* Arrived and missing frames of one stream of one sender. */
struct window {
	__u32 next;   /* highest sequence received, plus 1 */
	__u32 losses; /* entries of missing[]; those beyond LOST_WORDS are not stored */
	__u64 lost;   /* 1 + highest sequence that left the window without arriving, or arrived late; 0: none */
	__u64 words[WINDOW_WORDS];
	/* Frames that left the window without arriving, or arrived late: word number above flags of missing frames. */
	__u64 missing[LOST_WORDS];
};

/* The longest time between two arrivals of a stream, and the last arrival; 0: none yet. */
struct silence {
	__u64 from_ns;
	__u64 to_ns;
	__u64 last_ns;
};

/* Segments that show what a device does to TCP; trial/result-1.schema.json defines the words. */
struct device_signs {
	__u64 resets;
	__u64 renumbered;
	__u64 restamped;
	__u64 answers; /* of the device, to echo requests */
};

/* Frames at a port in another form than that of test frames; trial/result-1.schema.json defines the words. */
struct oddities {
	__u64 fragments;
	__u64 tagged;
	__u64 untagged;
	__u64 unchecked;
	__u64 errors;
	__u64 too_big;
	__u64 path_mtu; /* the least that an error named; 0 = none */
};

/* The source of the first mistranslated frame at a port. */
struct stray {
	__u64 high;
	__u64 low;
	__u32 port;
	__u32 seen; /* 0 = there was none */
};

/* Counts of the receivers; per CPU. */
struct receiver {
	struct tally tally[STREAMS];
	struct device_signs signs[SIDES];
	struct stray stray[SIDES];
	struct oddities odd[SIDES][STREAMS + 1]; /* the last: of no stream that can be read */
	__u64 foreign[SIDES];
	__u64 damaged_unmarked[SIDES]; /* too damaged to read their stream */
	__u64 neighbour_replies[SIDES];
	__u64 stored;
	__u64 remapped;
	__u64 unanswered[SIDES]; /* frames whose reaction could not be written */
};

/* Frames redirected to a port; per CPU and port. */
struct port_tally {
	__u64 accepted;
	__u64 refused;
	__u64 redirect_errors;
};
