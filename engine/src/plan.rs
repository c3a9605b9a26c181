// SPDX-License-Identifier: Apache-2.0
//! Computes the frame programs' plan, their read-only data, from a request.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;

use crate::messages::{self, Message, MessageName, Payload};
use crate::request::{
    four, halves, AddressRange, CustomerEdges, Family, Headers, Order, Reading, Request, Source, Vlan, ETHERNET,
};
use crate::shared::{
    BOTH, CLOSING, HEADER_WORDS, INITIATOR, MOST_MESSAGES, MOST_SIZES, PHASE1, PHASE2, PHASE2_INITIATOR,
    PHASE2_RESPONDER, RESPONDER, SEAL_KEYS, SIDES, STREAMS, TAG_OCTETS, TEST_TTL,
};
use crate::table;
use crate::tester::types;
use crate::transport::Transport;

/// Octets of a state table for which a core's own caches have room.
const CACHED_OCTETS: u64 = 1 << 18;
/// The largest state table that phase 1 may write at random: one that stays in the cache that cores share.
const WRITTEN_AT_RANDOM_OCTETS: u64 = 1 << 22;
const PORT_BITS: u32 = u16::BITS;
/// Products of numbers below this with a magic number fit into 64 bits.
const FAST_DIVISION: u64 = 1 << 31;

/// Pseudorandom generator (Steele et al., 2014): independent keys from one seed.
pub(crate) struct SplitMix64(pub(crate) u64);

impl SplitMix64 {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn three(&mut self) -> [u32; 3] {
        std::array::from_fn(|_| (self.next() >> 32) as u32)
    }
}

/// Division by `by` of numbers up to `largest`: by multiplication when that is exact (Granlund and Montgomery, 1994).
fn divisor(by: u64, largest: u64) -> types::divisor {
    let mut divisor = types::divisor { by, ..Default::default() };
    if largest <= FAST_DIVISION && by <= FAST_DIVISION {
        divisor.shift = 31 + by.next_power_of_two().trailing_zeros();
        divisor.magic = (1_u64 << divisor.shift).div_ceil(by);
    }
    divisor
}

pub(crate) fn permutation(size: u64, keys: &mut SplitMix64) -> types::permutation {
    // An approximate root is enough, because the number of rows is computed from it.
    let columns = (size as f64).sqrt().ceil() as u64;
    let rows = size.div_ceil(columns);
    types::permutation {
        size,
        rows,
        columns: divisor(columns, rows * columns),
        key: keys.three(),
        ..Default::default()
    }
}

fn addresses(range: &AddressRange) -> types::addresses {
    let (high, low) = (range.common_half(), range.number(range.first));
    types::addresses { high, low, step: range.step, count: range.count(), prefix: range.embedded.unwrap_or_default() }
}

/// Checksum sum: 16-bit words in memory order; an odd last octet is followed by a zero.
fn sum(octets: &[u8]) -> u64 {
    octets.chunks(2).map(|pair| u64::from(u16::from_ne_bytes([pair[0], *pair.get(1).unwrap_or(&0)]))).sum()
}

/// What to add to the first checksum sum to get the second, at least 0.
fn difference(from: u64, to: u64) -> u64 {
    to + u64::from(u16::MAX) - from % u64::from(u16::MAX)
}

/// A share as the number below which multiples of an irrational number, times 2^32, are.
fn below(share: Option<f64>) -> u64 {
    (share.unwrap_or(0.0) * (1_u64 << 32) as f64).round() as u64
}

/// Tag and padding, for frames of `octets` octets with headers of `headers` octets. The tag is 0 here, because frames
/// differ in it; the octets after it are 0, 1, ... (RFC 2544 C.2.6.4).
fn plain(octets: u32, headers: u32) -> Vec<u8> {
    let padding = padding(octets - headers - TAG_OCTETS);
    std::iter::repeat_n(0, TAG_OCTETS as usize).chain(padding).collect()
}

fn padding(octets: u32) -> Vec<u8> {
    (0..octets).map(|at| at as u8).collect()
}

/// Octets as 32-bit words in memory order, filled up with zeros.
fn header_words(octets: &[u8]) -> [u32; HEADER_WORDS] {
    let mut words = [0; HEADER_WORDS];
    for (word, four) in words.iter_mut().zip(octets.chunks_exact(4)) {
        *word = u32::from_ne_bytes([four[0], four[1], four[2], four[3]]);
    }
    words
}

