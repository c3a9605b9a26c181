/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The seal of a tag: a keyed hash of all its fields except the mark. In a frame the mark is combined with the seal, so
 * a device that changes index, sequence number, stream, sender or sending time must also know the new seal.
 *
 * The hash is a sum of two words times keys, then a shift and another product (multiply, xorshift, multiply). The keys
 * are random, differ between trials, and are only in these programs' read-only data. Two steps of multiplication are
 * not linear together, so differences between frames do not result in differences between seals. It is not a
 * cryptographic hash: it has to be computed for each frame in about a nanosecond.
 */
#pragma once

static __always_inline __u32 seal_of(const struct tag *tag)
{
	const __u32 *words = (const void *)tag;
	__u64 frame = (__u64)words[1] << 32 | words[2], time = (__u64)tag->sent_high << 32 | words[3];
	__u64 hash = (frame + plan.seal_keys[0]) * plan.seal_keys[1] + time * plan.seal_keys[2];

	hash = (hash ^ hash >> 32) * plan.seal_keys[3];
	return hash >> 32;
}

/* The mark as it is in a frame, and the other way round. */
static __always_inline __u32 sealed_mark(const struct tag *tag)
{
	return tag->mark ^ seal_of(tag);
}
