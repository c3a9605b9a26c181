// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Takes the VLAN tags from what arrives at an interface, and gives them to what leaves it, as interfaces of VLANs do.
 * So a gateway of a kernel without such interfaces has VLANs. A frame with other tags is dropped.
 *
 * SERVICE: VLAN of the outer tag, 0 = there is none. VLAN: that of the inner one. FIRST: address of the first host,
 * whose VLAN this is, the next one has the next VLAN; 0 = all hosts have this one.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>

#define SEC(name)    __attribute__((section(name), used))
#define big16(value) ((__be16)__builtin_bswap16(value))
#define PASS	     0
#define DROP	     2
/* Octets up to addresses of IPv4 and of ARP. */
#define SOURCE	    26
#define DESTINATION 30
#define SENDER	    28
#define TARGET	    38
#define NUMBER	    0xfff

static long (*load_bytes)(const void *skb, __u32 offset, void *to, __u32 octets) = (void *)BPF_FUNC_skb_load_bytes;
static long (*push)(void *skb, __be16 protocol, __u16 vlan) = (void *)BPF_FUNC_skb_vlan_push;
static long (*pop)(void *skb) = (void *)BPF_FUNC_skb_vlan_pop;

static inline __attribute__((always_inline)) __u32 vlan_of(struct __sk_buff *skb, int ip, int arp)
{
	__be32 address = 0;

	if (!FIRST)
		return VLAN;
	load_bytes(skb, skb->protocol == big16(ETH_P_ARP) ? arp : ip, &address, sizeof(address));
	return VLAN + __builtin_bswap32(address) - FIRST;
}

/* The VLAN of the outermost tag, which is taken away; 0 = there is none of this kind. */
static inline __attribute__((always_inline)) __u32 taken(struct __sk_buff *skb, __be16 protocol)
{
	__u32 vlan = skb->vlan_present && skb->vlan_proto == protocol ? skb->vlan_tci & NUMBER : 0;

	return vlan && !pop(skb) ? vlan : 0;
}

SEC("in")
int take_tags(struct __sk_buff *skb)
{
	__u32 vlan;

	if (SERVICE && taken(skb, big16(ETH_P_8021AD)) != SERVICE)
		return DROP;
	vlan = taken(skb, big16(ETH_P_8021Q));
	return vlan && vlan == vlan_of(skb, SOURCE, SENDER) ? PASS : DROP;
}

SEC("out")
int add_tags(struct __sk_buff *skb)
{
	if (push(skb, big16(ETH_P_8021Q), vlan_of(skb, DESTINATION, TARGET)))
		return DROP;
	if (SERVICE && push(skb, big16(ETH_P_8021AD), SERVICE))
		return DROP;
	return PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
