// SPDX-License-Identifier: Apache-2.0
//! Rules that a JSON schema cannot express, mostly sums over several fields. Their texts are in `engine_rule_texts`.

use std::net::IpAddr;

use super::addresses::{AddressRange, Gateway, PortRange};
use super::bounds::Rate;
use super::customer_edges::CustomerEdges;
use super::engine_rule_texts::{
    AFTER_STEP, ANSWER, AS_MANY, CHOSEN_PORTS, CHOSEN_SIZE, CHURN_GUARD, CHURN_NONE, CHURN_SPACE, CLOSED_ONCE,
    CONNECTIONS, EACH_VLAN, EDGE_DEVICE, EMBEDDED, FAMILY, FLOOD, FOREGROUND, FRAME, GROUPS, LISTED, MAPPING_RULE,
    MAP_T, NAME, NUMBERED, ONCE, ONE_PREFIX, ONE_SEQUENCE, ONE_VLAN, OWN_ADDRESS, PACED, PORT_SETS, QUERIED, RANGE,
    RISING, ROUTER, SAMPLES, SET_PORTS, SPACE, STEP, TWO_PORTS, UNICAST,
};
use super::frame::{FCS, LIVE_FRAME_OCTETS};
use super::model::{
    Background, DelaySamples, Frames, Initiator, Order, Phase2, Reading, Request, Source, Step, Stream, LONGEST_NAME,
    LONGEST_PHASE_SECONDS, MOST_CONNECTIONS,
};
use super::modifiers::Modifiers;
use super::vlan::{Vlan, LAST_VLAN};
use crate::dns::Query;
use crate::failure::{Failure, Outcome};
use crate::family::Family;
use crate::softwire::sharing::Rule as MappingRule;
use crate::transport::Transport;

const MOST_SPACE: u64 = 1 << 62;
/// `with-replacement` draws 32-bit positions.
const MOST_DRAWN_FROM: u64 = 1 << 32;
const MOST_NUMBERED: u64 = 1 << 32;
/// Their list has 1 GiB.
const MOST_LISTED: u64 = 1 << 24;
/// Frames of a sender that the case of a name's letters and the identifier distinguish.
const MOST_IN_CASES: u64 = 1 << 27;

/// Refuse a request that breaks a rule. `schema_rules` have been checked before.
pub fn check(request: &Request) -> Outcome<()> {
    check_sides(request)?;
    if let Some(edges) = &request.initiator.customer_edges {
        check_emulated(&request.initiator, edges, request.responder.family)?;
    }
    if let Some(edges) = &request.responder.customer_edges {
        check_tested(request, edges)?;
    }
    check_connections(request)?;
    check_churn(request)?;
    check_frame(request)?;
    check_phases(request)?;
    if let Some(background) = &request.background {
        check_background(request, background)?;
    }
    check_numbered(request)
}

fn refuse<T>(field: &str, value: impl std::fmt::Display, rule: &str, more: &str) -> Outcome<T> {
    Err(Failure::field(field, value, &[rule, more].concat()))
}

