// SPDX-License-Identifier: Apache-2.0
//! Requests: their types, their rules, and how they are read. Reading touches no interface.

mod addresses;
mod beyond;
mod beyond_texts;
mod bounds;
mod comparison;
mod document;
mod frame;
mod model;
mod rules;
mod trial;

pub use addresses::{halves, ipv6, AddressRange, Gateway, Mac, PortRange};
pub use beyond_texts::BEYOND_SCHEMA;
pub use comparison::{parse as parse_comparison, Comparison, Contestant, Quantity, BEYOND_COMPARISON};
pub use document::LONGEST;
pub use frame::{Family, Frame, SideName, Transport, ETHERNET, FCS};
pub use model::{
    Background, DelaySamples, Initiator, InitiatorStream, Limits, Order, Phase1, Phase2, Reading, Request, Responder,
    ResponderStream, Senders, Source, Step, Stream, Translation, VERSION,
};
pub use rules::RULES;
pub use trial::parse;
