/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The state table: connection index -> outside source address and port seen by the Responder (RFC 9693 section 4.2). */
#pragma once

#define LEARNED (1ULL << 48)
#define TURN_AT 49 /* with churn: how many connections have had the entry before, modulo 2^15 */

struct outside {
	struct address address;
	__u16 port;
};

/* IPv4: one word (address, port, LEARNED). IPv6: three words (the first as IPv4 without address, high, low). */
static __always_inline __u64 *entry(__u64 connection)
{
	__u64 place = plan.churn ? connection - divide(connection, &plan.open) * plan.open.by : connection;
	__u32 piece = 0, slot = place;
	void *map;

	if (plan.open.by > plan.pieces.by) {
		piece = divide(place, &plan.pieces);
		barrier_var(piece);
		slot = place - piece * plan.pieces.by;
	}
	map = bpf_map_lookup_elem(&state_table, &piece);
	return map ? bpf_map_lookup_elem(map, &slot) : NULL;
}

/* What marks an entry as that of a connection. */
static __always_inline __u64 learned_mark(__u64 connection)
{
	return LEARNED | (plan.churn ? divide(connection, &plan.open) << TURN_AT : 0);
}

static __always_inline int learned(__u64 connection, struct outside *outside)
{
	__u64 *e = entry(connection), word;

	if (!e)
		return 0;
	word = *e;
	outside->port = word >> 32;
	if (plan.side[RESPONDER].family == FAMILY_IPV4)
		outside->address = (struct address){ .low = (__u32)word };
	else
		outside->address = (struct address){ .high = e[1], .low = e[2] };
	return plan.churn ? word >> 48 == learned_mark(connection) >> 48 : !!(word & LEARNED);
}

enum learning { LEARNED_NOTHING = 0, LEARNED_NEW, LEARNED_OTHER };

/* Store a connection's outside source. An unchanged entry is not written, so its cache line stays clean. */
static __always_inline enum learning learn(__u64 connection, struct address address, __u16 port, bool opens)
{
	__u64 *e = entry(connection);
	__u64 word = learned_mark(connection) | (__u64)port << 32, old;
	bool changed = false, other;

	if (!e)
		return LEARNED_NOTHING;
	old = *e;
	other = plan.churn && (old ^ word) >> 48;
	/* Only the frame that opens a connection takes the entry of one that has left. */
	if (other && !opens)
		return LEARNED_NOTHING;
	if (plan.side[RESPONDER].family == FAMILY_IPV4) {
		word |= (__u32)address.low;
	} else if (e[1] != address.high || e[2] != address.low) {
		changed = true;
		e[1] = address.high;
		e[2] = address.low;
	}
	if (old == word && !changed)
		return LEARNED_NOTHING;
	*e = word;
	return old & LEARNED && !other ? LEARNED_OTHER : LEARNED_NEW;
}
