// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * A device with known faults: every k-th test frame that leaves an interface is dropped, duplicated, reordered,
 * damaged, sent untranslated or sent to a wrong port, and counted. A tester's counts can be compared with these. It
 * runs at the egress of one of the device's interfaces (tcx), after the device has processed the frame.
 */
#include "common.h"

/* Verdicts of a tcx program; the UAPI headers of some supported distributions are older than tcx. */
#define TO_NEXT -1
#define DROPPED 2

#define LEAST_TEST_FRAME 60	    /* octets without FCS: the shortest Ethernet frame */
#define MOST_PARKED	 4096	    /* octets; a power of two, longer than any frame of the tester */
#define OWN_MARK	 0x6e676361 /* of frames sent by this program */

enum mode { MODE_DROP, MODE_DUPLICATE, MODE_SWAP, MODE_DAMAGE, MODE_UNTRANSLATED, MODE_MISTRANSLATE, MODE_STOP };

/* Set by natgauge-calibrator before loading. */
const volatile enum mode mode = MODE_DROP;
const volatile __u64 every = 1;	      /* act on frames k, 2k, ...; MODE_STOP: on all after k */
const volatile __u64 offset;	      /* frames before the first k; counted, unchanged */
const volatile __s32 damaged_octet;   /* counted from the start of the UDP payload */
const volatile __u8 flipped_bits = 1; /* of that octet */
const volatile __u8 source_is_ipv6;
const volatile __be32 source[4];  /* IPv4 in the first */
const volatile __u16 source_port; /* host byte order; 0 leaves the frame's own */

struct tally {
	__u64 seen;  /* test frames */
	__u64 acted; /* test frames that were changed; part of seen */
};

NUMBERED(ARRAY, tally, 1, struct tally);

enum parking_state { PARKING_FREE, PARKING_CHANGES, PARKING_TAKEN };

/* A frame that is sent after its successor (MODE_SWAP). */
struct parking {
	__u32 state; /* enum parking_state; the CPU that sets PARKING_CHANGES may access the rest */
	__u32 length;
	__u8 octets[MOST_PARKED];
};

NUMBERED(ARRAY, parking, 1, struct parking);

/* Offset of the UDP header of a test frame, octets; 0: it is none. */
static __always_inline __u32 udp_of(struct __sk_buff *skb)
{
	const bool ipv6 = skb->protocol == ip_type(true);
	struct ipv6hdr six;
	struct iphdr four;

	if (skb->len < LEAST_TEST_FRAME || (!ipv6 && skb->protocol != ip_type(false)) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN, ipv6 ? (void *)&six : &four, ip_octets(ipv6)))
		return 0;
	if (ipv6)
		return six.nexthdr == IPPROTO_UDP ? ETH_HLEN + sizeof(six) : 0;
	return four.protocol == IPPROTO_UDP && !(four.frag_off & bpf_htons(IPV4_FRAGMENT)) ? ETH_HLEN + four.ihl * 4
											   : 0;
}

/* Frames are numbered over all CPUs, so `every` applies to all of them together. */
static __always_inline bool is_chosen(struct tally *counts)
{
	__u64 number = __sync_fetch_and_add(&counts->seen, 1);

	if (number < offset)
		return false;
	number -= offset;
	if (mode == MODE_STOP)
		return number >= every;
	return number % every == every - 1;
}

static __always_inline bool send_copy(struct __sk_buff *skb)
{
	__u32 mark = skb->mark;
	long outcome;

	skb->mark = OWN_MARK;
	outcome = bpf_clone_redirect(skb, skb->ifindex, 0);
	skb->mark = mark;
	return outcome == 0;
}

/* Flip bits without correcting the checksums. */
static __always_inline bool damage(struct __sk_buff *skb, __u32 udp)
{
	__u32 at = udp + sizeof(struct udphdr) + damaged_octet;
	__u8 octet;

	/* A place before the frame's start wraps to a large number, beyond its end. */
	if (at >= skb->len || bpf_skb_load_bytes(skb, at, &octet, 1))
		return false;
	octet ^= flipped_bits;
	return bpf_skb_store_bytes(skb, at, &octet, 1, 0) == 0;
}

/* Write the UDP port at offset `field` of the header and correct the checksum. */
static __always_inline bool set_port(struct __sk_buff *skb, __u32 udp, __u32 field, __be16 port)
{
	__be16 old;

	return !bpf_skb_load_bytes(skb, udp + field, &old, sizeof(old)) &&
	       !bpf_l4_csum_replace(skb, udp + offsetof(struct udphdr, check), old, port,
				    BPF_F_MARK_MANGLED_0 | sizeof(port)) &&
	       !bpf_skb_store_bytes(skb, udp + field, &port, sizeof(port), 0);
}

