// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* The tester's programs: generator, receivers on both ports, and tracepoints that count what the ports accept. */
#include "common.h"
#include <bpf/bpf_core_read.h>
#include "shared.h"

const volatile struct plan plan;
struct control control;
struct silence silences[STREAMS];

/* Never read. It makes these types part of the object, so that their Rust side is generated. */
const volatile struct also_shared {
	enum constant constant;
	enum side side;
	enum sign sign;
	enum frame_kind frame_kind;
	enum schedules schedules;
	enum link link;
	struct tag tag;
} also_shared;

struct recent_frame {
	__u64 frame; /* 1 + sequence, and PAIRED */
	__s64 delay;
};

struct recent {
	struct recent_frame frames[RECENT_FRAMES];
};

NUMBERED(DEVMAP, ports, SIDES, __u32);
NUMBERED(PERCPU_ARRAY, senders, 1, struct sender);
NUMBERED(PERCPU_ARRAY, receivers, 1, struct receiver);
NUMBERED(PERCPU_ARRAY, port_tallies, SIDES, struct port_tally);
NUMBERED(PERCPU_ARRAY, delays, SIDES *DELAY_BUCKETS, __u64);

/* By side * SIGNS + sign. */
NUMBERED(PERCPU_ARRAY, variations, SIDES *SIGNS *DELAY_BUCKETS, __u64);

/* The engine sets the inner maps' value size (IPv4 or IPv6) and number of entries; see table.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MAX_PIECES);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, ENTRY6_OCTETS);
		});
} state_table SEC(".maps");

/* By sender * STREAMS + stream; the engine reduces it to the number of senders. */
NUMBERED(ARRAY, windows, STREAMS *MAX_SENDERS, struct window);

/* By sender; the engine reduces it to the number of senders. */
NUMBERED(ARRAY, sender_stalls, MAX_SENDERS, struct stalls);

/* Indexed like windows; a single entry unless delay differences are recorded. */
NUMBERED(ARRAY, recents, STREAMS *MAX_SENDERS, struct recent);

#include "packet.h"
#include "vlan.h"
#include "customer_edge.h"
#include "tuple.h"
#include "tcp.h"
#include "transport.h"
#include "payload.h"
#include "mark.h"
#include "sizes.h"
#include "table.h"
#include "ahead.h"
#include "neighbour.h"
#include "generate.h"
#include "arrival.h"
#include "parse.h"
#include "oddities.h"
#include "classify.h"
#include "offered.h"
