/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The redirect floor: what the kernel's own path takes of a frame that nobody writes and nobody looks at. No tester
 * that makes frames this way takes less. Its receiver is receive_nothing.
 */
#ifndef NATGAUGE_FLOOR_H
#define NATGAUGE_FLOOR_H

SEC("xdp")
int redirect_only(struct xdp_md *ctx)
{
	return bpf_redirect_map(&ports, (aim.turn++ & aim.both) ^ aim.first, 0);
}

#endif