/// Frames of a message behind these headers; with tag and padding, they have `octets` octets.
fn form(before: Headers, transport: Transport, message: &Message, octets: u32) -> types::form {
    let family = before.family;
    let header = transport.header_octets(message, family);
    let headers = ETHERNET + before.octets() + header;
    let (payload, content) = match &message.payload {
        Payload::Tagged => (plain(octets, headers), None),
        Payload::Dns(content) => {
            let other_sum = difference(sum(content.octets()), sum(content.other_octets()));
            (content.octets().to_vec(), Some(types::content { other_sum, ..content.shared() }))
        }
        Payload::Untagged(octets) => (padding(*octets), None),
    };
    let length = header as u16 + payload.len() as u16;
    let header = transport.header(message, family, length);
    let total = family.header_octets() as u16 + length;
    let protocol = transport.protocol(family);
    types::form {
        length: types::length {
            octets: headers + payload.len() as u32,
            ip_sum: sum(&[&[0x45, 0][..], &total.to_be_bytes(), &[0, 0, 0, 0, TEST_TTL, protocol]].concat()),
            transport_sum: sum(&[transport.pseudo_header(family, length), header.clone(), payload].concat()),
            ..Default::default()
        },
        lettered: u32::from(content.is_some()),
        header: header_words(&header),
        reply: (message.sender == RESPONDER).into(),
        content: content.unwrap_or_default(),
    }
}

/// The messages of a connection.
fn messages(request: &Request) -> [types::message; MOST_MESSAGES] {
    let (transport, octets) = (request.frame.transport, request.untagged_octets(request.frame.size));
    let headers = request.headers();
    let messages = request.messages();
    let mut all = [types::message::default(); MOST_MESSAGES];
    for (at, message) in messages.iter().enumerate() {
        let streams = messages::streams_with(&messages, at);
        all[message.place] = types::message {
            streams,
            stream: streams.trailing_zeros() as u16,
            followed: messages::followed(&messages, at).into(),
            sequence: message.numbers.0,
            acknowledgment: message.numbers.1,
            form: BOTH.map(|side| form(headers[side], transport, message, octets[side])),
        };
    }
    all
}

fn side(headers: Headers, macs: ([u8; 6], [u8; 6]), own: &AddressRange, other: &AddressRange) -> types::side_plan {
    let named = |family| match family {
        Family::Ipv4 => types::family::FAMILY_IPV4,
        Family::Ipv6 => types::family::FAMILY_IPV6,
    };
    let (own_mac, gateway_mac) = macs;
    let vlans = headers.vlan.map(Vlan::tags).unwrap_or_default();
    let ethernet = [gateway_mac, own_mac].concat();
    let word = |at: usize| u32::from_ne_bytes([ethernet[at], ethernet[at + 1], ethernet[at + 2], ethernet[at + 3]]);
    types::side_plan {
        ethernet: [word(0), word(4), word(8)],
        mac: [0, 2, 4].map(|at| u16::from_ne_bytes([own_mac[at], own_mac[at + 1]])),
        family: named(headers.family),
        link: named(headers.link()),
        outer: if headers.tunnelled { Family::Ipv6.header_octets() as u16 } else { 0 },
        tagged: headers.vlan_octets() as u16,
        vlan_each: headers.vlan.is_some_and(|vlan| vlan.each_source).into(),
        vlans: std::array::from_fn(|at| vlans.get(at).copied().unwrap_or_default()),
        own: addresses(own),
        other: addresses(other),
        neighbours: addresses(own),
    }
}

/// Timed streams, a bit each: those of phase 2, or phase 1 where there is no phase 2.
fn delay_streams(request: &Request) -> u32 {
    match (&request.phase2, request.record_delays) {
        (_, false) => 0,
        (None, true) => 1 << PHASE1,
        (Some(_), true) => 1 << PHASE2_INITIATOR | 1 << PHASE2_RESPONDER,
    }
}

