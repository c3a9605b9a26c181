// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * At most HELD half-open TCP connections: a SYN takes a place, the last segment of the handshake gives it back, and a
 * SYN that finds no place is dropped. Places are free at once. Those of a set of nftables are not: its elements are
 * removed by a worker of the kernel, which may wait for more than 100 ms.
 */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))
#define PASS	  0
#define DROP	  2
/* Octets of a frame without options: protocol of IPv4, flags of TCP. */
#define PROTOCOL 23
#define FLAGS	 47
#define TCP	 6
#define SYN	 0x02
#define ACK	 0x10
#define ANY	 0x1f

static long (*load_bytes)(const void *skb, __u32 offset, void *to, __u32 octets) = (void *)BPF_FUNC_skb_load_bytes;

__u64 half_open;

SEC("tc")
int limit(struct __sk_buff *skb)
{
	__u8 protocol = 0;
	__u8 flags = 0;

	if (load_bytes(skb, PROTOCOL, &protocol, 1) || protocol != TCP || load_bytes(skb, FLAGS, &flags, 1))
		return PASS;
	if ((flags & ANY) == SYN) {
		if (half_open >= HELD)
			return DROP;
		__sync_fetch_and_add(&half_open, 1);
	} else if ((flags & ANY) == ACK && half_open) {
		__sync_fetch_and_add(&half_open, -1);
	}
	return PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
