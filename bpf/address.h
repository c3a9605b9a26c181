/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Addresses in host byte order. */
#pragma once

/* IPv4 in the lower 32 bits of low. */
struct address {
	__u64 high;
	__u64 low;
};

static __always_inline struct address address6(const void *from)
{
	const __be32 *words = from;

	return (struct address){ .high = (__u64)bpf_ntohl(words[0]) << 32 | bpf_ntohl(words[1]),
				 .low = (__u64)bpf_ntohl(words[2]) << 32 | bpf_ntohl(words[3]) };
}

/* Write an IPv6 address; returns its checksum sum. */
static __always_inline __u64 put_address6(__be32 *to, struct address a)
{
	__be64 high = bpf_cpu_to_be64(a.high), low = bpf_cpu_to_be64(a.low);

	to[0] = high;
	to[1] = high >> 32;
	to[2] = low;
	to[3] = low >> 32;
	return (high >> 32) + (__u32)high + (low >> 32) + (__u32)low;
}

static __always_inline bool same_address(struct address a, struct address b)
{
	return a.low == b.low && a.high == b.high;
}