/// A segment without a tag has a place in the window of its stream by its connection, so those of the Responder are sent in
/// the order of the connections.
fn reading(request: &Request) -> types::reading {
    if request.frame.half_open {
        return types::reading::READING_INCREASING;
    }
    let responder = request.phase2.as_ref().and_then(|phase2| phase2.responder.as_ref());
    match responder.map(|stream| stream.reading_order).unwrap_or_default() {
        Reading::Pseudorandom => types::reading::READING_PSEUDORANDOM,
        Reading::Increasing => types::reading::READING_INCREASING,
        Reading::Once => types::reading::READING_ONCE,
    }
}

/// Both sides of foreground frames.
fn ends(request: &Request, macs: [([u8; 6], [u8; 6]); SIDES]) -> [types::side_plan; SIDES] {
    let (initiator, responder) = (&request.initiator, &request.responder);
    let mapped = initiator.customer_edges.as_ref().map(CustomerEdges::addresses);
    let hosts = mapped.as_ref().or(responder.destination_addresses.as_ref()).unwrap_or(&initiator.source_addresses);
    let [inside, outside] = request.headers();
    let own = if inside.tunnelled { hosts } else { &initiator.source_addresses };
    let relay = if outside.tunnelled { &initiator.destination_addresses } else { &responder.addresses };
    let of_flood = u64::from(request.flood() > 0);
    let with_flood = |range: &AddressRange| types::addresses { count: range.count() + of_flood, ..addresses(range) };
    [
        types::side_plan {
            own: with_flood(own),
            neighbours: with_flood(&initiator.source_addresses),
            ..side(inside, macs[INITIATOR], own, &initiator.destination_addresses)
        },
        types::side_plan {
            neighbours: addresses(&responder.addresses),
            ..side(outside, macs[RESPONDER], relay, hosts)
        },
    ]
}

/// Both sides of background frames; the gateways are those of the foreground.
fn background(request: &Request, macs: [([u8; 6], [u8; 6]); SIDES]) -> [types::side_plan; SIDES] {
    let Some(background) = &request.background else { return Default::default() };
    let (initiator, responder) = (&background.initiator_addresses, &background.responder_addresses);
    let [inside, outside] = request.headers().map(|headers| headers.of_native(Family::Ipv6));
    [side(inside, macs[INITIATOR], initiator, responder), side(outside, macs[RESPONDER], responder, initiator)]
}

/// Background frames.
fn background_form(request: &Request) -> types::form {
    let message = &request.messages()[INITIATOR];
    let octets = request.background.as_ref().map(|_| request.background_octets(request.frame.size));
    octets.map(|octets| form(Family::Ipv6.into(), request.frame.transport, message, octets)).unwrap_or_default()
}

/// Connections that leave during a frame of each direction, in units of 2^-LEFT_FRACTION.
fn left_per_frame(request: &Request) -> [u64; SIDES] {
    let mut left = [0; SIDES];
    let Some((churn, phase2)) = request.churn() else { return left };
    for stream in phase2.streams() {
        left[stream.side] = (churn.new_per_second / stream.rate * f64::from(1_u32 << 31) * 2.0).round() as u64;
    }
    left
}

/// Streams whose frames have the sizes of a mix, a bit each: those of phase 2, or all where there is no phase 2.
pub(crate) fn sized(request: &Request) -> u32 {
    let streams: &[usize] =
        if request.phase2.is_some() { &PHASE2 } else { &[PHASE1, PHASE2_INITIATOR, PHASE2_RESPONDER] };
    let side = |stream| if stream == PHASE2_RESPONDER { RESPONDER } else { INITIATOR };
    streams
        .iter()
        .filter(|&&stream| request.frame.mix(side(stream)).is_some())
        .fold(0, |bits, stream| bits | 1 << stream)
}

/// The number nearest to `of` divided by the golden ratio that has no divisor in common with it.
fn spreading(of: u32) -> u32 {
    let divisor = |mut a: u32, mut b: u32| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let golden = (f64::from(of) * 0.618_034).round() as u32;
    (0..=of)
        .flat_map(|off| [golden.saturating_sub(off), golden + off])
        .find(|&step| divisor(step, of) == 1)
        .unwrap_or(1)
}

