// SPDX-License-Identifier: Apache-2.0
//! Texts of the rules that a JSON schema cannot express. The published schema lists them, and each refusal by such a rule
//! contains its text. Any other request that the engine refuses is refused by the schema, too.

/// Defines a constant for each text, and a list of all.
macro_rules! beyond_schema {
    ($($name:ident = $text:literal,)*) => {
        $(pub(super) const $name: &str = $text;)*
        /// All texts.
        pub const ENGINE_RULES: &[&str] = &[$($name,)*];
    };
}

beyond_schema! {
    ADDRESS = "must be an IPv4 or IPv6 address",
    FAMILY = "must be of the side's family",
    UNICAST = "must be a unicast address",
    ONE_PREFIX = "both ends must share the upper 64 bits",
    EMBEDDED = "both ends must embed an IPv4 address behind the same IPv6 prefix (RFC 6052 section 2.2)",
    RISING = "first must not be above last",
    STEP = "must lead from first to last",
    RANGE = "must hold at most 2^32 addresses",
    AS_MANY = "must be as many as",
    NAME = "must be at most 15 octets long",
    TWO_PORTS = "must differ from initiator.interface",
    OWN_ADDRESS = "lies inside the tester's own range",
    SPACE = "the ranges hold too many four tuples",
    CONNECTIONS = "the ranges hold too few four tuples",
    VLAN = "must be a VLAN from 1 to 4094, such as 100, behind a service tag 9.100, or from 100 on 100+",
    EACH_VLAN = "each source address needs a VLAN of its own, up to 4094, and the next address the next VLAN",
    ONE_VLAN = "VLANs of their own have the Initiator's source addresses, without customer_edges and background: name one",
    FRAME = "is not possible on both sides (IPv6 = IPv4 + 20, IPv4 in IPv6 = IPv4 + 40, 4 for each VLAN tag)",
    MIX = "must be at most 8 sizes with whole weights, 64:7,594:4,1518:1, each once, weights at most 1000 in all",
    CHOSEN_SIZE = "needs frames of a chosen size: not queries, half-open or closed connections",
    PACED = "takes longer than can be paced",
    AFTER_STEP = "leads to a rate or a number of frames out of bounds after the step",
    ONCE = "reading order once sends one frame a connection",
    CLOSED_ONCE = "with frame.closing each connection is closed at most once",
    CHURN_SPACE = "each connection needs a four tuple of its own: phase 2 opens as many as",
    CHURN_GUARD = "connections are not open for longer than two guards",
    CHURN_NONE = "opens no connection while the streams send",
    FLOOD = "must open one connection or more, each with a four tuple of the host after the last source address:",
    GROUPS = "must be at most as many as there are connections",
    QUERIED = "needs initiator.gateway.address, which is asked",
    SAMPLES = "too few frames of the stream are due from then on",
    FOREGROUND = "must be less than n: m of n frames are in the foreground",
    MAPPING_RULE = "must be a basic mapping rule (RFC 7597 section 5)",
    PORT_SETS = "the mapping rule has too few port sets",
    SET_PORTS = "a port set has fewer ports",
    ROUTER = "customer edges have one router: must be one address",
    ONE_SEQUENCE = "is the sequence number of transport icmp, which no device has in its table: must be one",
    MAP_T = "customer edges send ipv6, and the Responder speaks ipv4",
    EDGE_DEVICE = "customer edges under test take ipv4; the Responder speaks ipv6, or ipv4 behind their relay: without a relay, and translated",
    CHOSEN_PORTS = "customer edges choose ports, which a stateless trial does not learn",
    ANSWER = "must be of the type that frame.query asks for",
    LISTED = "must be at most 16777216 with connections_file",
    NUMBERED = "too many frames in one stream to be distinguished",
}
