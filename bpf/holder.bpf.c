// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Receiver of the forwarder with a known delay: time-stamps each frame on arrival, with the clock that the sender in
 * user space waits on, and passes it to user space. No frame reaches the host's network stack.
 */
#include "common.h"

#define MOST_OCTETS 4080 /* a record is one page; longer than any frame of the tester */

struct held_frame {
	__u64 received_ns; /* CLOCK_MONOTONIC */
	__u32 interface;   /* index of the receiving interface */
	__u32 length;	   /* octets, without FCS */
	__u8 octets[MOST_OCTETS];
};

/* Never read. Makes the struct part of the object, so that its Rust side is generated. */
const volatile struct held_frame *unused __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24); /* octets: 4000 frames */
} held SEC(".maps");

/* Frames that were too long, or for which the ring had no room. */
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
	/* User space polls. */
	bpf_ringbuf_submit(frame, BPF_RB_NO_WAKEUP);
	return XDP_DROP;

refuse:
	__sync_fetch_and_add(&refused, 1);
	return XDP_DROP;
}
