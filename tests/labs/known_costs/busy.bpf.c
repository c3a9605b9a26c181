// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Work of known length for each frame that leaves an interface: so many multiplications, each waiting for the one
 * before. They touch no memory, so they take as long beside anything as alone, and there is no branch to be guessed.
 * The first waits for a locked addition, which waits for all before it, and what comes after waits for another one,
 * which waits for the product: else the processor works on either side of them meanwhile. What it still does beside the
 * first ones (some 10 ns) is the same however many there are, so a few more or less are compared, not some and none.
 */
#include <linux/bpf.h>

#define SEC(name) __attribute__((section(name), used))
#define TO_NEXT	  0

SEC("tc")
int busy(struct __sk_buff *skb)
{
	__u64 sum = skb->len;
	__u64 product = __sync_fetch_and_add(&sum, 1);

#pragma clang loop unroll(full)
	for (int left = LOOPS; left > 0; left--)
		asm volatile("%0 *= 3" : "+r"(product));
	__sync_fetch_and_add(&sum, product);
	return sum ? TO_NEXT : -1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