fn check_sides(request: &Request) -> Outcome<()> {
    let (i, r) = (&request.initiator, &request.responder);
    check_range("initiator.source_addresses", &i.source_addresses, i.family)?;
    check_range("initiator.destination_addresses", &i.destination_addresses, i.headers().family)?;
    check_ports("initiator.source_ports", &i.source_ports)?;
    check_ports("initiator.destination_ports", &i.destination_ports)?;
    let numbers = i.destination_ports.count();
    if request.frame.transport == Transport::Icmp && numbers > 1 {
        return refuse("initiator.destination_ports", format!("{numbers} ports"), ONE_SEQUENCE, "");
    }
    check_range("responder.addresses", &r.addresses, r.family)?;
    check_as_many("initiator.destination_addresses", &i.destination_addresses, "responder.addresses", &r.addresses)?;
    if let Some(pool) = &request.translation.pool {
        check_range("translation.pool", pool, r.headers().family)?;
    }
    if let Some(hosts) = &r.destination_addresses {
        check_range("responder.destination_addresses", hosts, r.family)?;
        let name = "initiator.source_addresses";
        check_as_many("responder.destination_addresses", hosts, name, &i.source_addresses)?;
    }
    for (field, interface) in [("initiator.interface", &i.interface), ("responder.interface", &r.interface)] {
        if interface.len() > LONGEST_NAME {
            return refuse(field, interface, NAME, "");
        }
    }
    if (&i.interface, &i.netns) == (&r.interface, &r.netns) {
        return refuse("responder.interface", &r.interface, TWO_PORTS, "");
    }
    if let Some(vlan) = request.frame.initiator_vlan.filter(|vlan| vlan.each_source) {
        check_vlans(request, vlan)?;
    }
    if let Some(vlan) = request.frame.responder_vlan.filter(|vlan| vlan.each_source) {
        return refuse("frame.responder_vlan", format!("{vlan}+"), ONE_VLAN, "");
    }
    check_gateway("initiator.gateway.address", &i.gateway, &i.source_addresses)?;
    check_gateway("responder.gateway.address", &r.gateway, &r.addresses)
}

fn check_vlans(request: &Request, vlan: Vlan) -> Outcome<()> {
    let (sources, flood) = (&request.initiator.source_addresses, request.flood());
    let hosts_have_one = request.initiator.customer_edges.is_none()
        && request.responder.customer_edges.is_none()
        && request.background.is_none();
    if !hosts_have_one {
        return refuse("frame.initiator_vlan", format!("{vlan}+"), ONE_VLAN, "");
    }
    let (hosts, most) = (sources.count() + flood.min(1), u64::from(LAST_VLAN - vlan.id) + 1);
    if hosts > most || sources.step != 1 || sources.embedded.is_some() {
        let more = format!(": {hosts} addresses in steps of {}, and {most} VLANs", sources.step);
        return refuse("frame.initiator_vlan", format!("{vlan}+"), EACH_VLAN, &more);
    }
    Ok(())
}

fn check_emulated(initiator: &Initiator, edges: &CustomerEdges, outside: Family) -> Outcome<()> {
    const FIELD: &str = "initiator.customer_edges";
    if (initiator.family, outside) != (Family::Ipv6, Family::Ipv4) {
        return refuse(FIELD, "{}", MAP_T, "");
    }
    let rule = check_edges(FIELD, edges)?;
    let routers = initiator.source_addresses.count();
    if routers != 1 {
        return refuse("initiator.source_addresses", format!("{routers} addresses"), ROUTER, "");
    }
    let (last, ports) = (initiator.source_ports.last, rule.sets().ports());
    if last > ports {
        return refuse("initiator.source_ports.last", last, SET_PORTS, &format!(": {ports}"));
    }
    Ok(())
}

fn check_tested(request: &Request, edges: &CustomerEdges) -> Outcome<()> {
    const FIELD: &str = "responder.customer_edges";
    let behind_relay = request.responder.family == Family::Ipv4;
    let changed = request.translation.source == Source::Translated && edges.relay.is_none();
    if request.initiator.family != Family::Ipv4 || behind_relay && !changed {
        return refuse(FIELD, "{}", EDGE_DEVICE, "");
    }
    if request.stateless && request.translation.source == Source::Translated {
        return refuse(FIELD, "{}", CHOSEN_PORTS, "");
    }
    check_edges(FIELD, edges)?;
    let hosts = request.initiator.source_addresses.count();
    if edges.number != hosts {
        return refuse(
            &format!("{FIELD}.number"),
            edges.number,
            AS_MANY,
            &format!(" initiator.source_addresses, {hosts}"),
        );
    }
    Ok(())
}

