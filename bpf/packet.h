/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The headers of a test frame, their addresses and checksums, for both families. */
#ifndef NATGAUGE_PACKET_H
#define NATGAUGE_PACKET_H

/* Two halves in host byte order serve both families. */
struct address {
	__u64 high;
	__u64 low;
};

static __always_inline struct address address_at(const volatile struct addresses *range, __u64 position)
{
	struct address a = { .high = range->high, .low = range->low };

	if (range->count > 1)
		a.low += position * range->step;
	return a;
}

static __always_inline struct address address6(const void *from)
{
	const __be32 *words = from;

	return (struct address){ .high = (__u64)bpf_ntohl(words[0]) << 32 | bpf_ntohl(words[1]),
				 .low = (__u64)bpf_ntohl(words[2]) << 32 | bpf_ntohl(words[3]) };
}

/* Without a branch: the verifier would follow the address apart for each side of the range. count < 2^63. */
static __always_inline bool below(__u64 distance, __u64 count)
{
	return ((distance - count) & ~distance) >> 63;
}

static __always_inline bool in_range(const volatile struct addresses *range, struct address a)
{
	__u64 distance = a.low - range->low;

	if (a.high != range->high)
		return false;
	if (range->step == 1)
		return below(distance, range->count);
	return a.low >= range->low && distance % range->step == 0 && distance / range->step < range->count;
}

static __always_inline bool same(struct address a, struct address b)
{
	return a.low == b.low && a.high == b.high;
}

/* One's complement sums are carried in 64 bits and folded once; words are taken as they lie in memory. */
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
	/* Both halves added to each other: the upper one then holds the sum with its carry. */
	return (words + (words << 16 | words >> 16)) >> 16;
}

static __always_inline void copy_tag(struct tag *to, const struct tag *from)
{
	const __u32 *words = (const void *)from;

	((__u32 *)to)[0] = words[0];
	((__u32 *)to)[1] = words[1];
	((__u32 *)to)[2] = words[2];
	((__u32 *)to)[3] = words[3];
	to->sent_high = from->sent_high;
}

/* Octets behind the tag count up, RFC 2544 C.2.6.4; they restart every 256. */
static __always_inline __u64 padding_word(int word)
{
	return 0x0706050403020100ULL + 0x0808080808080808ULL * (word & 31);
}

/*
 * Every octet is written every time: pages are recycled, and a device may have changed them. The caller has checked
 * that octets lie between from and the end of the frame.
 */
static __always_inline void fill_padding(__u8 *from, int octets)
{
	int word = 0;

	for (; word < octets / 8; word++)
		*(__u64 *)(from + word * 8) = padding_word(word);
	for (int i = word * 8; i < octets; i++)
		from[i] = i;
}

#endif
