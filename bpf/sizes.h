/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames of several sizes. A frame's number in its stream, which its tag has, decides its size, so the receiver knows
 * the size that it must have. Each cycle of the mix starts at another place, so that evenly spaced frames, such as
 * those that are timed, have all sizes.
 */
#pragma once

#define ONE_SIZE MOST_SIZES

static __always_inline int sender_of(const struct tag *tag)
{
	return (tag->kind & STREAM_MASK) == PHASE2_RESPONDER ? RESPONDER : INITIATOR;
}

/* The number of a frame's size; ONE_SIZE: it has that of its form. */
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