/// The mix of sizes of the frames of each side.
fn sizes(request: &Request) -> [types::size_mix; SIDES] {
    let (headers, all) = (request.headers(), request.messages());
    let of_side = |side| {
        let (Some(mix), Some(message)) = (
            request.frame.mix(side),
            all.iter().rfind(|one| one.sender == side && matches!(one.payload, Payload::Tagged)),
        ) else {
            return types::size_mix::default();
        };
        let mut sizes = types::size_mix { of: mix.weight(), step: spreading(mix.weight()), ..Default::default() };
        sizes.below = [mix.weight(); MOST_SIZES];
        for (at, (size, weight)) in mix.0.iter().enumerate() {
            sizes.below[at] = weight + at.checked_sub(1).map_or(0, |before| sizes.below[before]);
            for link in BOTH {
                let octets = request.untagged_octets(*size)[link];
                sizes.length[link][at] = form(headers[link], request.frame.transport, message, octets).length;
            }
            if request.background.is_some() {
                let octets = request.background_octets(*size);
                sizes.length[SIDES][at] = form(Family::Ipv6.into(), request.frame.transport, message, octets).length;
            }
        }
        sizes
    };
    BOTH.map(of_side)
}

/// Timed frames of each stream; the request has been checked.
fn sampling(request: &Request) -> [types::sampling; STREAMS] {
    let mut streams = [types::sampling::default(); STREAMS];
    let (Some(samples), Some(phase2)) = (&request.delay_samples, &request.phase2) else { return streams };
    for stream in phase2.streams() {
        let from = samples.first(stream.rate);
        let every = samples.every(stream.rate, stream.frames, &request.cycles());
        streams[PHASE2[stream.side]] = types::sampling { from, every, frames: samples.frames };
    }
    streams
}

/// The customer edges; the request has been checked.
fn customer_edges(request: &Request, largest: u64) -> types::customer_edges {
    let (emulated, tested) = (&request.initiator.customer_edges, &request.responder.customer_edges);
    let Some(edges) = emulated.as_ref().or(tested.as_ref()) else { return Default::default() };
    let Ok(rule) = edges.rule() else { return Default::default() };
    let (relay_high, relay_low) = edges.relay.map(halves).unwrap_or_default();
    types::customer_edges {
        prefix: rule.prefix6(),
        relay_high,
        relay_low,
        first: edges.first,
        per_address: divisor(edges.per_address(), largest.max(edges.first + edges.number)),
        emulated: emulated.is_some().into(),
        tested: tested.is_some().into(),
        first_address: four(edges.first_address).to_bits(),
        suffix_mask: !rule.prefix4().1,
        first_psid: edges.first_psid.into(),
        offset_shift: PORT_BITS - u32::from(edges.psid_offset),
        psid_shift: PORT_BITS - u32::from(edges.psid_offset) - u32::from(edges.psid_length),
        psid_length: edges.psid_length.into(),
        suffix_shift: rule.embedded_bits().1.into(),
        ..Default::default()
    }
}

/// Whether entries of the state table are prefetched: where the table exceeds the caches and is read at random.
fn prefetched(request: &Request) -> bool {
    !request.stateless
        && request.frame.closing.is_none()
        && matches!(reading(request), types::reading::READING_PSEUDORANDOM)
        && request.connections * u64::from(table::entry_octets(request)) > CACHED_OCTETS
}

/// Streams whose frames close connections, a bit each.
fn closes(request: &Request) -> u32 {
    if request.churn().is_some() {
        return 1 << CLOSING;
    }
    let ends = |message: &Message| matches!(message.name, MessageName::Fin | MessageName::Rst);
    let closed = |stream| request.messages().iter().any(|message| ends(message) && message.streams.contains(&stream));
    u32::from(closed(PHASE2_INITIATOR)) << PHASE2_INITIATOR
}

/// Keys of the hashes in marks. They differ between trials, so that a wrong frame with a matching hash is found in the
/// next trial. Four tuples depend on the seed alone.
fn mark_keys<const KEYS: usize>(seed: u64, mark: u32) -> [u64; KEYS] {
    let mut keys = SplitMix64(SplitMix64(seed).next() ^ u64::from(mark));
    std::array::from_fn(|_| keys.next())
}

/// Random keys of the seals in test frames, which nothing outside of the frame programs can derive. Factors are odd, so
/// that no bit of what they multiply is lost.
fn seal_keys() -> [u64; SEAL_KEYS] {
    // The hasher's own keys come from the kernel's random numbers.
    std::array::from_fn(|_| RandomState::new().build_hasher().finish() | 1)
}

