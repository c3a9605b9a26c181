/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What several objects have: headers of the kernel and of libbpf, the licence, maps, addresses, and checksums. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/icmpv6.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define IPV4_FRAGMENT 0x3fff /* of an IPv4 header: more fragments, or an offset */
#define IPV4_PLAIN    0x45   /* its first octet: version 4, no options */
#define MACS_OCTETS   12
#define VLAN_OCTETS   4

/* A map whose keys are numbers; user space may change the number of entries before loading. */
#define NUMBERED(kind, name, entries, value_type)                                                                      \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_##kind);                                                                     \
		__uint(max_entries, entries);                                                                          \
		__type(key, __u32);                                                                                    \
		__type(value, value_type);                                                                             \
	} name SEC(".maps")

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* In host byte order; IPv4 in the lower 32 bits of low. */
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

/* One's complement sum in 64 bits, to be folded once; words are added in memory order. */
static __always_inline __u64 sum_words(const void *data, int octets)
{
	const __u16 *halves = data;
	__u64 sum = 0;
	int i = 0;

	for (; i + 2 <= octets / 2; i += 2)
		sum += *(const __u32 *)(halves + i);
	if (i < octets / 2)
		sum += halves[i];
	return sum;
}

static __always_inline __u16 fold(__u64 sum)
{
	__u32 words;

	sum = (sum >> 32) + (__u32)sum;
	words = (__u32)(sum >> 32) + (__u32)sum;
	/* The upper half of words + (words rotated by 16) is the sum of both halves with its carry. */
	return (words + (words << 16 | words >> 16)) >> 16;
}

static __always_inline struct address address4(__be32 from)
{
	return (struct address){ .low = bpf_ntohl(from) };
}

static __always_inline bool is_vlan(__be16 protocol)
{
	return protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD);
}

/* Of an untagged frame. Through a pointer of its own: compilers read fields of packed structs octet by octet. */
static __always_inline __be16 ether_type(const void *frame)
{
	return *(const __be16 *)(frame + MACS_OCTETS);
}

/* Of both families: octets of the header, its EtherType, its number of what follows, and its addresses. */
static __always_inline int ip_octets(const bool ipv6)
{
	return ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

static __always_inline __be16 ip_type(const bool ipv6)
{
	return bpf_htons(ipv6 ? ETH_P_IPV6 : ETH_P_IP);
}

static __always_inline __u8 protocol_of(const void *ip, const bool ipv6)
{
	return ipv6 ? ((const struct ipv6hdr *)ip)->nexthdr : ((const struct iphdr *)ip)->protocol;
}
