// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* The tester's programs: generator, receivers on both ports, and tracepoints that count what the ports accept. */
#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/icmpv6.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct plan plan;
struct control control;
struct silence silences[STREAMS];
struct floor_ports floor_ports;

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

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, SIDES);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sender);
} senders SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct receiver);
} receivers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SIDES);
	__type(key, __u32);
	__type(value, struct port_tally);
} port_tallies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SIDES *DELAY_BUCKETS);
	__type(key, __u32);
	__type(value, __u64);
} delays SEC(".maps");

/* By side * SIGNS + sign. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SIDES *SIGNS *DELAY_BUCKETS);
	__type(key, __u32);
	__type(value, __u64);
} variations SEC(".maps");

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
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STREAMS *MAX_SENDERS);
	__type(key, __u32);
	__type(value, struct window);
} windows SEC(".maps");

/* By sender; the engine reduces it to the number of senders. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_SENDERS);
	__type(key, __u32);
	__type(value, struct stalls);
} sender_stalls SEC(".maps");

/* Indexed like windows; a single entry unless delay differences are recorded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STREAMS *MAX_SENDERS);
	__type(key, __u32);
	__type(value, struct recent);
} recents SEC(".maps");

#include "packet.h"
#include "transport.h"
#include "seal.h"
#include "payload.h"
#include "customer_edge.h"
#include "tuple.h"
#include "mark.h"
#include "sizes.h"
#include "table.h"
#include "prefetch.h"
#include "neighbour.h"
#include "generate.h"
#include "arrival.h"
#include "parse.h"
#include "oddities.h"
#include "classify.h"
#include "floor.h"
#include "offered.h"
