// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The receiving half of the forwarder of known delay: stamps each frame the moment it arrives, on the clock that the
 * sending half waits on, and hands it over. Nothing reaches the host's own stack.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>

#define MOST_OCTETS 4080 /* with the rest of the record a page; more than the longest frame of the tester */

/* One frame on its way through user space. */
struct held_frame {
	__u64 received_ns; /* CLOCK_MONOTONIC */
	__u32 interface;   /* where it arrived: an interface number */
	__u32 length;	   /* octets, without FCS */
	__u8 octets[MOST_OCTETS];
};

/* For skeletons: they hold the structs that a variable is made of. */
const volatile struct held_frame *unused __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24); /* octets: 4000 frames */
} held SEC(".maps");

/* Frames that were too long, or that found the ring full. */
__u64 refused;

SEC("xdp")
int natgauge_holder(struct xdp_md *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 length = ctx->data_end - ctx->data;
	struct held_frame *frame;

	if (length < ETH_HLEN || length > MOST_OCTETS)
		goto refuse;
	frame = bpf_ringbuf_reserve(&held, sizeof(*frame), 0);
	if (!frame)
		goto refuse;
	if (bpf_xdp_load_bytes(ctx, 0, frame->octets, length)) {
		bpf_ringbuf_discard(frame, BPF_RB_NO_WAKEUP);
		goto refuse;
	}
	frame->received_ns = now;
	frame->interface = ctx->ingress_ifindex;
	frame->length = length;
	/* The other side looks all the time. */
	bpf_ringbuf_submit(frame, BPF_RB_NO_WAKEUP);
	return XDP_DROP;

refuse:
	__sync_fetch_and_add(&refused, 1);
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