/* Give the frame the source it had before the device translated it, and correct the checksums. */
static __always_inline bool untranslate(struct __sk_buff *skb, __u32 udp)
{
	const bool ipv6 = skb->protocol == ip_type(true);
	__u32 field = ETH_HLEN + (ipv6 ? offsetof(struct ipv6hdr, saddr) : offsetof(struct iphdr, saddr));
	__be32 new[] = { source[0], source[1], source[2], source[3] }, old[4] = {};
	const __u32 octets = ipv6 ? sizeof(new) : sizeof(new[0]);
	__s64 difference;

	if (ipv6 != source_is_ipv6 || bpf_skb_load_bytes(skb, field, old, octets))
		return false;
	difference = bpf_csum_diff(old, octets, new, octets, 0);
	if ((!ipv6 && bpf_l3_csum_replace(skb, ETH_HLEN + offsetof(struct iphdr, check), 0, difference, 0)) ||
	    bpf_l4_csum_replace(skb, udp + offsetof(struct udphdr, check), 0, difference,
				BPF_F_PSEUDO_HDR | BPF_F_MARK_MANGLED_0) ||
	    bpf_skb_store_bytes(skb, field, new, octets, 0))
		return false;
	return !source_port || set_port(skb, udp, offsetof(struct udphdr, source), bpf_htons(source_port));
}

/* Change the destination port to a neighbouring port, never 0. */
static __always_inline bool mistranslate(struct __sk_buff *skb, __u32 udp)
{
	__be16 port;

	if (bpf_skb_load_bytes(skb, udp + offsetof(struct udphdr, dest), &port, sizeof(port)))
		return false;
	port = bpf_htons(bpf_ntohs(port) == 1 ? 2 : bpf_ntohs(port) ^ 1);
	return set_port(skb, udp, offsetof(struct udphdr, dest), port);
}

static __always_inline bool park(struct __sk_buff *skb, struct parking *place)
{
	__u32 length = skb->len;
	bool fits;

	if (length == 0 || length > MOST_PARKED ||
	    __sync_val_compare_and_swap(&place->state, PARKING_FREE, PARKING_CHANGES) != PARKING_FREE)
		return false;
	fits = bpf_skb_load_bytes(skb, 0, place->octets, length) == 0;
	place->length = length;
	__sync_lock_test_and_set(&place->state, fits ? PARKING_TAKEN : PARKING_FREE);
	return fits;
}

/* Send a copy of this frame, then overwrite this one with the parked frame, so that it leaves next. */
static __always_inline void send_before_parked(struct __sk_buff *skb, struct parking *place)
{
	__u32 length;

	if (__sync_val_compare_and_swap(&place->state, PARKING_TAKEN, PARKING_CHANGES) != PARKING_TAKEN)
		return;
	length = place->length;
	if (length > 0 && length <= MOST_PARKED && send_copy(skb) &&
	    (skb->len == length || bpf_skb_change_tail(skb, length, 0) == 0))
		bpf_skb_store_bytes(skb, 0, place->octets, length, 0);
	__sync_lock_test_and_set(&place->state, PARKING_FREE);
}

/* Every chosen frame leaves after its successor. */
static __always_inline int swap(struct __sk_buff *skb, struct tally *counts, bool chosen)
{
	struct parking *place = bpf_map_lookup_elem(&parking, &(__u32){ 0 });

	if (!place)
		return TO_NEXT;
	if (chosen && park(skb, place)) {
		__sync_fetch_and_add(&counts->acted, 1);
		return DROPPED;
	}
	send_before_parked(skb, place);
	return TO_NEXT;
}

static __always_inline bool changed(struct __sk_buff *skb, __u32 udp)
{
	switch (mode) {
	case MODE_DUPLICATE:
		return send_copy(skb);
	case MODE_DAMAGE:
		return damage(skb, udp);
	case MODE_UNTRANSLATED:
		return untranslate(skb, udp);
	case MODE_MISTRANSLATE:
		return mistranslate(skb, udp);
	default: /* MODE_DROP, MODE_STOP */
		return true;
	}
}

SEC("tc")
int natgauge_truth(struct __sk_buff *skb)
{
	struct tally *counts = bpf_map_lookup_elem(&tally, &(__u32){ 0 });
	__u32 udp = udp_of(skb);
	bool chosen;

	if (skb->mark == OWN_MARK) {
		skb->mark = 0;
		return TO_NEXT;
	}
	if (!counts || !udp)
		return TO_NEXT;
	chosen = is_chosen(counts);
	if (mode == MODE_SWAP)
		return swap(skb, counts, chosen);
	if (!chosen || !changed(skb, udp))
		return TO_NEXT;
	__sync_fetch_and_add(&counts->acted, 1);
	return mode == MODE_DROP || mode == MODE_STOP ? DROPPED : TO_NEXT;
}
