/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Computes a connection's four tuple from its index, without a table of N entries (RFC 9693 section 4.4). */
#pragma once

/*
 * Most steps of a cycle walk. The rectangle exceeds the domain by fewer positions than the root of its size, so small
 * domains need fewer steps. In a domain of 256 or more, 16 steps outside it have a probability below 256^-8.
 */
#define MOST_WALKS 16

struct tuple {
	__u64 source_address;	   /* position in the Initiator's addresses */
	__u64 destination_address; /* position in the Responder's addresses */
	__u16 source_port;
	__u16 destination_port;
};

/*
 * A half of a number, moved modulo its size (<= 2^32) by a pseudorandom number from the other half and a key. Without a
 * branch, which processors would predict wrongly every other time. Because of the barrier the compiler makes none, and
 * the product has one result for the verifier, where a mask has two.
 */
static __always_inline __u64 moved(__u64 half, __u32 other, __u32 key, __u64 size, bool back)
{
	__u64 by, below, negative;
	__u32 h = other + key;

	h *= 0x9e3779b1;
	h ^= h >> 15;
	h *= 0x85ebca77;
	h ^= h >> 16;
	by = ((__u64)h * size) >> 32;
	below = back ? half - by : half + by - size;
	negative = below >> 63;
	barrier_var(negative);
	return below + size * negative;
}

/*
 * Generalised Feistel network (Black and Rogaway) of three rounds, enough for a pseudorandom permutation (Luby and
 * Rackoff). Each half is added to modulo its own size, so the domain need not be a power of two.
 */
static __always_inline __u64 walk(__u64 x, const volatile struct permutation *p)
{
	__u64 row = divide(x, &p->columns);
	__u64 column = x - row * p->columns.by;

	row = moved(row, column, p->key[0], p->rows, p->inverse);
	column = moved(column, row, p->key[1], p->columns.by, p->inverse);
	row = moved(row, column, p->key[2], p->rows, p->inverse);
	return row * p->columns.by + column;
}

enum permuted { TUPLES, READINGS, OPENINGS };

static __always_inline const volatile struct permutation *permutation_of(enum permuted what)
{
	return what == READINGS ? &plan.readings : what == OPENINGS ? &plan.openings : &plan.tuples;
}

/* Global, so that the verifier follows them once each, and not for each step of a walk and each of its callers. */
__noinline __u64 step_on(__u64 x, enum permuted what)
{
	return walk(x, permutation_of(what));
}

__noinline __u64 walk_on(__u64 x, enum permuted what)
{
	const volatile struct permutation *p = permutation_of(what);

	for (int step = 1; step < MOST_WALKS && x >= p->size; step++)
		x = step_on(x, what);
	return x;
}

/* The rectangle exceeds the domain by less than one row, so a second step of the walk is rare. */
static __always_inline __u64 permute(__u64 x, const enum permuted what)
{
	const volatile struct permutation *p = permutation_of(what);

	x = walk(x, p);
	return x < p->size ? x : walk_on(x, what);
}

/* Draw i of independent, uniform draws from [0, limit), limit <= 2^32. */
static __always_inline __u64 draw(__u64 i, __u64 key, __u64 limit)
{
	__u64 z = (i + key) * 0x9e3779b97f4a7c15ULL;

	z ^= z >> 30;
	z *= 0xbf58476d1ce4e5b9ULL;
	z ^= z >> 27;
	z *= 0x94d049bb133111ebULL;
	return ((z >> 32) * limit) >> 32;
}

/* The connection of frame `number` of a side in phase 2: one of those that are open then. */
static __always_inline __u64 drawn(__u64 number, __u64 key, const int side)
{
	__u64 left = plan.churn ? plan.drawn_from + (number * plan.left_per_frame[side] >> 32) : 0;
	__u32 groups = plan.modifiers.groups;

	if (groups)
		return draw(number, key, (plan.drawn + groups - 1 - number % groups) / groups) * groups +
		       number % groups;
	return left + draw(number, key, plan.drawn);
}

static __always_inline bool is_flood(__u64 connection)
{
	return plan.flood && connection >= plan.flood_from;
}

/* The position of a connection's four tuple; those of the flood are after all others. */
static __always_inline __u64 position(__u64 connection)
{
	if (is_flood(connection))
		return plan.space + connection - plan.flood_from;
	switch (plan.order) {
	case ORDER_PERMUTATION:
		return permute(connection, TUPLES);
	case ORDER_DECREASING:
		return plan.space - 1 - connection;
	case ORDER_WITH_REPLACEMENT:
		return draw(connection, plan.draw_key ^ 0x5bd1e995, plan.space);
	default:
		return connection;
	}
}

/* The four tuple at a position: the source port varies fastest, then source address, destination port and address. */
static __always_inline void tuple_at(__u64 rest, struct tuple *t)
{
	const bool flood = plan.flood && rest >= plan.space;
	__u64 next;

	if (flood)
		rest -= plan.space;
	next = divide(rest, &plan.source_ports);
	t->source_port = plan.source_port_first + (rest - next * plan.source_ports.by);
	t->source_address = flood ? plan.source_addresses.by : 0;
	rest = next;
	if (plan.source_addresses.by > 1 && !flood) {
		next = divide(rest, &plan.source_addresses);
		t->source_address = rest - next * plan.source_addresses.by;
		rest = next;
	}
	if (plan.edges.emulated)
		t->source_port = port_in_set(customer_edge(t->source_address).psid, t->source_port - 1);
	t->destination_address = 0;
	if (plan.side[INITIATOR].other.count > 1) {
		next = divide(rest, &plan.destination_ports);
		t->destination_address = next;
		rest -= next * plan.destination_ports.by;
	}
	t->destination_port = plan.destination_port_first + rest;
}
