// SPDX-License-Identifier: Apache-2.0
//! Rules between fields that a JSON schema can express: each is written here both in Rust and as a schema. The others are
//! in `engine_rules`.

use serde_json::{json, Value};

use super::churn::Leave;
use super::frame::Frame;
use super::model::{Order, Reading, Request};
use crate::dns::Query;
use crate::failure::{Failure, Outcome};
use crate::transport::Transport;

/// One rule: in words, in JSON schema, and in Rust.
pub struct Rule {
    /// Field named in the refusal, with dots between names.
    pub field: &'static str,
    /// Text of the refusal.
    pub text: &'static str,
    /// The rule as a schema of the whole request.
    pub schema: fn() -> Value,
    /// The field's value in the refusal; None where the request keeps the rule.
    broken: fn(&Request) -> Option<&'static str>,
}

/// All rules, in the order in which they are checked.
pub const SCHEMA_RULES: [Rule; 42] = [
    Rule {
        field: "phase1",
        text: "only a stateless trial has none",
        schema: || stateful(json!({"required": ["phase1"]})),
        broken: |request| (!request.stateless && request.phase1.is_none()).then_some("missing"),
    },
    Rule {
        field: "phase1",
        text: "a stateless trial has none but with frame.cached_share: leave it out",
        schema: || {
            let asked = json!({"properties": {"frame": {"required": ["cached_share"]}}});
            stateless(json!({"if": asked, "else": {"properties": {"phase1": false}}}))
        },
        broken: |request| {
            let asked = request.frame.cached_share.is_some();
            (request.stateless && request.phase1.is_some() && !asked).then_some("{}")
        },
    },
    Rule {
        field: "phase2",
        text: "a stateless trial needs it",
        schema: || stateless(json!({"required": ["phase2"]})),
        broken: |request| (request.stateless && request.phase2.is_none()).then_some("missing"),
    },
    Rule {
        field: "phase2",
        text: "at least one side must send; leave phase2 out otherwise",
        schema: || at("phase2", either("initiator", "responder")),
        broken: |request| {
            let phase2 = request.phase2.as_ref()?;
            (phase2.initiator.is_none() && phase2.responder.is_none()).then_some("{}")
        },
    },
    Rule {
        field: "initiator.gateway",
        text: "needs mac or address",
        schema: || at("initiator.gateway", either("mac", "address")),
        broken: |request| {
            let gateway = &request.initiator.gateway;
            (gateway.mac.is_none() && gateway.address.is_none()).then_some("{}")
        },
    },
    Rule {
        field: "responder.gateway",
        text: "needs mac or address",
        schema: || at("responder.gateway", either("mac", "address")),
        broken: |request| {
            let gateway = &request.responder.gateway;
            (gateway.mac.is_none() && gateway.address.is_none()).then_some("{}")
        },
    },
    Rule {
        field: "responder.destination_addresses",
        text: "only for stateless trials: otherwise they are learned",
        schema: || stateful(at("responder.destination_addresses", json!(false))),
        broken: |request| (!request.stateless && request.responder.destination_addresses.is_some()).then_some("{}"),
    },
    Rule {
        field: "responder.destination_addresses",
        text: "needed in a stateless trial whose families differ",
        schema: || {
            let both = |family| {
                json!({"properties": {
                    "initiator": {"properties": {"family": {"const": family}}},
                    "responder": {"properties": {"family": {"const": family}}},
                }})
            };
            let given = at("responder", json!({"required": ["destination_addresses"]}));
            stateless(json!({"anyOf": [both("ipv4"), both("ipv6"), given, with_edges()]}))
        },
        broken: |request| {
            let differ = request.initiator.family != request.responder.family;
            let known = request.responder.destination_addresses.is_some() || has_edges(request);
            (request.stateless && differ && !known).then_some("missing")
        },
    },
    Rule {
        field: "responder.destination_addresses",
        text: "follow from customer_edges: leave them out",
        schema: || json!({"if": with_edges(), "then": at("responder.destination_addresses", json!(false))}),
        broken: |request| {
            let both = has_edges(request) && request.responder.destination_addresses.is_some();
            both.then_some("{}")
        },
    },
    Rule {
        field: "responder.customer_edges",
        text: "the Initiator emulates customer edges, too: leave out one of them",
        schema: || {
            let edges = at("initiator", json!({"required": ["customer_edges"]}));
            json!({"if": edges, "then": at("responder.customer_edges", json!(false))})
        },
        broken: |request| {
            let both = request.initiator.customer_edges.is_some() && request.responder.customer_edges.is_some();
            both.then_some("{}")
        },
    },
    Rule {
        field: "phase2.responder.reading_order",
        text: "a stateless trial has no state table to read: leave it out",
        schema: || stateless(at("phase2.responder.reading_order", json!({"const": "pseudorandom"}))),
        broken: |request| match request.phase2.as_ref()?.responder.as_ref()?.reading_order {
            Reading::Increasing if request.stateless => Some("increasing"),
            Reading::Once if request.stateless => Some("once"),
            _ => None,
        },
    },
    Rule {
        field: "phase2.step",
        text: "reading order once leaves nothing to send after a step",
        schema: || reading_once(at("phase2.step", json!(false))),
        broken: |request| {
            let phase2 = request.phase2.as_ref()?;
            (phase2.step.is_some() && phase2.reads_once()).then_some("{}")
        },
    },
    Rule {
        field: "phase2.periods",
        text: "several periods have counts only: leave out the other records",
        schema: || {
            let records = ["record_delays", "record_loss_times", "record_receiver_time"];
            let wanted = |name: &str| json!({"properties": {name: {"const": true}}, "required": [name]});
            let any: Vec<Value> = records.into_iter().map(wanted).collect();
            json!({"if": {"anyOf": any}, "then": at("phase2.periods", json!({"const": 1}))})
        },
        broken: |request| {
            let several = request.phase2.as_ref()?.periods > 1;
            let recorded = request.record_delays || request.record_loss_times || request.record_receiver_time;
            (several && recorded).then_some("above 1")
        },
    },
    Rule {
        field: "record_variation",
        text: "differences of delays need record_delays",
        schema: || {
            let wanted = json!({"properties": {"record_variation": {"const": true}}, "required": ["record_variation"]});
            let timed = json!({"properties": {"record_delays": {"const": true}}, "required": ["record_delays"]});
            json!({"if": wanted, "then": timed})
        },
        broken: |request| (request.record_variation && !request.record_delays).then_some("true"),
    },
    Rule {
        field: "delay_samples",
        text: "needs record_delays, and no record_variation: samples are not consecutive",
        schema: || {
            let timed = json!({"record_delays": {"const": true}, "record_variation": {"const": false}});
            given("delay_samples", json!({"properties": timed, "required": ["record_delays"]}))
        },
        broken: |request| {
            let fits = request.record_delays && !request.record_variation;
            (request.delay_samples.is_some() && !fits).then_some("{}")
        },
    },
    Rule {
        field: "delay_samples",
        text: "are frames of phase 2: there is none",
        schema: || given("delay_samples", json!({"required": ["phase2"]})),
        broken: |request| (request.delay_samples.is_some() && request.phase2.is_none()).then_some("{}"),
    },
    Rule {
        field: "background",
        text: "is part of phase 2: there is none",
        schema: || given("background", json!({"required": ["phase2"]})),
        broken: |request| (request.background.is_some() && request.phase2.is_none()).then_some("{}"),
    },
    Rule {
        field: "background",
        text: "reading order once leaves no frames for it",
        schema: || reading_once(json!({"properties": {"background": false}})),
        broken: |request| {
            let once = request.phase2.as_ref()?.reads_once();
            (request.background.is_some() && once).then_some("{}")
        },
    },
    Rule {
        field: "phase2.modifiers",
        text: "are of one period of pseudorandom frames, without step, churn, frame.query and delay_samples",
        schema: || {
            let stream = json!({"properties": {"reading_order": {"const": "pseudorandom"}}});
            let phase2 =
                json!({"properties": {"responder": stream, "step": false, "churn": false, "periods": {"const": 1}}});
            let frame = json!({"properties": {"query": false}});
            let all = json!({"frame": frame, "phase2": phase2, "delay_samples": false});
            let has = json!({"properties": {"phase2": {"required": ["modifiers"]}}, "required": ["phase2"]});
            json!({"if": has, "then": {"properties": all}})
        },
        broken: |request| {
            request.modifiers()?;
            let phase2 = request.phase2.as_ref()?;
            let random = phase2.responder.as_ref().is_none_or(|stream| stream.reading_order == Reading::Pseudorandom);
            let plain = phase2.step.is_none() && phase2.churn.is_none() && phase2.periods == 1;
            let asked = request.frame.query.is_some();
            (!random || !plain || asked || request.delay_samples.is_some()).then_some("{}")
        },
    },
    Rule {
        field: "phase2.modifiers",
        text: "only groups begin with transport icmp and tcp: leave broadcast_every and query_ms out",
        schema: || {
            without_udp(&at("phase2.modifiers", json!({"properties": {"broadcast_every": false, "query_ms": false}})))
        },
        broken: |request| {
            let modifiers = request.modifiers()?;
            let beside = modifiers.broadcast_every.is_some() || modifiers.query_ms.is_some();
            (request.frame.transport != Transport::Udp && beside).then_some("{}")
        },
    },
    Rule {
        field: "phase2.responder",
        text: "with frame.query it only responds: leave it out",
        schema: || with_query(at("phase2.responder", json!(false))),
        broken: |request| {
            let responder = request.phase2.as_ref()?.responder.as_ref();
            (request.frame.query.is_some() && responder.is_some()).then_some("{}")
        },
    },
    Rule {
        field: "frame.handed_on",
        text: "only queries can be: name frame.query",
        schema: || {
            let wanted = json!({"properties": {"handed_on": {"const": true}}, "required": ["handed_on"]});
            at("frame", json!({"if": wanted, "then": {"required": ["query"]}}))
        },
        broken: |request| (request.frame.handed_on && request.frame.query.is_none()).then_some("true"),
    },
    Rule {
        field: "frame.resolved",
        text: "only queries of a stateless trial can be, and none that are handed on",
        schema: || {
            let wanted = json!({"properties": {"resolved": {"const": true}}, "required": ["resolved"]});
            let frame = json!({"properties": {"handed_on": {"const": false}}, "required": ["query"]});
            let then = json!({"properties": {"stateless": {"const": true}, "frame": frame}, "required": ["stateless"]});
            json!({"if": {"properties": {"frame": wanted}, "required": ["frame"]}, "then": then})
        },
        broken: |request| {
            let Frame { query, handed_on, resolved, .. } = request.frame;
            let possible = query.is_some() && request.stateless && !handed_on;
            (resolved && !possible).then_some("true")
        },
    },
    Rule {
        field: "frame.aaaa_share",
        text: "needs queries of type aaaa that the device answers: name frame.resolved",
        schema: || {
            let resolved = json!({"resolved": {"const": true}, "query": {"const": "aaaa"}});
            let then = json!({"properties": resolved, "required": ["resolved", "query"]});
            at("frame", json!({"if": {"required": ["aaaa_share"]}, "then": then}))
        },
        broken: |request| {
            let Frame { query, resolved, aaaa_share, .. } = request.frame;
            let possible = resolved && query == Some(Query::Aaaa);
            (aaaa_share.is_some() && !possible).then_some("given")
        },
    },
    Rule {
        field: "frame.cached_share",
        text: "needs queries that the device answers, phase 1, and no record_delays: name frame.resolved and phase1",
        schema: || {
            let frame = json!({"properties": {"resolved": {"const": true}}, "required": ["resolved"]});
            let then = json!({"frame": frame, "record_delays": {"const": false}});
            let asked = json!({"properties": {"frame": {"required": ["cached_share"]}}, "required": ["frame"]});
            json!({"if": asked, "then": {"properties": then, "required": ["phase1"]}})
        },
        broken: |request| {
            let possible = request.frame.resolved && request.phase1.is_some() && !request.record_delays;
            (request.frame.cached_share.is_some() && !possible).then_some("given")
        },
    },
    Rule {
        field: "frame.answer",
        text: "only queries have one: name frame.query",
        schema: || at("frame", json!({"if": {"required": ["answer"]}, "then": {"required": ["query"]}})),
        broken: |request| (request.frame.answer.is_some() && request.frame.query.is_none()).then_some("{}"),
    },
    Rule {
        field: "frame.query",
        text: "is of transport udp: leave it out",
        schema: || without_udp(&at("frame.query", json!(false))),
        broken: |request| {
            let name = request.frame.query.map(|query| match query {
                Query::A => "a",
                Query::Aaaa => "aaaa",
            });
            name.filter(|_| request.frame.transport != Transport::Udp)
        },
    },
    Rule {
        field: "background",
        text: "is of transport udp: leave it out",
        schema: || without_udp(&json!({"properties": {"background": false}})),
        broken: |request| (request.background.is_some() && request.frame.transport != Transport::Udp).then_some("{}"),
    },
    Rule {
        field: "frame.half_open",
        text: "is of transport tcp, with a phase 1 and without frame.closing: leave it out",
        schema: || {
            let tcp =
                json!({"properties": {"transport": {"const": "tcp"}, "closing": false}, "required": ["transport"]});
            with_half_open(json!({"properties": {"frame": tcp, "stateless": {"const": false}}}))
        },
        broken: |request| {
            let Frame { half_open, transport, ref closing, .. } = request.frame;
            let possible = transport == Transport::Tcp && closing.is_none() && !request.stateless;
            (half_open && !possible).then_some("true")
        },
    },
    Rule {
        field: "phase2",
        text: "with frame.half_open the Responder alone sends, in reading order once and in one period",
        schema: || {
            let once = json!({"properties": {"reading_order": {"const": "once"}}, "required": ["reading_order"]});
            let alone = json!({"initiator": false, "responder": once, "periods": {"const": 1}});
            with_half_open(json!({"properties": {"phase2": {"properties": alone}}}))
        },
        broken: |request| {
            let phase2 = request.phase2.as_ref().filter(|_| request.frame.half_open)?;
            let once = phase2.responder.as_ref().is_some_and(|stream| stream.reading_order == Reading::Once);
            (!once || phase2.initiator.is_some() || phase2.periods > 1).then_some("{}")
        },
    },
    Rule {
        field: "frame.closing",
        text: "is of transport tcp: leave it out",
        schema: || {
            let tcp = json!({"properties": {"transport": {"const": "tcp"}}, "required": ["transport"]});
            at("frame", json!({"if": tcp, "else": {"properties": {"closing": false}}}))
        },
        broken: |request| {
            (request.frame.closing.is_some() && request.frame.transport != Transport::Tcp).then_some("{}")
        },
    },
    Rule {
        field: "frame.closing",
        text: "closes connections of phase 1, and a stateless trial has none: leave it out",
        schema: || stateless(at("frame.closing", json!(false))),
        broken: |request| (request.frame.closing.is_some() && request.stateless).then_some("{}"),
    },
    Rule {
        field: "phase2",
        text: "with frame.closing.request_octets connections are closed in phase 1: leave it out",
        schema: || {
            let closing = json!({"required": ["request_octets"]});
            let frame = json!({"properties": {"closing": closing}, "required": ["closing"]});
            let wanted = json!({"properties": {"frame": frame}, "required": ["frame"]});
            json!({"if": wanted, "then": {"properties": {"phase2": false}}})
        },
        broken: |request| {
            let transactions = request.frame.closing.is_some_and(|closing| closing.request_octets.is_some());
            (transactions && request.phase2.is_some()).then_some("{}")
        },
    },
    Rule {
        field: "phase2.responder",
        text: "with frame.closing it only reacts: leave it out",
        schema: || {
            let frame = json!({"properties": {"frame": {"required": ["closing"]}}, "required": ["frame"]});
            json!({"if": frame, "then": at("phase2.responder", json!(false))})
        },
        broken: |request| {
            let responder = request.phase2.as_ref()?.responder.as_ref();
            (request.frame.closing.is_some() && responder.is_some()).then_some("{}")
        },
    },
    Rule {
        field: "order",
        text: "with transport tcp each four tuple is opened once: use another",
        schema: || {
            let others = json!({"enum": ["permutation", "increasing", "decreasing"]});
            with_transport(&json!({"const": "tcp"}), &json!({"properties": {"order": others}}))
        },
        broken: |request| {
            let twice = request.frame.transport == Transport::Tcp && request.order == Order::WithReplacement;
            twice.then_some("with-replacement")
        },
    },
    Rule {
        field: "background",
        text: "is not possible with frame.query: leave it out",
        schema: || with_query(json!({"properties": {"background": false}})),
        broken: |request| (request.frame.query.is_some() && request.background.is_some()).then_some("{}"),
    },
    Rule {
        field: "phase2.churn",
        text: "is of plain frames over connections of phase 1, one for each four tuple: leave it out",
        schema: || {
            let plain = json!({"properties": {"query": false, "closing": false, "half_open": {"const": false}}});
            let once = json!({"enum": ["permutation", "increasing", "decreasing"]});
            let all = json!({"stateless": {"const": false}, "order": once, "frame": plain, "background": false});
            with_churn(&json!({"properties": all}))
        },
        broken: |request| {
            request.churn()?;
            let Frame { query, closing, half_open, .. } = &request.frame;
            let other = query.is_some() || closing.is_some() || *half_open || request.background.is_some();
            (other || request.stateless || request.order == Order::WithReplacement).then_some("{}")
        },
    },
    Rule {
        field: "phase2.churn",
        text: "goes with reading order pseudorandom, in one period without a step: leave it out",
        schema: || {
            let drawn = json!({"properties": {"reading_order": {"const": "pseudorandom"}}});
            let phase2 = json!({"step": false, "periods": {"const": 1}, "responder": drawn});
            with_churn(&json!({"properties": {"phase2": {"properties": phase2}}}))
        },
        broken: |request| {
            let (_, phase2) = request.churn()?;
            let drawn = phase2.responder.as_ref().is_none_or(|stream| stream.reading_order == Reading::Pseudorandom);
            (!drawn || phase2.step.is_some() || phase2.periods > 1).then_some("{}")
        },
    },
    Rule {
        field: "phase2.churn.leave",
        text: "must be fin or reset with transport tcp, and silent with others",
        schema: || {
            let leave = |ways: &Value| at("phase2.churn", json!({"properties": {"leave": ways}}));
            let tcp = json!({"properties": {"transport": {"const": "tcp"}}, "required": ["transport"]});
            let frame = json!({"properties": {"frame": tcp}, "required": ["frame"]});
            json!({"if": frame, "then": leave(&json!({"enum": ["fin", "reset"]})), "else": leave(&json!({"const": "silent"}))})
        },
        broken: |request| {
            let (churn, _) = request.churn()?;
            let name = match churn.leave {
                Leave::Silent => "silent",
                Leave::Fin => "fin",
                Leave::Reset => "reset",
            };
            (!churn.leave.fits(request.frame.transport)).then_some(name)
        },
    },
    Rule {
        field: "frame.responder_vlan",
        text: "is not possible where the frames go to the network stack, handed_on and resolved: leave it out",
        schema: || {
            let wanted = |name: &str| json!({"properties": {name: {"const": true}}, "required": [name]});
            let stack = json!({"anyOf": [wanted("handed_on"), wanted("resolved")]});
            at("frame", json!({"if": stack, "then": {"properties": {"responder_vlan": false}}}))
        },
        broken: |request| {
            let stack = request.frame.handed_on || request.frame.resolved;
            (request.frame.responder_vlan.is_some() && stack).then_some("given")
        },
    },
    Rule {
        field: "connections_file",
        text: "lists learned connections: neither of a stateless trial nor of customer edges; leave it out",
        schema: || {
            let without = json!({"not": {"anyOf": [is_stateless(), with_edges()]}});
            given("connections_file", without)
        },
        broken: |request| {
            let unlisted = request.stateless || has_edges(request);
            (unlisted && request.connections_file.is_some()).then_some("a path")
        },
    },
    Rule {
        field: "phase2.churn",
        text: "floods by hosts without customer edges, of transport udp or icmp: leave flood_per_second out",
        schema: || {
            let tcp = json!({"properties": {"transport": {"const": "tcp"}}, "required": ["transport"]});
            let tcp = json!({"properties": {"frame": tcp}, "required": ["frame"]});
            let none = at("phase2.churn", json!({"properties": {"flood_per_second": false}}));
            json!({"if": {"anyOf": [tcp, with_edges()]}, "then": none})
        },
        broken: |request| {
            request.churn()?.0.flood_per_second?;
            (request.frame.transport == Transport::Tcp || has_edges(request)).then_some("{}")
        },
    },
];

