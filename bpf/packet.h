/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Addresses, VLAN tags, kinds, tag and padding of test frames, for both families. */
#pragma once

#define VLAN_NUMBER 0xfff /* of a tag; the other bits are its priority */

/* Bits 64 to 71 of an IPv4-embedded address are 0, and the IPv4 address continues after them. */
#define AFTER_ZERO_OCTET ((1ULL << 56) - 1)

static __always_inline struct address embedded_in(const volatile struct addresses *range, __u64 four)
{
	return (struct address){ .high = range->high | four >> ((range->prefix - 32) & 63),
				 .low = four << ((88 - range->prefix) & 63) & AFTER_ZERO_OCTET };
}

static __always_inline struct address address_at(const volatile struct addresses *range, __u64 position)
{
	struct address a = { .high = range->high, .low = range->low };

	if (range->count > 1)
		a.low += position * range->step;
	return range->prefix ? embedded_in(range, a.low) : a;
}

/*
 * Whether a kind is one of `first` to `last`. It is a single comparison, because clang keeps two that are joined from
 * its optimizer for BPF: what follows from them would be computed for each frame, even where the kind is constant.
 */
static __always_inline bool is_within(const enum frame_kind kind, const enum frame_kind first,
				      const enum frame_kind last)
{
	return (__u32)kind - first <= (__u32)last - first;
}

static __always_inline bool is_tcp(const enum frame_kind kind)
{
	return kind >= FRAME_SYN;
}

/* Whether the header carries what the tag carries in other frames. */
static __always_inline bool is_untagged(const enum frame_kind kind)
{
	return is_within(kind, FRAME_SYN, FRAME_LAST_ACK);
}

/* Whether the frame has the options of the first segment of a direction. */
static __always_inline bool is_opening(const enum frame_kind kind)
{
	return is_within(kind, FRAME_SYN, FRAME_SYN_ACK);
}

static __always_inline int header_octets(const enum frame_kind kind)
{
	return is_opening(kind) ? 40 : is_tcp(kind) ? 32 : 8;
}

static __always_inline struct address source_of(const void *ip, const bool ipv6)
{
	return ipv6 ? address6(&((const struct ipv6hdr *)ip)->saddr) : address4(((const struct iphdr *)ip)->saddr);
}

static __always_inline struct address destination_of(const void *ip, const bool ipv6)
{
	return ipv6 ? address6(&((const struct ipv6hdr *)ip)->daddr) : address4(((const struct iphdr *)ip)->daddr);
}

/* Octets of a packet, with its header. */
static __always_inline int packet_octets(const void *ip, const bool ipv6)
{
	return ipv6 ? sizeof(struct ipv6hdr) + bpf_ntohs(((const struct ipv6hdr *)ip)->payload_len)
		    : bpf_ntohs(((const struct iphdr *)ip)->tot_len);
}

/* Whether distance < count, for count < 2^63. Without a branch, because the verifier follows both ways of each. */
static __always_inline bool below(__u64 distance, __u64 count)
{
	return ((distance - count) & ~distance) >> 63;
}

static __always_inline bool in_range(const volatile struct addresses *range, struct address a)
{
	__u64 number = a.low, distance;
	struct address whole = { .high = range->high, .low = number };

	if (range->prefix) {
		number = (__u32)(a.high << ((range->prefix - 32) & 63) | a.low >> ((88 - range->prefix) & 63));
		whole = embedded_in(range, number);
	}
	distance = number - range->low;
	if (!same_address(a, whole))
		return false;
	if (range->step == 1)
		return below(distance, range->count);
	return number >= range->low && distance % range->step == 0 && distance / range->step < range->count;
}

static __always_inline __u64 divide(__u64 x, const volatile struct divisor *d)
{
	if (d->shift)
		return (x * d->magic) >> d->shift;
	return x / d->by;
}

/* The number of a frame among those of all senders of its stream. */
static __always_inline __u64 number_of(const struct tag *tag)
{
	return (__u64)tag->sequence * plan.senders + (tag->kind >> STREAM_BITS);
}

