// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The other generators' receiver: drops every frame as early as XDP can. veth itself counts them
 * (ethtool -S: rx_queue_N_xdp_packets), so what is reported is what arrived, not what a generator says it sent.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int sink(struct xdp_md *ctx)
{
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
