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
#include "customer_edge.h"
#include "tuple.h"
#include "tcp.h"
#include "transport.h"
#include "mark.h"
#include "payload.h"
#include "table.h"
#include "ahead.h"
#include "generate.h"
#include "arrival.h"
#include "parse.h"
#include "others.h"
#include "classify.h"

/* Offered frames are counted here: a sender gets no error for a full ring, a missing queue or a deaf peer. */
struct net___offered {
	struct {
		unsigned int inum;
	} ns;
} __attribute__((preserve_access_index));

struct net_device___offered {
	int ifindex;
	struct {
		struct net___offered *net;
	} nd_net;
} __attribute__((preserve_access_index));

struct bpf_prog_aux___offered {
	__u32 id;
} __attribute__((preserve_access_index));

struct bpf_prog___offered {
	struct bpf_prog_aux___offered *aux;
} __attribute__((preserve_access_index));

/* Kernel addresses of the ports' devices, once found; they save three reads of kernel memory per bulk. */
__u64 devices[SIDES];

static __always_inline int port_of(const struct net_device___offered *device)
{
	__u32 ifindex, netns;

	for (int side = 0; side < SIDES; side++)
		if ((__u64)device == devices[side])
			return control.port_ifindex[side] ? side : -1;
	ifindex = BPF_CORE_READ(device, ifindex);

	if (ifindex != control.port_ifindex[INITIATOR] && ifindex != control.port_ifindex[RESPONDER])
		return -1;
	netns = BPF_CORE_READ(device, nd_net.net, ns.inum);
	for (int side = 0; side < SIDES; side++)
		if (ifindex == control.port_ifindex[side] && netns == control.port_netns[side]) {
			devices[side] = (__u64)device;
			return side;
		}
	return -1;
}

/* (from, to, sent, drops, err), once for each bulk of up to 16 frames. */
SEC("raw_tp/xdp_devmap_xmit")
int count_offered(struct bpf_raw_tracepoint_args *ctx)
{
	const struct net_device___offered *to = (void *)ctx->args[1];
	__u32 side = port_of(to);
	struct port_tally *tally;
	bool offered;

	if (side >= SIDES)
		return 0;
	tally = bpf_map_lookup_elem(&port_tallies, &side);
	if (!tally)
		return 0;
	/* Replies leave through the port they came in by and are not offered frames. Refused reactions, which the first
	 * message has if any, count as the tester's loss; refused replies to neighbours do not matter. */
	offered = ctx->args[0] != ctx->args[1];
	if (offered)
		tally->accepted += (int)ctx->args[2];
	if (offered || plan.messages[0].followed)
		tally->refused += (int)ctx->args[3];
	return 0;
}

/* (device, program, target, err, map type, map id, index): the redirect itself failed. */
SEC("raw_tp/xdp_redirect_err")
int count_redirect_errors(struct bpf_raw_tracepoint_args *ctx)
{
	const struct bpf_prog___offered *program = (void *)ctx->args[1];
	__u32 side = (__u32)ctx->args[6];
	struct port_tally *tally;

	if (BPF_CORE_READ(program, aux, id) != control.generator_id || side >= SIDES)
		return 0;
	tally = bpf_map_lookup_elem(&port_tallies, &side);
	if (tally)
		tally->redirect_errors++;
	return 0;
}
