// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Stands in for the device's network card in the `isolated` placement. Frames are hashed onto CPUs. Each CPU has a ring
 * of a given depth (a cpumap entry), and a kernel thread processes its frames. A full ring drops frames, as a card
 * does.
 *
 * No interface counts frames dropped by a full ring. So both ends of the ring count: dropped = redirected - processed.
 */
#include "common.h"

#define MAX_CPUS	  256
#define IPV4_PLAIN_HEADER 0x45 /* version 4, no options */
#define MOST_TAGS	  2
#define VLAN_OCTETS	  4

/* Set by natgauge-front before loading. */
const volatile __u32 cpu_count = 1;
const volatile __u32 cpus[MAX_CPUS];

/* Frame counts of one CPU's ring. */
struct ring_counts {
	__u64 redirected; /* sent to the ring, including dropped ones */
	__u64 processed;  /* taken from the ring by its kernel thread */
};

/* Both maps are indexed by CPU number; user space sets their size to the possible CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_cpumap_val));
	__uint(max_entries, 1);
} rings SEC(".maps");

NUMBERED(PERCPU_ARRAY, ring_counts, 1, struct ring_counts);

/* The finalizer of MurmurHash3: every input bit affects every output bit. */
static __always_inline __u64 mixed(__u64 value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdULL;
	value ^= value >> 33;
	value *= 0xc4ceb9fe1a85ec53ULL;
	return value ^ value >> 33;
}

/* Both ports as one number; 0 when the frame has none. Cards do not hash ICMP's identifiers either. */
static __always_inline __u32 ports_of(__u8 protocol, const void *transport, const void *end)
{
	const struct udphdr *udp = transport; /* TCP has its ports at the same place */

	if (protocol != IPPROTO_UDP && protocol != IPPROTO_TCP)
		return 0;
	return (const void *)(udp + 1) <= end ? (__u32)udp->source << 16 | udp->dest : 0;
}

static __always_inline __u64 ipv4_hash(const struct iphdr *ip, const void *end)
{
	__u32 ports = 0;

	if ((const void *)(ip + 1) > end)
		return 0;
	/* Later fragments have no ports, so all fragments of a datagram are hashed by address alone. */
	if (*(const __u8 *)ip == IPV4_PLAIN_HEADER && !(ip->frag_off & bpf_htons(IPV4_FRAGMENT)))
		ports = ports_of(ip->protocol, ip + 1, end);
	return mixed(mixed((__u64)ip->saddr << 32 | ip->daddr) ^ ports);
}

static __always_inline __u64 ipv6_hash(const struct ipv6hdr *ip, const void *end)
{
	const __u32 *source = ip->saddr.in6_u.u6_addr32;
	const __u32 *destination = ip->daddr.in6_u.u6_addr32;
	__u64 hash = 0;

	if ((const void *)(ip + 1) > end)
		return 0;
	/* Neighbour discovery (RFC 4861 section 6.1: hop limit 255) uses the first CPU, as ARP does. */
	if (ip->nexthdr == IPPROTO_ICMPV6 && ip->hop_limit == 255)
		return 0;
	for (int word = 0; word < 4; word++)
		hash = mixed(hash ^ ((__u64)source[word] << 32 | destination[word]));
	return mixed(hash ^ ports_of(ip->nexthdr, ip + 1, end));
}

static __always_inline __u64 hash_of(const struct xdp_md *ctx)
{
	const void *end = (const void *)(long)ctx->data_end;
	const void *packet = (const void *)(long)ctx->data + ETH_HLEN;
	__be16 protocol;

	/* Cards look behind VLAN tags. */
	for (int tags = 0; packet <= end; tags++, packet += VLAN_OCTETS) {
		protocol = *(const __be16 *)(packet - sizeof(protocol));
		if (protocol == bpf_htons(ETH_P_IP))
			return ipv4_hash(packet, end);
		if (protocol == bpf_htons(ETH_P_IPV6))
			return ipv6_hash(packet, end);
		if (tags == MOST_TAGS || (protocol != bpf_htons(ETH_P_8021Q) && protocol != bpf_htons(ETH_P_8021AD)))
			return 0;
	}
	return 0;
}

SEC("xdp")
int natgauge_front(struct xdp_md *ctx)
{
	/* Multiply and shift spreads 32 bits of hash over any number of CPUs without a division. */
	__u32 slot = (hash_of(ctx) >> 32) * cpu_count >> 32;
	struct ring_counts *counts;
	__u32 cpu;

	if (slot >= MAX_CPUS)
		return XDP_DROP;
	cpu = cpus[slot];
	counts = bpf_map_lookup_elem(&ring_counts, &cpu);
	if (counts)
		counts->redirected++;
	return bpf_redirect_map(&rings, cpu, 0);
}

/* Runs in the ring's kernel thread, on the ring's CPU. */
SEC("xdp/cpumap")
int natgauge_ring(struct xdp_md *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct ring_counts *counts = bpf_map_lookup_elem(&ring_counts, &cpu);

	if (counts)
		counts->processed++;
	return XDP_PASS;
}
