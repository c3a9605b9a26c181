// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * A NAT64 for one IPv6 host and UDP: the host has the whole IPv4 address, so ports stay as they are, and nothing is
 * stored (RFC 6052, RFC 7915). It translates frames that arrive at either interface; the kernel routes them afterwards.
 * HOST is the IPv6 host and PREFIX the NAT64 prefix, both as four words; OUTSIDE is the IPv4 address.
 */
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#define SEC(name)    __attribute__((section(name), used))
#define big16(value) ((__be16)__builtin_bswap16(value))
#define big32(value) ((__be32)__builtin_bswap32(value))
#define TO_NEXT	     -1
#define DROP	     2

/* The kernel's functions by their numbers, so that no header of libbpf is needed. */
static long (*const bpf_skb_store_bytes)(struct __sk_buff *, __u32, const void *, __u32, __u64) = (void *)9;
static long (*const bpf_l4_csum_replace)(struct __sk_buff *, __u32, __u64, __u64, __u64) = (void *)11;
static long (*const bpf_skb_load_bytes)(const void *, __u32, void *, __u32) = (void *)26;
static __s64 (*const bpf_csum_diff)(__be32 *, __u32, __be32 *, __u32, __u32) = (void *)28;
static long (*const bpf_skb_change_proto)(struct __sk_buff *, __be16, __u64) = (void *)31;

static const __u32 host[4] = { HOST }, prefix[4] = { PREFIX };

/* Replace the header of protocol `type` (host byte order), and correct the checksum by the addresses' difference. */
static __always_inline int replace(struct __sk_buff *skb, __u16 type, void *header, __u32 octets, __s64 difference)
{
	__be16 ethertype = big16(type);
	__u32 check = ETH_HLEN + octets + offsetof(struct udphdr, check);

	if (bpf_skb_change_proto(skb, ethertype, 0) || bpf_skb_store_bytes(skb, ETH_HLEN, header, octets, 0) ||
	    bpf_skb_store_bytes(skb, offsetof(struct ethhdr, h_proto), &ethertype, sizeof(ethertype), 0) ||
	    bpf_l4_csum_replace(skb, check, 0, difference, BPF_F_PSEUDO_HDR | BPF_F_MARK_MANGLED_0))
		return DROP;
	return TO_NEXT;
}

static __always_inline int to4(struct __sk_buff *skb)
{
	struct iphdr four = { .version = 4, .ihl = 5, .protocol = IPPROTO_UDP, .frag_off = big16(0x4000) };
	struct ipv6hdr six;
	__u64 sum;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &six, sizeof(six)) || six.nexthdr != IPPROTO_UDP)
		return TO_NEXT;
	for (int word = 0; word < 3; word++)
		if (six.daddr.in6_u.u6_addr32[word] != big32(prefix[word]))
			return TO_NEXT;
	four.ttl = six.hop_limit;
	four.tot_len = big16(big16(six.payload_len) + sizeof(four));
	four.saddr = big32(OUTSIDE);
	four.daddr = six.daddr.in6_u.u6_addr32[3];
	sum = bpf_csum_diff(NULL, 0, (void *)&four, sizeof(four), 0);
	sum = (sum & 0xffff) + ((__u32)sum >> 16);
	four.check = ~(sum + (sum >> 16));
	return replace(skb, ETH_P_IP, &four, sizeof(four),
		       bpf_csum_diff((void *)&six.saddr, 32, (void *)&four.saddr, 8, 0));
}

static __always_inline int to6(struct __sk_buff *skb)
{
	struct ipv6hdr six = { .version = 6, .nexthdr = IPPROTO_UDP };
	struct iphdr four;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &four, sizeof(four)) || four.protocol != IPPROTO_UDP ||
	    four.daddr != big32(OUTSIDE))
		return TO_NEXT;
	for (int word = 0; word < 4; word++) {
		six.saddr.in6_u.u6_addr32[word] = word < 3 ? big32(prefix[word]) : four.saddr;
		six.daddr.in6_u.u6_addr32[word] = big32(host[word]);
	}
	six.hop_limit = four.ttl;
	six.payload_len = big16(big16(four.tot_len) - sizeof(four));
	return replace(skb, ETH_P_IPV6, &six, sizeof(six),
		       bpf_csum_diff((void *)&four.saddr, 8, (void *)&six.saddr, 32, 0));
}

SEC("tc")
int nat64(struct __sk_buff *skb)
{
	return skb->protocol == big16(ETH_P_IPV6) ? to4(skb) : to6(skb);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
