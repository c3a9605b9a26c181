/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Content after the transport header, and its size: the tag and padding, or a DNS message (RFC 1035 section 4) with the
 * tag in the queried name. The plan contains the message; this file knows only the tag's place in it.
 */
#pragma once

#define ONE_SIZE      MOST_SIZES
#define UP_TO_LETTERS (LETTERS_AT + 2 * TAG_OCTETS)
#define LETTER_A      0x6161616161616161ULL
#define LOW_HALVES    0x000f000f000f000fULL
#define NO_LETTERS    0xf0f0f0f0f0f0f0f0ULL
#define LOWER_CASE    0x2020202020202020ULL
/* The product with eight bits has one of them in each eighth bit, in reverse order. */
#define EACH_NINTH_BIT 0x8040201008040201ULL
/* Fractions of irrational numbers, times 2^32. */
#define MULTIPLES_OF_ROOT2	  0x6a09e667U
#define MULTIPLES_OF_GOLDEN_RATIO 0x9e3779b9U
#define CASE_TIME_SHIFT		  19
#define CASE_TIME_MASK		  0x1ffffULL
#define CASE_TIME_AT		  8
#define CASE_SEQUENCE_AT	  25

/* Two letters per octet, a to p, the upper four bits first (RFC 1001 section 14.1): each DNS server accepts them. */
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

/* 1 if a < b, both below 2^63, without a branch for the verifier to follow; so are the choices below. */
static __always_inline __u64 is_below(__u64 a, __u64 b)
{
	__u64 below = a - b;

	barrier_var(below);
	return below >> 63;
}

/*
 * 1 for a query with the name of its connection, which phase 1 asks for first, instead of one of its own. Multiples of
 * an irrational number are spread evenly over [0, 1), so every part of the queries has the share.
 */
static __always_inline __u64 has_connections_name(const struct tag *tag)
{
	if (!plan.cached_below)
		return 0;
	return is_below(tag->kind & STREAM_MASK, PHASE1 + 1) |
	       is_below((__u32)(number_of(tag) * MULTIPLES_OF_ROOT2), plan.cached_below);
}

/* 1 for a name with an AAAA record of its own, by its index; independent of the choice above. */
static __always_inline __u64 has_aaaa(const struct tag *tag)
{
	__u32 number = number_of(tag), connections = -has_connections_name(tag);
	__u32 index = number ^ ((number ^ tag->connection) & connections);

	return plan.aaaa_below ? is_below((__u32)(index * MULTIPLES_OF_GOLDEN_RATIO), plan.aaaa_below) : 0;
}

/*
 * The name of a connection contains none of what differs between its queries, but a stream that no query has.
 * `connections`: all bits, or 0 where the name is the query's own.
 */
static __always_inline void name_connection(struct tag *tag, __u64 connections)
{
	tag->sequence &= ~connections;
	tag->kind = (tag->kind & ~connections) | (CLOSING & connections);
	set_sent(tag, sent_of(tag) & ~connections);
}

/*
 * What differs is in the case of the name's letters, which servers return unchanged and caches ignore: stream and
 * sender, the time in half milliseconds modulo a minute, and the part of the sequence that the identifier lacks.
 */
static __always_inline __u64 cases_for(const struct tag *tag)
{
	return tag->kind | (sent_of(tag) >> CASE_TIME_SHIFT & CASE_TIME_MASK) << CASE_TIME_AT |
	       (__u64)(tag->sequence >> 16) << CASE_SEQUENCE_AT;
}

/* Set the bit of upper case in eight letters, by the bits of an octet, and the other way round. */
static __always_inline __u64 spread_cases(__u64 octet)
{
	return bpf_cpu_to_be64((octet * EACH_NINTH_BIT >> 7 & LOWER_CASE >> 5) << 5);
}

static __always_inline __u64 gathered_cases(__u64 letters)
{
	return bpf_cpu_to_be64((~letters & LOWER_CASE) >> 5) * EACH_NINTH_BIT >> 56;
}