fn check_edges(field: &str, edges: &CustomerEdges) -> Outcome<MappingRule> {
    check_address(&format!("{field}.ipv6_prefix"), edges.ipv6_prefix, Family::Ipv6)?;
    for (name, address) in [("ipv4_prefix", edges.ipv4_prefix), ("first_address", edges.first_address)] {
        check_address(&format!("{field}.{name}"), address, Family::Ipv4)?;
    }
    if let Some(relay) = edges.relay {
        check_address(&format!("{field}.relay"), relay, Family::Ipv6)?;
    }
    let rule = match edges.rule() {
        Ok(rule) => rule,
        Err(reason) => return refuse(field, "{}", MAPPING_RULE, &format!(": {reason}")),
    };
    if edges.per_address() == 0 || edges.last(&rule).is_none() {
        return refuse(&format!("{field}.number"), edges.number, PORT_SETS, "");
    }
    Ok(rule)
}

fn check_ports(field: &str, ports: &PortRange) -> Outcome<()> {
    if ports.first > ports.last {
        return refuse(field, format!("{}-{}", ports.first, ports.last), RISING, "");
    }
    Ok(())
}

fn check_range(field: &str, range: &AddressRange, family: Family) -> Outcome<()> {
    for (end, address) in [("first", range.first), ("last", range.last)] {
        check_address(&format!("{field}.{end}"), address, family)?;
    }
    let (first, last) = (range.number(range.first), range.number(range.last));
    let text = format!("{}-{}", range.first, range.last);
    if range.embedded.is_some() && (family == Family::Ipv4 || !range.is_regular()) {
        return refuse(field, text, EMBEDDED, "");
    }
    if !range.is_regular() {
        return refuse(field, text, ONE_PREFIX, "");
    }
    if first > last {
        return refuse(field, text, RISING, "");
    }
    if (last - first) % range.step != 0 {
        return refuse(&format!("{field}.step"), range.step, STEP, "");
    }
    if (last - first) / range.step >= 1 << 32 {
        return refuse(field, text, RANGE, "");
    }
    Ok(())
}

fn check_address(field: &str, address: IpAddr, family: Family) -> Outcome<()> {
    if address.is_ipv4() != (family == Family::Ipv4) {
        return refuse(field, address, FAMILY, "");
    }
    if address.is_multicast() || address.is_unspecified() || address.is_loopback() {
        return refuse(field, address, UNICAST, "");
    }
    Ok(())
}

fn check_as_many(field: &str, range: &AddressRange, other_field: &str, other: &AddressRange) -> Outcome<()> {
    let (here, there) = (range.count(), other.count());
    if here != there {
        return refuse(field, format!("{here} addresses"), AS_MANY, &format!(" {other_field}, {there}"));
    }
    Ok(())
}

fn check_gateway(field: &str, gateway: &Gateway, own: &AddressRange) -> Outcome<()> {
    match gateway.address {
        Some(address) if own.holds(address) => refuse(field, address, OWN_ADDRESS, ""),
        Some(address) if address.is_ipv4() != own.first.is_ipv4() => refuse(field, address, FAMILY, ""),
        _ => Ok(()),
    }
}

fn check_connections(request: &Request) -> Outcome<()> {
    let all = request.all_connections();
    if request.connections_file.is_some() && all > MOST_LISTED {
        return refuse("connections", all, LISTED, "");
    }
    let draws = request.order == Order::WithReplacement;
    let most = if draws { MOST_DRAWN_FROM } else { MOST_SPACE };
    match request.space().filter(|&space| space <= most) {
        None => refuse("initiator", "{}", SPACE, &format!(", more than {most}: narrow them")),
        Some(space) if !draws && space < request.connections => {
            refuse("connections", request.connections, CONNECTIONS, &format!(", {space}: widen them or ask for fewer"))
        }
        Some(_) => Ok(()),
    }
}

