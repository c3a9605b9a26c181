/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Reading a frame that arrives: addresses, ports and tag, and whether it is whole and says what it should. */
#ifndef NATGAUGE_SEE_H
#define NATGAUGE_SEE_H

/* A received test frame, both families. */
struct seen {
	struct address source, destination;
	__u16 source_port, destination_port;
	struct tag tag;
	bool intact;
	bool other; /* a whole message, but it says something else */
};

/* Sum of the octets behind the tag; they lie between from and the end of the frame. */
static __always_inline __u64 received_padding_sum(__u8 *from, int octets)
{
	int odd = octets & 3, at = 0;
	__s64 sum = 0;

	for (; at + 512 <= octets - odd; at += 512)
		sum = bpf_csum_diff(NULL, 0, (__be32 *)(from + at), 512, sum);
	if (at < octets - odd)
		sum = bpf_csum_diff(NULL, 0, (__be32 *)(from + at), octets - odd - at, sum);
	at = octets - odd;
	if (odd >= 2) {
		sum += *(__u16 *)(from + at);
		at += 2;
	}
	if (odd & 1)
		sum += from[at];
	return sum;
}

static __always_inline void see_transport(struct seen *seen, const struct transport *from,
					  const volatile struct side_plan *as)
{
	seen->source_port = source_port_of(from);
	seen->destination_port = destination_port_of(from);
	if (as->payload)
		see_message(&seen->tag, from + 1);
	else
		copy_tag(&seen->tag, (void *)(from + 1));
	seen->intact = false;
	seen->other = false;
}

/* Whether up to the end of the tag all is there; without letters that has been checked. */
static __always_inline bool has_tag(const struct transport *transport, void *end, const volatile struct side_plan *as)
{
	return !as->payload || (void *)(transport + 1) + UP_TO_LETTERS <= end;
}

/* A message that is intact must also say what it should. */
static __always_inline void see_said(struct seen *seen, const struct transport *transport,
				     const volatile struct side_plan *as, int octets)
{
	seen->other = as->payload && seen->intact && !says(transport + 1, &seen->tag, as, octets);
}

/* Whether a frame holds so many octets behind its Ethernet header; lengths only, nothing is read. */
static __always_inline bool fills(void *data, void *end, int octets)
{
	return (long)end - (long)data >= ETH_HLEN + octets;
}

static __always_inline bool is_ipv4_test(const struct ethhdr *eth, const struct iphdr *ip)
{
	return eth->h_proto == bpf_htons(ETH_P_IP) && *(__u8 *)ip == 0x45 && ip->protocol == TRANSPORT_PROTOCOL;
}

/*
 * Returns false for what is no frame of this transport and family with room for a tag. An Ethernet trailer is no harm,
 * a shorter frame is. A checksum of 0 is legal over IPv4: the device took it away (RFC 768).
 */
static __always_inline bool see4(void *data, void *end, const volatile struct side_plan *as, struct seen *seen)
{
	struct iphdr *ip = data + ETH_HLEN;
	struct transport *transport = (void *)(ip + 1);
	int octets = as->octets;
	__u64 sum;

	if (data + UP_TO_TAG4 > end || !is_ipv4_test(data, ip) || !has_tag(transport, end, as))
		return false;
	see_transport(seen, transport, as);
	seen->source = (struct address){ .low = bpf_ntohl(ip->saddr) };
	seen->destination = (struct address){ .low = bpf_ntohl(ip->daddr) };
	if (data + octets > end || ip->tot_len != bpf_htons(octets - ETH_HLEN) ||
	    !transport_holds(transport, octets - ETH_HLEN - sizeof(*ip))) {
		seen->other = as->payload && fold(sum_words(ip, sizeof(*ip))) == 0xffff &&
			      fills(data, end, bpf_ntohs(ip->tot_len)) &&
			      transport_fills(transport, bpf_ntohs(ip->tot_len) - sizeof(*ip));
		return true;
	}
	sum = transport_sum(transport) + ip->saddr + ip->daddr +
	      received_padding_sum(data + UP_TO_TAG4, octets - UP_TO_TAG4);
	seen->intact =
		fold(sum_words(ip, sizeof(*ip))) == 0xffff && (transport_unchecked(transport) || fold(sum) == 0xffff);
	see_said(seen, transport, as, octets - UP_TO_PAYLOAD4);
	return true;
}

static __always_inline bool see6(void *data, void *end, const volatile struct side_plan *as, struct seen *seen)
{
	struct ethhdr *eth = data;
	struct ipv6hdr *ip = data + ETH_HLEN;
	struct transport *transport = (void *)(ip + 1);
	int octets = as->octets;
	__u64 sum;

	if (data + UP_TO_TAG6 > end || eth->h_proto != bpf_htons(ETH_P_IPV6) || ip->nexthdr != TRANSPORT_PROTOCOL ||
	    !has_tag(transport, end, as))
		return false;
	see_transport(seen, transport, as);
	seen->source = address6(&ip->saddr);
	seen->destination = address6(&ip->daddr);
	if (data + octets > end || ip->payload_len != bpf_htons(octets - ETH_HLEN - sizeof(*ip)) ||
	    !transport_holds(transport, octets - ETH_HLEN - sizeof(*ip))) {
		seen->other = as->payload && fills(data, end, sizeof(*ip) + bpf_ntohs(ip->payload_len)) &&
			      transport_fills(transport, bpf_ntohs(ip->payload_len));
		return true;
	}
	sum = transport_sum(transport) + sum_words(&ip->saddr, 32) +
	      received_padding_sum(data + UP_TO_TAG6, octets - UP_TO_TAG6);
	seen->intact = !transport_unchecked(transport) && fold(sum) == 0xffff;
	see_said(seen, transport, as, octets - UP_TO_PAYLOAD6);
	return true;
}

#endif
