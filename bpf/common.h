/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What every object has: headers of the kernel and of libbpf, the licence, and maps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/icmpv6.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define IPV4_FRAGMENT 0x3fff /* of an IPv4 header: more fragments, or an offset */

/* A map whose keys are numbers; user space may change the number of entries before loading. */
#define NUMBERED(kind, name, entries, value_type)                                                                      \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_##kind);                                                                     \
		__uint(max_entries, entries);                                                                          \
		__type(key, __u32);                                                                                    \
		__type(value, value_type);                                                                             \
	} name SEC(".maps")

char LICENSE[] SEC("license") = "Dual BSD/GPL";
