// SPDX-License-Identifier: Apache-2.0
//! Requests: types, rules and reading. Nothing here accesses an interface.

mod addresses;
pub(crate) mod bounds;
mod churn;
mod comparison;
mod customer_edges;
mod document;
mod engine_rule_texts;
mod engine_rules;
mod frame;
mod frame_sizes;
mod model;
mod modifiers;
mod schema_rules;
mod trial;
mod vlan;

pub use crate::family::Family;
pub use addresses::{halves, ipv6, AddressRange, Gateway, Mac, PortRange};
pub use churn::{Churn, Leave};
pub use comparison::{parse as parse_comparison, Comparison, Contestant, Quantity, COMPARISON_RULES};
pub use customer_edges::{four, CustomerEdges};
pub use document::LONGEST;
pub use engine_rule_texts::ENGINE_RULES;
pub use frame::{Frame, Headers, SideName, ETHERNET, FCS};
pub use frame_sizes::SizeMix;
pub use model::{
    Background, DelaySamples, Initiator, InitiatorStream, Limits, Order, Phase1, Phase2, Reading, Request, Responder,
    ResponderStream, Senders, Source, Step, Stream, Translation, VERSION,
};
pub use schema_rules::SCHEMA_RULES;
pub use trial::parse;
pub use vlan::Vlan;
