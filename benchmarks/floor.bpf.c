// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * What this machine's kernel can do at most: programs that do as good as nothing, run by floor.c.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int nothing(struct xdp_md *ctx)
{
	return XDP_DROP;
}

SEC("xdp")
int read_clock(struct xdp_md *ctx)
{
	__u64 now = bpf_ktime_get_ns();

	asm volatile("" ::"r"(now)); /* or clang leaves the call out */
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