/// Phase 2 opens connections after those of phase 1, in the same order of four tuples.
fn check_churn(request: &Request) -> Outcome<()> {
    let Some((churn, phase2)) = request.churn() else { return Ok(()) };
    let rate = churn.new_per_second;
    let (opened, least) = (churn.openings(phase2.sending_seconds()), 2 * churn.guarded() + 1);
    if opened == 0 {
        return refuse("phase2.churn.new_per_second", rate, CHURN_NONE, "");
    }
    if request.connections < least {
        let more = format!(": at least {least} at {rate}/s and a guard of {} ms", churn.guard_ms);
        return refuse("connections", request.connections, CHURN_GUARD, &more);
    }
    let most = request.space().unwrap_or(u64::MAX).min(MOST_CONNECTIONS);
    if request.all_connections() > most {
        let (first, all) = (request.connections, request.all_connections());
        let more = format!(
            " {opened} after the first {first}, {all} in all, and there are {most}: widen the ranges, or open fewer"
        );
        return refuse("phase2.churn.new_per_second", rate, CHURN_SPACE, &more);
    }
    churn.flood_per_second.map_or(Ok(()), |rate| check_flood(request, rate))
}

fn check_flood(request: &Request, rate: f64) -> Outcome<()> {
    let refused = |more: &str| refuse("phase2.churn.flood_per_second", rate, FLOOD, more);
    let Initiator { source_addresses, source_ports, destination_ports, destination_addresses, gateway, .. } =
        &request.initiator;
    let one = source_ports.count() * destination_ports.count() * destination_addresses.count();
    let (flood, most) = (request.flood(), one.min(MOST_CONNECTIONS - request.all_connections()));
    if flood == 0 || flood > most {
        return refused(&format!(" {flood}, and there are {most}"));
    }
    let Some(host) = source_addresses.after() else { return refused(" there is no such address") };
    if gateway.address == Some(host) {
        return refused(&format!(" {host} is the gateway's"));
    }
    check_address("initiator.source_addresses.last", host, request.initiator.family)
}

fn check_frame(request: &Request) -> Outcome<()> {
    if let (Some(answer), Some(query)) = (request.frame.answer, request.frame.query) {
        if answer.is_ipv4() != (query == Query::A) {
            return refuse("frame.answer", answer, ANSWER, "");
        }
    }
    let frame = &request.frame;
    for (field, size) in frame.sizes() {
        let frames = request.untagged_octets(size).into_iter().zip(request.headers());
        for ((octets, headers), side) in frames.zip(["Initiator", "Responder"]) {
            let possible = frame.least(headers)..=frame.most(headers);
            if !possible.contains(&octets) {
                let before = FCS + headers.vlan_octets();
                let (least, most) = (possible.start() + before, possible.end() + before);
                let more = format!(": {} octets at the {side}, where {least} to {most} are", octets + before);
                return refuse(field, size, FRAME, &more);
            }
        }
        if field != "frame.size" && (frame.query.is_some() || frame.half_open || frame.closing.is_some()) {
            return refuse(field, size, CHOSEN_SIZE, "");
        }
    }
    Ok(())
}

fn check_phases(request: &Request) -> Outcome<()> {
    if let Some(phase1) = &request.phase1 {
        check_paced("phase1.rate", phase1.rate, request.connections as f64 / phase1.rate)?;
    }
    let Some(phase2) = &request.phase2 else { return Ok(()) };
    if let Some(modifiers) = &phase2.modifiers {
        check_modifiers(request, modifiers)?;
    }
    for Stream { name, rate, frames, .. } in phase2.streams() {
        check_paced(&format!("{name}.rate"), rate, frames as f64 / rate)?;
    }
    if let Some(step) = &phase2.step {
        check_step(step, phase2)?;
    }
    if let Some(stream) = phase2.initiator.as_ref().filter(|_| request.frame.closing.is_some()) {
        let after = phase2.step.as_ref().map_or(0, |step| step.frames(stream.rate));
        // Each period begins with a connection of its own for each sender.
        let senders = request.senders.cpus.len() as u64;
        let each = (stream.frames + after).div_ceil(senders) * senders;
        let closed = if phase2.periods == 1 { stream.frames + after } else { each.saturating_mul(phase2.periods) };
        if closed > request.connections {
            let more = format!(": {closed} of {} connections", request.connections);
            return refuse("phase2.initiator.frames", stream.frames, CLOSED_ONCE, &more);
        }
    }
    if let Some(stream) = phase2.responder.as_ref().filter(|stream| stream.reading_order == Reading::Once) {
        if stream.frames != request.connections {
            let more = format!(": must be {}", request.connections);
            return refuse("phase2.responder.frames", stream.frames, ONCE, &more);
        }
    }
    match &request.delay_samples {
        Some(samples) => check_samples(samples, phase2),
        None => Ok(()),
    }
}

