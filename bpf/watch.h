/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What the ports really did with the frames: a full ring, a port without a listener or a queue too few never reach the
 * sender as an error, so its own count is not what was offered.
 */
#ifndef NATGAUGE_WATCH_H
#define NATGAUGE_WATCH_H

struct ns_common___watch {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net___watch {
	struct ns_common___watch ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net___watch *net;
} possible_net_t___watch;

struct net_device___watch {
	int ifindex;
	possible_net_t___watch nd_net;
} __attribute__((preserve_access_index));

struct bpf_prog_aux___watch {
	__u32 id;
} __attribute__((preserve_access_index));

struct bpf_prog___watch {
	struct bpf_prog_aux___watch *aux;
} __attribute__((preserve_access_index));

/* Where our ports lie in the memory of the kernel, once found: three reads of it less for each bulk. */
__u64 devices[SIDES];

static __always_inline int port_of(const struct net_device___watch *device)
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
	const struct net_device___watch *to = (void *)ctx->args[1];
	__u32 side = port_of(to);
	struct port_tally *tally;

	if (side >= SIDES)
		return 0;
	tally = bpf_map_lookup_elem(&port_tallies, &side);
	if (!tally)
		return 0;
	/* An answer leaves by the port that the question came in by: it is nothing offered. One to a neighbour may be
	 * lost; one to a query of the test is the tester's to deliver. */
	if (ctx->args[0] == ctx->args[1]) {
		if (asks())
			tally->refused += (int)ctx->args[3];
		return 0;
	}
	tally->accepted += (int)ctx->args[2];
	tally->refused += (int)ctx->args[3];
	return 0;
}

/* (device, program, target, err, map type, map id, index): no redirect at all. */
SEC("raw_tp/xdp_redirect_err")
int count_redirect_errors(struct bpf_raw_tracepoint_args *ctx)
{
	const struct bpf_prog___watch *program = (void *)ctx->args[1];
	__u32 side = (__u32)ctx->args[6];
	struct port_tally *tally;

	if (BPF_CORE_READ(program, aux, id) != control.generator_id || side >= SIDES)
		return 0;
	tally = bpf_map_lookup_elem(&port_tallies, &side);
	if (tally)
		tally->redirect_errors++;
	return 0;
}

#endif