/// Refuse a request that breaks a rule.
pub fn check(request: &Request) -> Outcome<()> {
    let broken = SCHEMA_RULES.iter().find_map(|rule| (rule.broken)(request).map(|value| (rule, value)));
    match broken {
        Some((rule, value)) => Err(Failure::field(rule.field, value, rule.text)),
        None => Ok(()),
    }
}

/// Apply a schema to the field at `path`, where the request has it.
fn at(path: &str, schema: Value) -> Value {
    path.rsplit('.').fold(schema, |inner, name| json!({"properties": {name: inner}}))
}

fn has_edges(request: &Request) -> bool {
    request.initiator.customer_edges.is_some() || request.responder.customer_edges.is_some()
}

fn with_edges() -> Value {
    let of = |side| at(side, json!({"required": ["customer_edges"]}));
    json!({"anyOf": [of("initiator"), of("responder")]})
}

fn either(one: &str, other: &str) -> Value {
    json!({"anyOf": [{"required": [one]}, {"required": [other]}]})
}

fn given(field: &str, then: Value) -> Value {
    json!({"if": {"required": [field]}, "then": then})
}

fn stateless(then: Value) -> Value {
    json!({"if": is_stateless(), "then": then})
}

fn stateful(then: Value) -> Value {
    json!({"if": is_stateless(), "else": then})
}