/* The tag of a query for a connection's name. A name of the other kind, or in another case, is none of this trial. */
static __always_inline void add_cases(struct tag *tag, __u64 cases, __u16 identifier)
{
	__u64 connections = -is_below(CLOSING - 1, tag->kind & STREAM_MASK), wrong;
	__u64 now = bpf_ktime_get_ns(), sent = (cases >> CASE_TIME_AT & CASE_TIME_MASK) << CASE_TIME_SHIFT;
	__u32 sequence = (__u32)(cases >> CASE_SEQUENCE_AT) << 16 | (__u16)(identifier ^ tag->mark);

	sent = now - ((now - sent) & ((CASE_TIME_MASK + 1) << CASE_TIME_SHIFT) - 1);
	tag->kind = (tag->kind & ~connections) | (cases & connections);
	tag->sequence = (tag->sequence & ~connections) | (sequence & connections);
	set_sent(tag, (sent_of(tag) & ~connections) | (sent & connections));
	wrong = (has_connections_name(tag) ^ (connections & 1)) | (cases & ~connections);
	tag->mark &= is_below(0, wrong) - 1;
}

/* Whether a word of a message consists of the tag's letters alone. */
static __always_inline bool is_all_letters(const int word)
{
	return 8 * word >= LETTERS_AT && 8 * word + 8 <= UP_TO_LETTERS;
}

/* A word of a message, of the one about names with an AAAA record of their own where `others` is not 0. */
static __always_inline __u64 content_word(const volatile struct content *content, int word, __u64 others)
{
	return content->words[word] ^ (plan.aaaa_below ? content->other[word] & others : 0);
}

/* Returns the checksum sum of what differs between frames. That of letters is shifted: they begin at an odd offset. */
static __always_inline __u64 put_letters(void *to, const struct tag *tag, const volatile struct content *content,
					 int octets)
{
	__u64 connections = -has_connections_name(tag), cases = plan.cached_below ? cases_for(tag) & connections : 0;
	__u64 sum = 0, letters;
	struct tag name = *tag;
	const __u32 *from = (const void *)&name;
	__u64 others = -has_aaaa(tag);

	if (plan.cached_below)
		name_connection(&name, connections);
	name.mark = sealed_mark(&name);
#pragma unroll
	for (int word = 0; word < CONTENT_WORDS; word++) {
		if (is_all_letters(word))
			continue;
		if (8 * word + 8 <= octets)
			*(__u64 *)(to + 8 * word) = content_word(content, word, others);
		else if (8 * word + 4 <= octets)
			*(__u32 *)(to + 8 * word) = content_word(content, word, others);
	}
	for (int word = 0; word <= TAG_OCTETS / 4; word++) {
		letters = letters_of(from[word]);
		if (plan.cached_below)
			letters ^= spread_cases(cases >> 8 * word & 0xff);
		sum += (__u32)letters;
		if (word < TAG_OCTETS / 4) {
			*(__u64 *)(to + LETTERS_AT + 8 * word) = letters;
			sum += letters >> 32;
		} else {
			*(__u32 *)(to + UP_TO_LETTERS - 4) = letters;
		}
	}
	*(__u16 *)to = identifier_of(tag);
	return (sum << 8) + identifier_of(tag) + (plan.aaaa_below ? content->other_sum & others : 0);
}

/* Returns the checksum sum of what form->transport_sum lacks. The caller has checked that the frame has the octets. */
static __always_inline __u64 put_payload(const enum frame_kind kind, void *to, const struct tag *tag,
					 const volatile struct form *form, int octets)
{
	const __u32 *from = (const void *)tag;
	__u32 *words = to, mark;

	if (is_untagged(kind)) {
		fill_padding(to, octets);
		return 0;
	}
	if (kind == FRAME_UDP && form->lettered)
		return put_letters(to, tag, &form->content, octets);
	mark = sealed_mark(tag);
	words[0] = mark;
	words[1] = from[1];
	words[2] = from[2];
	words[3] = from[3];
	*(__u16 *)(words + 4) = tag->sent_high;
	fill_padding(to + TAG_OCTETS, octets - TAG_OCTETS);
	return (__u64)mark + from[1] + from[2] + from[3] + tag->sent_high;
}

