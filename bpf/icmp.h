/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * ICMP echo (RFC 792, RFC 4443 section 4). The identifier is the Initiator's port, which a NAT translates (RFC 5508
 * section 3), and the sequence number is the Responder's. A request has the identifier of its source, a reply that of
 * its destination.
 */
#pragma once

struct echo {
	__u16 type_code;
	__u16 check;
	__be16 identifier;
	__be16 sequence;
};

static __always_inline void put_echo(struct echo *to, const volatile struct form *form, __u32 ports, __u64 sum)
{
	__u32 numbers = form->reply ? ports << 16 | ports >> 16 : ports;

	*(__u32 *)to = (__u16)form->header[0] | (__u32)(__u16)~fold(sum + numbers) << 16;
	*(__u32 *)&to->identifier = numbers;
}

static __always_inline __u16 echo_source(const struct echo *from, const volatile struct form *form)
{
	return bpf_ntohs(form->reply ? from->sequence : from->identifier);
}

static __always_inline __u16 echo_destination(const struct echo *from, const volatile struct form *form)
{
	return bpf_ntohs(form->reply ? from->identifier : from->sequence);
}
