/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Content after the transport header: the tag and padding, or a DNS message (RFC 1035 section 4) with the tag in the
 * queried name. The plan contains the message; this file knows only the tag's place in it.
 */
#ifndef NATGAUGE_PAYLOAD_H
#define NATGAUGE_PAYLOAD_H

#define UP_TO_LETTERS (LETTERS_AT + 2 * TAG_OCTETS)
#define LETTER_A      0x6161616161616161ULL
#define LOW_HALVES    0x000f000f000f000fULL
#define NO_LETTERS    0xf0f0f0f0f0f0f0f0ULL

/*
 * Two letters per octet, from a to p, the upper four bits first, as in RFC 1001 section 14.1. Every DNS server accepts
 * such names.
 */
static __always_inline __u64 letters_of(__u32 word)
{
	__u64 spread = word;

	spread = (spread | spread << 16) & 0x0000ffff0000ffffULL;
	spread = (spread | spread << 8) & 0x00ff00ff00ff00ffULL;
	return ((spread >> 4 & LOW_HALVES) | (spread & LOW_HALVES) << 8) + LETTER_A;
}

/* The word that these letters encode; sets bits in `wrong` for any other octet. */
static __always_inline __u32 word_of(__u64 letters, __u64 *wrong)
{
	__u64 halves = letters - LETTER_A;

	*wrong |= halves & NO_LETTERS;
	halves = (halves & LOW_HALVES) << 4 | (halves >> 8 & LOW_HALVES);
	halves = (halves | halves >> 8) & 0x0000ffff0000ffffULL;
	return halves | halves >> 16;
}

static __always_inline __u16 identifier_of(const struct tag *tag)
{
	return tag->sequence ^ tag->mark;
}

/*
 * Returns the checksum sum of identifier and letters, which differ between frames. The letters begin at an odd offset,
 * so their sum is shifted by one octet.
 */
static __always_inline __u64 put_letters(void *to, const struct tag *tag, const volatile struct content *content,
					 int octets)
{
	const __u32 *from = (const void *)tag;
	__u32 mark = sealed_mark(tag);
	__u64 sum = 0, letters;
	__u32 last;

	for (int word = 0; word < CONTENT_WORDS; word++)
		if (8 * word + 8 <= octets)
			*(__u64 *)(to + 8 * word) = content->words[word];
		else if (8 * word + 4 <= octets)
			*(__u32 *)(to + 8 * word) = content->words[word];
	for (int word = 0; word < TAG_OCTETS / 4; word++) {
		letters = letters_of(word ? from[word] : mark);
		*(__u64 *)(to + LETTERS_AT + 8 * word) = letters;
		sum += (__u32)letters + (letters >> 32);
	}
	last = letters_of(tag->sent_high);
	*(__u32 *)(to + UP_TO_LETTERS - 4) = last;
	*(__u16 *)to = identifier_of(tag);
	return ((sum + last) << 8) + identifier_of(tag);
}

static __always_inline __u64 put_plain(void *to, const struct tag *tag, int octets)
{
	const __u32 *from = (const void *)tag;
	__u32 *words = to, mark = sealed_mark(tag);

	words[0] = mark;
	words[1] = from[1];
	words[2] = from[2];
	words[3] = from[3];
	*(__u16 *)(words + 4) = tag->sent_high;
	fill_padding(to + TAG_OCTETS, octets - TAG_OCTETS);
	return (__u64)mark + from[1] + from[2] + from[3] + tag->sent_high;
}

/*
 * Returns the checksum sum of what form->transport_sum does not contain. The caller has checked that the frame has
 * `octets` octets from `to` on.
 */
static __always_inline __u64 put_payload(const enum frame_kind kind, void *to, const struct tag *tag,
					 const volatile struct form *form, int octets)
{
	if (is_untagged(kind)) {
		fill_padding(to, octets);
		return 0;
	}
	return kind == FRAME_UDP && form->lettered ? put_letters(to, tag, &form->content, octets)
						   : put_plain(to, tag, octets);
}

/*
 * Reads the tag from a DNS message. A name in another form results in mark 0, which no trial has. The caller has
 * checked that the frame contains all letters.
 */
static __always_inline void parse_letters(struct tag *tag, const void *from)
{
	__u32 *words = (void *)tag;
	__u64 wrong = 0;

	for (int word = 0; word < TAG_OCTETS / 4; word++)
		words[word] = word_of(*(const __u64 *)(from + LETTERS_AT + 8 * word), &wrong);
	/* The last four letters, and four letters that encode 0. */
	tag->sent_high = word_of(*(const __u32 *)(from + UP_TO_LETTERS - 4) | LETTER_A << 32, &wrong);
	tag->mark = wrong ? 0 : sealed_mark(tag);
}

static __always_inline void copy_sealed_tag(struct tag *to, const struct tag *from)
{
	copy_tag(to, from);
	to->mark = sealed_mark(to);
}

/* Whether a message of `octets` octets, all of them in the frame, equals the plan's. */
static __always_inline bool content_matches(const void *from, const struct tag *tag,
					    const volatile struct content *content, int octets)
{
	__u64 difference = *(const __u16 *)from ^ identifier_of(tag);

	for (int word = 0; word < CONTENT_WORDS; word++)
		if (8 * word + 8 <= octets)
			difference |= (*(const __u64 *)(from + 8 * word) ^ content->words[word]) & content->mask[word];
		else if (8 * word + 4 <= octets)
			difference |=
				(*(const __u32 *)(from + 8 * word) ^ content->words[word]) & (__u32)content->mask[word];
	return !difference;
}

#endif