/// Whether connections are numbered by the position of their four tuples, and opened in permuted order, so that phase 2
/// computes no permutation. That needs a table that the caches hold, and ranges that the connections fill by more than
/// half: those are the first positions. With churn others follow.
pub(crate) fn opens_permuted(request: &Request) -> bool {
    matches!(request.order, Order::Permutation)
        && matches!(reading(request), types::reading::READING_PSEUDORANDOM | types::reading::READING_ONCE)
        && request.phase2.is_some()
        && request.churn().is_none()
        && request.connections * u64::from(table::entry_octets(request)) <= WRITTEN_AT_RANDOM_OCTETS
        && request.space().is_some_and(|space| space < 2 * request.connections)
}

/// The order of the four tuples of connections 0, 1, ...
pub(crate) fn order(request: &Request) -> Order {
    if opens_permuted(request) {
        Order::Increasing
    } else {
        request.order
    }
}

/// The permutation of the four tuples that are used.
pub(crate) fn four_tuples(request: &Request) -> types::permutation {
    let space = if opens_permuted(request) { Some(request.connections) } else { request.space() };
    permutation(space.unwrap_or(u64::MAX), &mut SplitMix64(request.seed))
}

/// The key of all draws: it follows those of the four tuples and of the readings.
pub(crate) fn draw_key(request: &Request) -> u64 {
    let mut keys = SplitMix64(request.seed);
    let _ = (keys.three(), keys.three());
    keys.next()
}

/// The plan for a request. `macs`: own and gateway's MAC address of each side.
pub fn build(request: &Request, macs: [([u8; 6], [u8; 6]); SIDES]) -> types::plan {
    let space = request.space().unwrap_or(u64::MAX);
    let mut keys = SplitMix64(request.seed);
    let all = permutation(space, &mut keys);
    let readings = permutation(request.connections, &mut keys);
    let largest = all.rows * all.columns.by;
    let tuples = four_tuples(request);
    let initiator = &request.initiator;
    let [inside, outside] = request.headers();
    let messages = messages(request);
    let tagged = matches!(request.messages()[0].payload, Payload::Tagged);
    let translated = request.translation.source == Source::Translated;
    let emulated = initiator.customer_edges.is_some();
    let source_known = request.stateless || (!translated && (emulated || inside.family == outside.family));
    let churn = request.churn();
    let guarded = churn.map_or(0, |(churn, _)| churn.guarded());
    types::plan {
        mark: request.mark,
        order: match order(request) {
            Order::Permutation => types::order::ORDER_PERMUTATION,
            Order::Increasing => types::order::ORDER_INCREASING,
            Order::Decreasing => types::order::ORDER_DECREASING,
            Order::WithReplacement => types::order::ORDER_WITH_REPLACEMENT,
        },
        reading: reading(request),
        stamped: u32::from(request.record_delays || request.frame_timeout_ms.is_some()),
        record_delays: delay_streams(request),
        source_translated: u32::from(translated),
        pool_checked: u32::from(request.translation.pool.is_some()),
        stateless: u32::from(request.stateless),
        stepped: u32::from(request.phase2.as_ref().is_some_and(|phase2| phase2.step.is_some())),
        sampled: u32::from(request.delay_samples.is_some()),
        record_variation: u32::from(request.record_variation),
        record_loss_times: u32::from(request.record_loss_times),
        handed_on: match (request.frame.resolved, request.frame.handed_on) {
            (true, _) => types::handing::HAND_ALL,
            (_, true) => types::handing::HAND_QUERIES,
            _ => types::handing::HAND_NOTHING,
        },
        accept_zero_checksum: u32::from(request.accept_zero_checksum),
        senders: request.senders.cpus.len() as u32,
        batch: request.senders.batch,
        stall_ns: request.senders.stall_ns,
        mixed: u32::from(request.background.is_some()),
        mix_of: request.background.as_ref().map_or(1, |background| background.n),
        mix_foreground: request.background.as_ref().map_or(1, |background| background.m),
        longest: request.longest_octets(),
        prefetched: u32::from(prefetched(request)),
        opens_permuted: u32::from(opens_permuted(request)),
        closes: closes(request),
        churn: u32::from(churn.is_some()),
        flood: u32::from(request.flood() > 0),
        flood_from: request.all_connections(),
        sized: sized(request),
        source_known: u32::from(source_known),
        set_known: u32::from(request.responder.customer_edges.is_some() && translated),
        // Marks do not cover upper halves.
        marks_tuples: u32::from(tagged && (translated || source_known) && request.upper_halves_are_equal()),
        map_addresses: u32::from(emulated && inside.family == Family::Ipv6),
        pieces: divisor(table::shape(request.connections).1, FAST_DIVISION),
        frame_timeout_ns: request.frame_timeout_ms.map_or(0, |ms| (ms * 1e6) as u64),
        aaaa_below: below(request.frame.aaaa_share),
        cached_below: below(request.frame.cached_share),
        connections: request.all_connections() + request.flood(),
        drawn_from: guarded,
        drawn: request.connections - 2 * guarded,
        left_per_frame: left_per_frame(request),
        open: divisor(request.connections, FAST_DIVISION),
        draw_key: draw_key(request),
        mark_keys: mark_keys(request.seed, request.mark),
        seal_keys: seal_keys(),
        source_port_first: initiator.source_ports.first,
        destination_port_first: initiator.destination_ports.first,
        source_ports: divisor(initiator.source_ports.count(), largest),
        source_addresses: divisor(initiator.sources(), largest),
        destination_ports: divisor(initiator.destination_ports.count(), largest),
        space,
        tuples,
        readings,
        openings: types::permutation { key: [tuples.key[2], tuples.key[1], tuples.key[0]], inverse: 1, ..tuples },
        sampling: sampling(request),
        pool: request.translation.pool.as_ref().map(addresses).unwrap_or_default(),
        edges: customer_edges(request, largest),
        side: ends(request, macs),
        messages,
        background: background(request, macs),
        background_form: background_form(request),
        modifiers: modifiers(request, macs),
        sizes: sizes(request),
    }
}