fn is_stateless() -> Value {
    json!({"properties": {"stateless": {"const": true}}, "required": ["stateless"]})
}

fn with_half_open(then: Value) -> Value {
    let frame = json!({"properties": {"half_open": {"const": true}}, "required": ["half_open"]});
    json!({"if": {"properties": {"frame": frame}, "required": ["frame"]}, "then": then})
}

fn with_churn(then: &Value) -> Value {
    let phase2 = json!({"properties": {"phase2": {"required": ["churn"]}}, "required": ["phase2"]});
    json!({"if": phase2, "then": then})
}

fn with_query(then: Value) -> Value {
    let frame = json!({"properties": {"frame": {"required": ["query"]}}, "required": ["frame"]});
    json!({"if": frame, "then": then})
}

fn with_transport(transport: &Value, then: &Value) -> Value {
    let frame = json!({"properties": {"transport": transport}, "required": ["transport"]});
    json!({"if": {"properties": {"frame": frame}, "required": ["frame"]}, "then": then})
}

fn without_udp(then: &Value) -> Value {
    with_transport(&json!({"enum": ["icmp", "tcp"]}), then)
}

fn reading_once(then: Value) -> Value {
    let stream = json!({"properties": {"reading_order": {"const": "once"}}, "required": ["reading_order"]});
    let phase2 = json!({"properties": {"responder": stream}, "required": ["responder"]});
    json!({"if": {"properties": {"phase2": phase2}, "required": ["phase2"]}, "then": then})
}
