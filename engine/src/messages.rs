// SPDX-License-Identifier: Apache-2.0
//! A connection as a list of messages: the frames that may belong to it, in their order. A side sends its first message
//! by schedule. The receiver of a message sends the next one at once if that is a reaction.

use schemars::JsonSchema;
use serde::Serialize;

use crate::dns::Content;
use crate::shared::{INITIATOR, PHASE2_RESPONDER, RESPONDER};

/// Names of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names that the standards use")]
pub enum MessageName {
    Datagram,
    Query,
    Response,
    Request,
    Reply,
}

/// A message of a connection.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its name in results.
    pub name: MessageName,
    /// Sending side.
    pub sender: usize,
    /// Whether the receiver of the message before it sends it at once. Other messages are sent by schedule.
    pub reacts: bool,
    /// What follows the header of the transport; None: tag and padding.
    pub content: Option<Content>,
}

impl Message {
    /// A message with tag and padding that `sender` sends by schedule.
    pub fn scheduled(name: MessageName, sender: usize) -> Self {
        Self { name, sender, reacts: false, content: None }
    }
}

/// Messages of a stream, with their positions: the one that its sender sends by schedule, and all reactions after it.
pub fn of_stream(messages: &[Message], stream: usize) -> impl Iterator<Item = (usize, &Message)> {
    let sender = if stream == PHASE2_RESPONDER { RESPONDER } else { INITIATOR };
    let first = messages.iter().position(|message| message.sender == sender && !message.reacts);
    let from = first.unwrap_or(messages.len());
    let all = messages.iter().enumerate().skip(from);
    all.take_while(move |(at, message)| *at == from || message.reacts)
}
