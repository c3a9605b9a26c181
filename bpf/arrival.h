/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Arrival of frames: duplicates and reordering, missing frames, delays and their differences, gaps between arrivals. */
#pragma once

enum arrival { NEW = 0, DUPLICATE, TOO_OLD };

/* Without a branch: the verifier follows both ways of each. */
static __always_inline __u32 highest_bit(__u64 x)
{
	__u64 bit = 0, above;

	for (int step = 32; step; step >>= 1) {
		above = step * is_below(0, x >> step);
		x >>= above;
		bit += above;
	}
	return bit;
}

static __always_inline __u32 stream_key(__u32 stream, const struct tag *tag)
{
	return (tag->kind >> STREAM_BITS) * STREAMS + stream;
}

static __always_inline void record_missing(struct window *window, __u32 number, __u32 flags)
{
	__u32 at = __sync_fetch_and_add(&window->losses, 1);

	if (at < LOST_WORDS)
		window->missing[at] = (__u64)number << WORD_FRAMES | flags;
}

/* Word `number` replaces the word a window earlier: frames missing from that one can no longer arrive in time. */
static __always_inline void record_replaced(struct window *window, __u32 number, __u64 old)
{
	__u32 left = number - WINDOW_WORDS, held = old >> WORD_FRAMES;
	__u32 missing = old && held == left ? ~(__u32)old : ~0U;
	__u64 lost;

	if (number < WINDOW_WORDS || !missing)
		return;
	/* No frame of the word before this one at this place has arrived, so an older word is still stored here. */
	if (old && held != left && ~(__u32)old)
		record_missing(window, held, ~(__u32)old);
	record_missing(window, left, missing);
	lost = 1 + ((__u64)left * WORD_FRAMES | highest_bit(missing));
	if (lost > window->lost)
		window->lost = lost;
}

/* A word of the window has its number (sequence / WORD_FRAMES) above its frames' flags, so none has to be cleared. */
static __always_inline enum arrival record_in_window(__u32 stream, const struct tag *tag, bool *reordered)
{
	__u32 key = stream_key(stream, tag), number = tag->sequence / WORD_FRAMES;
	__u64 flag = 1ULL << (tag->sequence % WORD_FRAMES), old, word;
	struct window *window = bpf_map_lookup_elem(&windows, &key);
	__u64 *slot;

	if (!window)
		return TOO_OLD;
	/* A race between CPUs may miscount a reordered frame, on which no verdict depends. */
	*reordered = (__s32)(tag->sequence - window->next) < 0;
	if (!*reordered)
		window->next = tag->sequence + 1;
	slot = &window->words[number & (WINDOW_WORDS - 1)];
	for (int attempt = 0; attempt < 8; attempt++) {
		old = *(volatile __u64 *)slot;
		if (old >> WORD_FRAMES == number) {
			/* Other CPUs that set flags of the word do not make this fail, however many they are. */
			if (!(old & flag))
				old = __sync_fetch_and_or(slot, flag);
			if (old >> WORD_FRAMES == number)
				return old & flag ? DUPLICATE : NEW;
			/* The word was replaced in between. */
			if (!(old & flag))
				__sync_fetch_and_and(slot, ~flag);
			return TOO_OLD;
		}
		if (old && (__s32)(number * WORD_FRAMES - (__u32)(old >> WORD_FRAMES) * WORD_FRAMES) < 0)
			return TOO_OLD;
		word = (__u64)number << WORD_FRAMES | flag;
		if (__sync_val_compare_and_swap(slot, old, word) == old) {
			record_replaced(window, number, old);
			return NEW;
		}
	}
	return TOO_OLD;
}

static __always_inline void count_delay(void *histograms, __u32 histogram, __u64 ns)
{
	__u32 bit, key, bucket = ns;
	__u64 *count;

	if (ns >> DELAY_SUB_BITS) {
		bit = highest_bit(ns) - DELAY_SUB_BITS;
		bucket = ((bit + 1) << DELAY_SUB_BITS) + ((ns >> bit) & ((1 << DELAY_SUB_BITS) - 1));
	}
	key = histogram * DELAY_BUCKETS + (bucket < DELAY_BUCKETS ? bucket : DELAY_BUCKETS - 1);
	count = bpf_map_lookup_elem(histograms, &key);
	if (count)
		(*count)++;
}