/* A name in another form results in mark 0, which no trial has. The caller has checked that the letters are there. */
static __always_inline void parse_letters(struct tag *tag, const void *from)
{
	__u32 *words = (void *)tag;
	__u64 wrong = 0, cases = 0, letters;

	for (int word = 0; word <= TAG_OCTETS / 4; word++) {
		/* The last four letters, and four letters that encode 0. */
		letters = word < TAG_OCTETS / 4 ? *(const __u64 *)(from + LETTERS_AT + 8 * word)
						: *(const __u32 *)(from + UP_TO_LETTERS - 4) | LETTER_A << 32;
		if (plan.cached_below) {
			cases |= gathered_cases(letters) << 8 * word;
			letters |= LOWER_CASE;
		}
		if (word < TAG_OCTETS / 4)
			words[word] = word_of(letters, &wrong);
		else
			tag->sent_high = word_of(letters, &wrong);
	}
	tag->mark = wrong ? 0 : sealed_mark(tag);
	if (plan.cached_below)
		add_cases(tag, cases, *(const __u16 *)from);
}

static __always_inline void copy_sealed_tag(struct tag *to, const struct tag *from)
{
	for (int word = 0; word < TAG_OCTETS / 4; word++)
		((__u32 *)to)[word] = ((const __u32 *)from)[word];
	to->sent_high = from->sent_high;
	to->mark = sealed_mark(to);
}

/* Whether a message of `octets` octets, all of them in the frame, equals the plan's. */
static __always_inline bool content_matches(const void *from, const struct tag *tag,
					    const volatile struct content *content, int octets)
{
	__u64 difference = *(const __u16 *)from ^ identifier_of(tag), expected;
	__u64 others = -has_aaaa(tag);

#pragma unroll
	for (int word = 0; word < CONTENT_WORDS; word++) {
		if (is_all_letters(word))
			continue;
		expected = content_word(content, word, others);
		if (8 * word + 8 <= octets)
			difference |= (*(const __u64 *)(from + 8 * word) ^ expected) & content->mask[word];
		else if (8 * word + 4 <= octets)
			difference |= (*(const __u32 *)(from + 8 * word) ^ expected) & (__u32)content->mask[word];
	}
	return !difference;
}

static __always_inline int sender_of(const struct tag *tag)
{
	return (tag->kind & STREAM_MASK) == PHASE2_RESPONDER ? RESPONDER : INITIATOR;
}

/*
 * The number of a frame's size; ONE_SIZE: it has that of its form. A frame's number in its stream, which its tag has,
 * decides its size, so the receiver knows the size that it must have. Each cycle of the mix starts at another place, so
 * that evenly spaced frames, such as those that are timed, have all sizes.
 */
static __always_inline __u32 size_of(const enum frame_kind kind, const struct tag *tag)
{
	const volatile struct size_mix *mix;
	__u32 size = 0, place;
	__u64 number, start;

	if (is_untagged(kind) || !plan.sized || !(plan.sized >> (tag->kind & STREAM_MASK) & 1))
		return ONE_SIZE;
	mix = &plan.sizes[sender_of(tag)];
	number = number_of(tag);
	start = draw(number / mix->of, plan.draw_key ^ 0x2545f491, mix->of);
	place = (number % mix->of * mix->step + start) % mix->of;
	/* On each way to its end the verifier knows the number, and with it the length. */
	for (; size < MOST_SIZES - 1 && place >= mix->below[size]; size++)
		barrier_var(size);
	return size;
}

static __always_inline const volatile struct length *length_of(__u32 size, const struct tag *tag,
							       const volatile struct form *form, const int link)
{
	return size < MOST_SIZES ? &plan.sizes[sender_of(tag)].length[link][size] : &form->length;
}