static __always_inline bool is_background(const struct tag *tag)
{
	return plan.mixed && tag->connection & BACKGROUND_FRAME;
}

/* The sending time, ns modulo 2^40. */
static __always_inline __u64 sent_of(const struct tag *tag)
{
	return (__u64)tag->sent_high << 24 | (__u32)tag->sent_middle << 8 | tag->sent_low;
}

static __always_inline void set_sent(struct tag *tag, __u64 ns)
{
	tag->sent_low = ns;
	tag->sent_middle = ns >> 8;
	tag->sent_high = ns >> 24;
}

/*
 * Octets after the tag are 0, 1, ... modulo 256 (RFC 2544 C.2.6.4). Every octet is written for every frame: the kernel
 * reuses pages, and a device may have changed them. The caller has checked that the frame has `octets` octets from
 * `from` on.
 */
static __always_inline void fill_padding(__u8 *from, int octets)
{
	int word = 0;

	for (; word < octets / 8; word++)
		*(__u64 *)(from + word * 8) = 0x0706050403020100ULL + 0x0808080808080808ULL * (word & 31);
	for (int i = word * 8; i < octets; i++)
		from[i] = i;
}

/*
 * VLAN tags (IEEE 802.1Q) between MAC addresses and EtherType. From its octet `tagged` on, a tagged frame lies as an
 * untagged one does from its first octet on, but for the MAC addresses. So what follows them is written and parsed
 * there, by what knows nothing of tags.
 */
/* Where the frame lies as an untagged one at `side` would. */
static __always_inline void *untagged_start(const struct xdp_md *ctx, const int side)
{
	return (void *)(long)ctx->data + plan.side[side].tagged;
}

static __always_inline void put_macs(__u32 *words, const volatile struct side_plan *side)
{
	words[0] = side->ethernet[0];
	words[1] = side->ethernet[1];
	words[2] = side->ethernet[2];
}

/* Write MAC addresses and tags of a frame from `source`, an own address, over what lies before its EtherType. */
static __always_inline void put_vlans(void *data, const volatile struct side_plan *side, struct address source)
{
	int tags = side->tagged / VLAN_OCTETS;
	__u32 *words = data;

	put_macs(words, side);
	for (int at = 0; at < MOST_VLANS && at < tags; at++)
		words[3 + at] = bpf_htonl(side->vlans[at] +
					  (side->vlan_each && at == tags - 1 ? source.low - side->own.low : 0));
}

/* What the VLAN of the frame to an own address exceeds that of the first; of another frame, any that an address has. */
static __always_inline __u32 expected_step(const void *packet, const void *end, const volatile struct side_plan *side,
					   __be16 protocol, __u32 found)
{
	const bool ipv6 = protocol == ip_type(true);
	__u64 to = found;

	if ((ipv6 || protocol == ip_type(false)) && packet + ip_octets(ipv6) <= end)
		to = destination_of(packet, ipv6).low - side->own.low;
	return below(to, side->own.count) ? to : below(found, side->own.count) ? found : found - 1;
}

/* Whether a frame that arrives at `side` has the tags of the plan. */
static __always_inline bool has_vlans(const struct xdp_md *ctx, const int side)
{
	const volatile struct side_plan *here = &plan.side[side];
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	void *view = untagged_start(ctx, side);
	int tags = here->tagged / VLAN_OCTETS;
	__u32 found, expected, wrong = 0;
	__be16 protocol;

	if (view + ETH_HLEN > end)
		return false;
	protocol = ether_type(view);
	for (int at = 0; at < MOST_VLANS && at < tags; at++) {
		found = bpf_ntohl(*(__u32 *)(data + MACS_OCTETS + at * VLAN_OCTETS)) & ~(0xffff & ~VLAN_NUMBER);
		expected = here->vlans[at];
		if (here->vlan_each && at == tags - 1)
			expected += expected_step(view + ETH_HLEN, end, here, protocol, found - expected);
		wrong |= found ^ expected;
	}
	return !wrong && !is_vlan(protocol);
}
