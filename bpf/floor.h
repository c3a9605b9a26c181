/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The redirect floor: the cost of the kernel's own path, with frames that are neither written nor read. It is the lower
 * bound for any tester that sends live frames. Its receiver is receive_nothing.
 */
#pragma once

SEC("xdp")
int redirect_only(struct xdp_md *ctx)
{
	return bpf_redirect_map(&ports, (floor_ports.frame++ & floor_ports.both) ^ floor_ports.first, 0);
}