fn check_modifiers(request: &Request, modifiers: &Modifiers) -> Outcome<()> {
    if let Some(groups) = modifiers.groups.as_ref().filter(|groups| u64::from(groups.number) > request.connections) {
        return refuse("phase2.modifiers.groups.number", groups.number, GROUPS, "");
    }
    match modifiers.query_ms.filter(|_| request.initiator.gateway.address.is_none()) {
        Some(query) => refuse("phase2.modifiers.query_ms", query, QUERIED, ""),
        None => Ok(()),
    }
}

fn check_paced(field: &str, value: f64, seconds: f64) -> Outcome<()> {
    if seconds > LONGEST_PHASE_SECONDS as f64 {
        return refuse(field, value, PACED, &format!(": {seconds:.0} s, at most {LONGEST_PHASE_SECONDS} s"));
    }
    Ok(())
}

fn check_step(step: &Step, phase2: &Phase2) -> Outcome<()> {
    for Stream { name, rate, frames, .. } in phase2.streams() {
        let (after, then) = (rate * step.share, step.frames(rate));
        if !Rate::holds(after) || !Frames::holds(then) {
            let more = format!(": {then} frames at {after} frames/s ({name})");
            return refuse("phase2.step.share", step.share, AFTER_STEP, &more);
        }
        let seconds = frames as f64 / rate + step.seconds;
        check_paced("phase2.step.seconds", step.seconds, seconds)?;
    }
    Ok(())
}

fn check_samples(samples: &DelaySamples, phase2: &Phase2) -> Outcome<()> {
    for Stream { name, rate, frames, .. } in phase2.streams() {
        let left = frames.saturating_sub(samples.first(rate));
        if samples.frames > left {
            return refuse("delay_samples.frames", samples.frames, SAMPLES, &format!(" ({name}): at most {left}"));
        }
    }
    Ok(())
}

fn check_background(request: &Request, background: &Background) -> Outcome<()> {
    if background.m >= background.n {
        return refuse("background.m", background.m, FOREGROUND, "");
    }
    check_range("background.initiator_addresses", &background.initiator_addresses, Family::Ipv6)?;
    check_range("background.responder_addresses", &background.responder_addresses, Family::Ipv6)?;
    let size = request.largest_size();
    let octets = request.longest_octets();
    if octets > LIVE_FRAME_OCTETS {
        let more = format!(": {} octets in the background, at most {}", octets + FCS, LIVE_FRAME_OCTETS + FCS);
        return refuse("frame.size", size, FRAME, &more);
    }
    Ok(())
}

/// Where single frames are recorded, each needs a different 32-bit sequence number.
fn check_numbered(request: &Request) -> Outcome<()> {
    let phase2 = request.phase2.as_ref();
    let streams = phase2.into_iter().flat_map(|phase2| {
        phase2.streams().map(|stream| stream.frames + phase2.step.as_ref().map_or(0, |step| step.frames(stream.rate)))
    });
    let longest = streams.chain([request.connections]).max().unwrap_or(0);
    let numbered = request.delay_samples.is_some() || request.record_loss_times || request.record_variation;
    let in_cases = MOST_IN_CASES * request.senders.cpus.len() as u64;
    let most = if request.frame.cached_share.is_some() { in_cases } else { MOST_NUMBERED };
    if (numbered || most < MOST_NUMBERED) && longest >= most {
        let more = format!(": at most {}", most - 1);
        return refuse("phase2", format!("{longest} frames"), NUMBERED, &more);
    }
    Ok(())
}
