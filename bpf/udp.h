/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* UDP (RFC 768). */
#pragma once

/* The checksum is never 0, which means "no checksum" (RFC 768) and is forbidden over IPv6 (RFC 8200 section 8.1). */
static __always_inline void put_udp(struct udphdr *to, __u32 ports, __u16 length, __u64 sum)
{
	__u16 check = ~fold(sum + ports);

	*(__be32 *)to = ports;
	to->len = bpf_htons(length);
	to->check = check ? check : 0xffff;
}