/// The modifiers for the frame programs. `macs`: own and gateway's MAC address of each side.
fn modifiers(request: &Request, macs: [([u8; 6], [u8; 6]); SIDES]) -> types::modifiers {
    let Some(modifiers) = request.modifiers() else { return types::modifiers::default() };
    let sides = BOTH.map(|at| broadcast(request, at, macs[at].0));
    let mut group_frames = [0; SIDES];
    if let (Some(groups), Some(phase2)) = (&modifiers.groups, &request.phase2) {
        for stream in phase2.streams() {
            group_frames[stream.side] = (stream.rate * groups.seconds).round() as u64;
        }
    }
    let groups = modifiers.groups.as_ref().map_or(0, |groups| groups.number);
    let background = request.background.as_ref().map_or(1, |background| background.n);
    let apart = modifiers.broadcast_every.unwrap_or(background.into()).max(groups.into());
    types::modifiers {
        broadcast_every: modifiers.broadcast_every.unwrap_or_default(),
        queried: u32::from(modifiers.query_ms.is_some()),
        groups,
        group_frames,
        stagger: (apart << 32).checked_div(groups.into()).unwrap_or(0),
        broadcast: sides.map(|(side, _)| side),
        broadcast_form: sides.map(|(_, form)| form),
    }
}

