// SPDX-License-Identifier: Apache-2.0
//! A connection as a list of messages: the frames that may belong to it, in their order. A stream sends its message by
//! schedule. The receiver of a message sends the next one at once if that is a reaction.

use schemars::JsonSchema;
use serde::Serialize;

use crate::dns::Content;
use crate::shared::STREAMS;

/// Names of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names that the standards use")]
pub enum MessageName {
    Datagram,
    Query,
    Response,
    Request,
    Reply,
    Syn,
    SynAck,
    Ack,
    Fin,
    FinAck,
    Rst,
    LastAck,
    Segment,
}

/// A message of a connection.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its name in results.
    pub name: MessageName,
    /// Sending side.
    pub sender: usize,
    /// Streams that send it by schedule. None: it is a reaction, which the receiver of the message before it sends at once.
    pub streams: &'static [usize],
    /// What follows the header of the transport.
    pub payload: Payload,
    /// Its place in the plan of the frame programs.
    pub place: usize,
    /// TCP: sequence and acknowledgment number, relative to the initial ones of its sender and of the peer.
    pub numbers: (u32, u32),
}

/// What follows the header of the transport.
#[derive(Debug, Clone)]
pub enum Payload {
    /// The tag, and padding up to the frame size.
    Tagged,
    /// A DNS message.
    Dns(Content),
    /// This number of octets: the header carries what the tag carries in other frames.
    Untagged(u32),
}

impl Message {
    /// A message with tag and padding.
    pub fn tagged(name: MessageName, sender: usize, streams: &'static [usize]) -> Self {
        Self { name, sender, streams, payload: Payload::Tagged, place: sender, numbers: (0, 0) }
    }

    /// Whether the receiver of the message before it sends it at once.
    pub fn reacts(&self) -> bool {
        self.streams.is_empty()
    }
}

/// Messages of a stream, with their positions: the one that it sends by schedule, and all reactions after it.
pub fn of_stream(messages: &[Message], stream: usize) -> impl Iterator<Item = (usize, &Message)> {
    let first = messages.iter().position(|message| message.streams.contains(&stream));
    let from = first.unwrap_or(messages.len());
    let all = messages.iter().enumerate().skip(from);
    all.take_while(move |(at, message)| *at == from || message.reacts())
}

/// Whether a reaction follows the message at this position.
pub fn followed(messages: &[Message], at: usize) -> bool {
    messages.get(at + 1).is_some_and(Message::reacts)
}

/// Streams of whose connections the message at this position is a part, a bit each.
pub fn streams_with(messages: &[Message], at: usize) -> u32 {
    let part = |stream: &usize| of_stream(messages, *stream).any(|(other, _)| other == at);
    (0..STREAMS).filter(part).fold(0, |bits, stream| bits | 1 << stream)
}
