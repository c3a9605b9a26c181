// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Stands in for the device's network card in the `isolated` placement. Frames are hashed onto CPUs. Each CPU has a ring
 * of a given depth (a cpumap entry), and a kernel thread processes its frames. A full ring drops frames, as a card's.
 * No interface counts them, so both ends of the ring count: dropped = redirected - processed.
 */
#include "common.h"

#define MAX_CPUS  256
#define MOST_TAGS 2

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

static __always_inline __u64 packet_hash(const void *packet, const bool ipv6, const void *end)
{
	const struct iphdr *four = packet;
	const struct ipv6hdr *six = packet;
	const struct udphdr *udp = packet + ip_octets(ipv6); /* TCP has its ports at the same place */
	const __u32 *source = ipv6 ? (const void *)&six->saddr : &four->saddr, *destination = source + (ipv6 ? 4 : 1);
	__u8 protocol;
	__u64 hash = 0;

	if ((const void *)udp > end)
		return 0;
	protocol = protocol_of(packet, ipv6);
	/* Neighbour discovery (RFC 4861 section 6.1: hop limit 255) uses the first CPU, as ARP does. */
	if (ipv6 && protocol == IPPROTO_ICMPV6 && six->hop_limit == 255)
		return 0;
	for (int word = 0; word < (ipv6 ? 4 : 1); word++)
		hash = mixed(hash ^ ((__u64)source[word] << 32 | destination[word]));
	/*
	 * Cards do not hash ICMP's identifiers either. Later fragments have no ports, so all fragments of a datagram
	 * are hashed by address alone.
	 */
	if ((protocol == IPPROTO_UDP || protocol == IPPROTO_TCP) && (const void *)(udp + 1) <= end &&
	    (ipv6 || (*(const __u8 *)packet == IPV4_PLAIN && !(four->frag_off & bpf_htons(IPV4_FRAGMENT)))))
		hash ^= (__u32)udp->source << 16 | udp->dest;
	return mixed(hash);
}

static __always_inline __u64 hash_of(const struct xdp_md *ctx)
{
	const void *end = (const void *)(long)ctx->data_end;
	const void *packet = (const void *)(long)ctx->data + ETH_HLEN;
	__be16 protocol;

	/* Cards look behind VLAN tags. */
	for (int tags = 0; packet <= end; tags++, packet += VLAN_OCTETS) {
		protocol = ether_type(packet - ETH_HLEN);
		if (protocol == ip_type(false))
			return packet_hash(packet, false, end);
		if (protocol == ip_type(true))
			return packet_hash(packet, true, end);
		if (tags == MOST_TAGS || !is_vlan(protocol))
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