static __always_inline void add_value(struct values *values, __s64 value)
{
	if (!values->count || value < values->minimum)
		values->minimum = value;
	if (!values->count || value > values->maximum)
		values->maximum = value;
	values->count++;
	values->sum += value;
}

static __always_inline void record_delay(struct tally *tally, __s64 delay, const int side)
{
	add_value(&tally->delays, delay);
	if (delay < 0)
		tally->negative++;
	else
		count_delay(&delays, side, delay);
}

/* Time from sending until `until`, ns; the tag contains the sending time modulo 2^40 ns, 18 minutes. */
static __always_inline __s64 time_since(const struct tag *tag, __u64 until)
{
	return (__s64)((until - sent_of(tag)) << 24) >> 24;
}

/* Whether the frame is of an earlier phase or period, which has counted it as lost. */
static __always_inline bool is_of_earlier(const struct tag *tag)
{
	return control.since && time_since(tag, control.since) > 0;
}

/* Record a late frame as missing. A frame too old for the window was recorded when its word was replaced. */
static __always_inline void record_late(__u32 stream, const struct tag *tag, enum arrival arrival)
{
	__u32 key = stream_key(stream, tag);
	struct window *window = bpf_map_lookup_elem(&windows, &key);

	if (!window)
		return;
	if (window->lost < 1 + (__u64)tag->sequence)
		window->lost = 1 + (__u64)tag->sequence;
	if (arrival != TOO_OLD)
		record_missing(window, tag->sequence / WORD_FRAMES, 1U << (tag->sequence % WORD_FRAMES));
}

/* Update the longest time without an arrival. CPUs that receive the same stream share `last_ns` without locks. */
static __always_inline void record_arrival(__u32 stream)
{
	struct silence *silence = &silences[stream];
	__u64 now = bpf_ktime_get_ns(), last = silence->last_ns;

	if (last && now > last && now - last > silence->to_ns - silence->from_ns) {
		silence->from_ns = last;
		silence->to_ns = now;
	}
	silence->last_ns = now;
}

static __always_inline bool is_sample(__u32 stream, const struct tag *tag)
{
	const volatile struct sampling *sampling = &plan.sampling[stream];
	__u64 number = number_of(tag);

	if (number < sampling->from)
		return false;
	number -= sampling->from;
	return number % sampling->every == 0 && number / sampling->every < sampling->frames;
}

#define PAIRED (1ULL << 63)

/* Count the delay difference of frames `sequence` - 1 and `sequence`, once, when both have arrived in any order. */
static __always_inline void record_pair(struct tally *tally, struct recent *recent, __u32 sequence,
					const __u32 histogram)
{
	struct recent_frame *one = &recent->frames[(sequence - 1) & (RECENT_FRAMES - 1)];
	struct recent_frame *two = &recent->frames[sequence & (RECENT_FRAMES - 1)];
	__u64 frame = 1 + (__u64)sequence;
	__s64 difference;

	if (!sequence || (*(volatile __u64 *)&one->frame & ~PAIRED) != frame - 1)
		return;
	if (__sync_val_compare_and_swap(&two->frame, frame, frame | PAIRED) != frame)
		return;
	difference = two->delay - one->delay;
	add_value(&tally->variations, difference);
	if (difference < 0)
		count_delay(&variations, histogram + NEGATIVE, -difference);
	else
		count_delay(&variations, histogram, difference);
}

/* RFC 5481 section 4.1: D(i) - D(i-1) in the order of sending. */
static __always_inline void record_variation(struct tally *tally, __u32 stream, const struct tag *tag, __s64 delay)
{
	__u32 key = stream_key(stream, tag), histogram = stream == PHASE2_RESPONDER ? SIGNS : 0;
	struct recent *recent = bpf_map_lookup_elem(&recents, &key);
	struct recent_frame *here;

	if (!recent)
		return;
	here = &recent->frames[tag->sequence & (RECENT_FRAMES - 1)];
	here->delay = delay;
	/* The exchange is a full barrier: of two neighbours that arrive at once on two CPUs, one sees the other. */
	__sync_lock_test_and_set(&here->frame, 1 + (__u64)tag->sequence);
	record_pair(tally, recent, tag->sequence, histogram);
	record_pair(tally, recent, tag->sequence + 1, histogram);
}
