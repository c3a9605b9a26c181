/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Properties of kinds of frames, from which the transports' headers follow. */
#pragma once

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