/// A side's broadcasts: from its first own address to all of the link, as long as its frames (RFC 2544 section 11.1).
fn broadcast(request: &Request, at: usize, own_mac: [u8; 6]) -> (types::side_plan, types::form) {
    let own = [request.initiator.source_addresses.first, request.responder.addresses.first][at];
    let (all, mac, family) = match own {
        IpAddr::V4(_) => (IpAddr::from([255; 4]), [255; 6], Family::Ipv4),
        IpAddr::V6(_) => (IpAddr::from([0xff02, 0, 0, 0, 0, 0, 0, 1]), [0x33, 0x33, 0, 0, 0, 1], Family::Ipv6),
    };
    let native = request.headers()[at].of_native(family);
    let single = |address| AddressRange { first: address, last: address, step: 1, embedded: None };
    let octets = request.untagged_octets(request.frame.size)[at] - request.headers()[at].octets() + native.octets();
    let form = form(native, request.frame.transport, &request.messages()[INITIATOR], octets);
    (side(native, (own_mac, mac), &single(own), &single(all)), form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_division_is_exact() {
        for by in [1, 2, 3, 7, 63, 64, 317, 64512, 65535, 1 << 20, (1 << 30) + 1, (1 << 31) - 1, 1 << 31] {
            let d = divisor(by, FAST_DIVISION);
            for x in
                (0..64).map(|bits| (1_u64 << (bits / 2)) + bits).chain([by - 1, by, by + 1, 2 * by - 1, (1 << 31) - 1])
            {
                if x < 1 << 31 {
                    assert_eq!((x * d.magic) >> d.shift, x / by, "{x} / {by}");
                }
            }
        }
    }

    #[test]
    fn rectangle_holds_the_whole_domain_and_little_more() {
        for size in [1, 2, 3, 5, 100_000, 4_000_000, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 62) - 3] {
            let p = permutation(size, &mut SplitMix64(1));
            assert!(p.rows * p.columns.by >= size && p.rows * p.columns.by - size < p.columns.by, "{size}");
        }
    }

    #[test]
    fn every_trial_has_its_own_keys_and_the_four_tuples_of_its_seed() -> Result<(), String> {
        let text = include_str!("../../trial/examples/nat44-both-phases.json");
        let example: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let plan = |seed: u64, mark: u32| {
            let mut changed = example.clone();
            changed["seed"] = seed.into();
            changed["mark"] = mark.into();
            let request =
                crate::request::parse(changed.to_string().as_bytes()).map_err(|error| format!("{error:?}"))?;
            Ok::<_, String>(build(&request, Default::default()))
        };
        let (first, again, next, other) = (plan(7, 1)?, plan(7, 1)?, plan(7, 2)?, plan(8, 1)?);
        assert_eq!(first.mark_keys, again.mark_keys);
        assert!(first.seal_keys.iter().zip(again.seal_keys).all(|(&key, other)| key != other && key & 1 == 1));
        assert!(first.mark_keys.iter().zip(next.mark_keys).all(|(&key, other)| key != other));
        assert!(first.mark_keys.iter().zip(other.mark_keys).all(|(&key, other)| key != other));
        let tuples = |plan: &types::plan| (plan.tuples.key, plan.readings.key, plan.draw_key);
        assert_eq!(tuples(&first), tuples(&next));
        assert_ne!(tuples(&first), tuples(&other));
        Ok(())
    }

    #[test]
    fn connections_are_numbered_by_position_where_they_fill_the_ranges_and_the_caches_hold_the_table(
    ) -> Result<(), String> {
        let text = include_str!("../../trial/examples/nat44-both-phases.json");
        let example: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let plan = |connections: u64, ports: u32, order: &str, phase2: bool| {
            let mut changed = example.clone();
            changed["connections"] = connections.into();
            changed["initiator"]["source_ports"] = serde_json::json!({"first": 1024, "last": 65535});
            changed["initiator"]["destination_ports"] = serde_json::json!({"first": 1, "last": ports});
            changed["order"] = order.into();
            if !phase2 {
                changed.as_object_mut().and_then(|fields| fields.remove("phase2"));
            }
            let request =
                crate::request::parse(changed.to_string().as_bytes()).map_err(|error| format!("{error:?}"))?;
            Ok::<_, String>(build(&request, Default::default()))
        };
        for (connections, ports, order, phase2, expected) in [
            (100_000, 2, "permutation", true, 1),
            (100_000, 2, "permutation", false, 0),
            (100_000, 4, "permutation", true, 0),
            (4_000_000, 63, "permutation", true, 0),
            (100_000, 2, "increasing", true, 0),
        ] {
            let plan = plan(connections, ports, order, phase2)?;
            assert_eq!(plan.opens_permuted, expected, "{connections} {ports} {order}");
            assert_eq!(plan.tuples.size, if expected == 1 { connections } else { plan.space });
        }
        Ok(())
    }

    #[test]
    fn an_odd_last_octet_is_half_a_word() {
        assert_eq!(sum(&[0, 1, 2]), u64::from(u16::from_ne_bytes([0, 1])) + u64::from(u16::from_ne_bytes([2, 0])));
    }
}
