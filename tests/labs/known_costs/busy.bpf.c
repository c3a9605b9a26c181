// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Work of known length for each frame that leaves an interface: so many multiplications, each waiting for the one
 * before. They touch no memory, so they take as long beside anything as alone.
 */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))
#define TO_NEXT 0

SEC("tc")
int busy(struct __sk_buff *skb)
{
	__u64 product = skb->len;

#pragma clang loop unroll(disable)
	for (int left = LOOPS; left > 0; left--)
		asm volatile("%0 *= 3" : "+r"(product));
	return product ? TO_NEXT : -1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
