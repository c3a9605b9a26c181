// SPDX-License-Identifier: Apache-2.0
//! Port sets of shared IPv4 addresses, and the IPv6 addresses of their subscribers: RFC 7597 sections 5 and 6, RFC 6052
//! section 2.2.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// Reason why a value is refused, one line without the value's name.
pub type Refusal = String;

/// Division of an IPv4 address's ports into sets (RFC 7597 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSets {
    offset: u8,
    length: u8,
}

impl PortSets {
    /// Port sets of this PSID offset and PSID length, in bits.
    ///
    /// # Errors
    /// Both together have more than the 16 bits of a port, or the offset has all 16.
    pub fn new(offset: u8, length: u8) -> Result<Self, Refusal> {
        if offset > 15 || u16::from(offset) + u16::from(length) > 16 {
            return Err(format!("PSID offset {offset} and PSID length {length}: a port has 16 bits for both"));
        }
        Ok(Self { offset, length })
    }

    /// PSID offset, "a".
    pub const fn offset(self) -> u8 {
        self.offset
    }

    /// PSID length, "k".
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Number of sets of an address.
    pub const fn count(self) -> u32 {
        1 << self.length
    }

    /// Number of ports of a set.
    pub const fn ports(self) -> u32 {
        ((1 << self.offset) - (self.offset > 0) as u32) << self.bits_below()
    }

    const fn bits_below(self) -> u8 {
        16 - self.offset - self.length
    }

    /// The set of a port; None for ports whose offset bits are 0, which are in no set.
    pub fn psid(self, port: u16) -> Option<u16> {
        if self.offset > 0 && port >> (16 - self.offset) == 0 {
            return None;
        }
        let psid = (u32::from(port) >> self.bits_below()) & (self.count() - 1);
        u16::try_from(psid).ok()
    }

    /// The port ranges of a set, in increasing order.
    pub fn ranges(self, psid: u16) -> impl Iterator<Item = RangeInclusive<u16>> {
        let below = u32::from(self.bits_below());
        let of_psid = u32::from(psid) << below;
        let from = u32::from(self.offset > 0);
        (from..1 << self.offset).filter_map(move |upper| {
            let first = upper << (16 - self.offset) | of_psid;
            Some(u16::try_from(first).ok()?..=u16::try_from(first + (1 << below) - 1).ok()?)
        })
    }
}

/// A mapping rule (RFC 7597 section 5): the IPv6 addresses of subscribers with an IPv4 address and a port set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    prefix6: u64,
    prefix6_length: u8,
    prefix4: u32,
    prefix4_length: u8,
    ea_length: u8,
    sets: PortSets,
}

impl Rule {
    /// A rule of an IPv6 prefix, an IPv4 prefix, the length of the embedded address bits, and the port sets.
    ///
    /// # Errors
    /// A prefix has bits after its length, or is longer than its family allows (64 bits for IPv6, because the interface
    /// identifier follows); or the embedded address bits do not fit between them, or are not as many as IPv4 suffix and
    /// PSID have. Their number may be 0 where the IPv4 prefix is a whole address; the PSID is then configured otherwise.
    pub fn new(
        prefix6: (Ipv6Addr, u8),
        prefix4: (Ipv4Addr, u8),
        ea_length: u8,
        sets: PortSets,
    ) -> Result<Self, Refusal> {
        let (whole6, whole4) = (prefix6.0.to_bits(), prefix4.0.to_bits());
        if prefix6.1 > 64 || whole6 & !leading(128, prefix6.1) != 0 {
            return Err(format!("{}/{}: must be a prefix of at most 64 bits, followed by zeros", prefix6.0, prefix6.1));
        }
        if prefix4.1 > 32 || u128::from(whole4) & !leading(32, prefix4.1) != 0 {
            return Err(format!("{}/{}: must be a prefix of at most 32 bits, followed by zeros", prefix4.0, prefix4.1));
        }
        let embedded = 32 - prefix4.1 + sets.length;
        if ea_length != embedded && !(ea_length == 0 && prefix4.1 == 32) {
            return Err(format!(
                "{ea_length} embedded address bits: the IPv4 suffix of {} and the PSID of {} bits make {embedded}",
                32 - prefix4.1,
                sets.length
            ));
        }
        if prefix6.1 + ea_length > 64 {
            return Err(format!(
                "{ea_length} embedded address bits: do not fit between an IPv6 prefix of {} and the interface identifier, \
                 which begins after 64",
                prefix6.1
            ));
        }
        let upper = u64::try_from(whole6 >> 64).unwrap_or_default();
        let (prefix6_length, prefix4_length) = (prefix6.1, prefix4.1);
        Ok(Self { prefix6: upper, prefix6_length, prefix4: whole4, prefix4_length, ea_length, sets })
    }

    /// The port sets.
    pub const fn sets(&self) -> PortSets {
        self.sets
    }

    /// Upper half of the IPv6 prefix.
    pub const fn prefix6(&self) -> u64 {
        self.prefix6
    }

    /// The IPv4 prefix and its mask.
    pub fn prefix4(&self) -> (u32, u32) {
        let mask = u32::try_from(leading(32, self.prefix4_length)).unwrap_or_default();
        (self.prefix4, mask)
    }

    /// Length of the embedded address bits, and their shift in the upper half.
    pub const fn embedded_bits(&self) -> (u8, u8) {
        (self.ea_length, 64 - self.prefix6_length - self.ea_length)
    }

    /// The IPv6 address of the subscriber with a port set of this IPv4 address; None where the rule does not apply.
    pub fn address(&self, address: Ipv4Addr, psid: u16) -> Option<Ipv6Addr> {
        let (prefix, mask) = self.prefix4();
        let whole = address.to_bits();
        if whole & mask != prefix || u32::from(psid) >= self.sets.count() {
            return None;
        }
        let bits = u64::from(whole & !mask) << self.sets.length | u64::from(psid);
        let (length, shift) = self.embedded_bits();
        let upper = self.prefix6 | if length == 0 { 0 } else { bits << shift };
        let lower = u64::from(whole) << 16 | u64::from(psid);
        Some(Ipv6Addr::from_bits(u128::from(upper) << 64 | u128::from(lower)))
    }
}

/// A BR's prefix for IPv4-embedded IPv6 addresses (RFC 7599 section 5.1, RFC 6052 section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayPrefix {
    prefix: u128,
    length: u8,
}

impl RelayPrefix {
    /// A prefix of 32, 40, 48, 56, 64 or 96 bits.
    ///
    /// # Errors
    /// It has another length, or bits after its length.
    pub fn new(prefix: Ipv6Addr, length: u8) -> Result<Self, Refusal> {
        let whole = prefix.to_bits();
        if ![32, 40, 48, 56, 64, 96].contains(&length) || whole & !leading(128, length) != 0 {
            return Err(format!(
                "{prefix}/{length}: must be a prefix of 32, 40, 48, 56, 64 or 96 bits, followed by zeros"
            ));
        }
        Ok(Self { prefix: whole, length })
    }

    /// The prefix.
    pub const fn prefix(self) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.prefix)
    }

    /// Its length in bits.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// The IPv6 address that embeds an IPv4 address, around bits 64 to 71, which are 0.
    pub fn embedded(self, address: Ipv4Addr) -> Ipv6Addr {
        let after_prefix = u128::from(address.to_bits()) << (96 - self.length);
        let (upper, lower) = (after_prefix & leading(128, 64), after_prefix & !leading(128, 64));
        let placed = if self.length == 96 { lower } else { upper | lower >> 8 };
        Ipv6Addr::from_bits(self.prefix | placed)
    }
}

/// The upper `length` of `width` bits.
fn leading(width: u32, length: u8) -> u128 {
    let all = u128::MAX >> (128 - width);
    all & !all.checked_shr(u32::from(length)).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn rule(prefix6: (&str, u8), prefix4: (&str, u8), ea: u8, sets: PortSets) -> Rule {
        Rule::new((prefix6.0.parse().unwrap(), prefix6.1), (prefix4.0.parse().unwrap(), prefix4.1), ea, sets).unwrap()
    }

    fn address(rule: Rule, address: &str, psid: u16) -> String {
        rule.address(address.parse().unwrap(), psid).unwrap().to_string()
    }

    /// RFC 7597 and RFC 7599, appendix A, example 1.
    #[test]
    fn the_standards_basic_mapping_rule() {
        let sets = PortSets::new(6, 8).unwrap();
        let rule = rule(("2001:db8::", 40), ("192.0.2.0", 24), 16, sets);
        assert_eq!(address(rule, "192.0.2.18", 0x34), "2001:db8:12:3400:0:c000:212:34");
        let ranges: Vec<_> = sets.ranges(0x34).collect();
        assert_eq!(ranges.len(), 63);
        assert_eq!(ranges[..2], [1232..=1235, 2256..=2259]);
        assert_eq!(ranges[61..], [63696..=63699, 64720..=64723]);
    }

    /// The same, examples 2 and 3: a frame from 10.2.3.4 port 80 to 192.0.2.18 port 1232, and its answer.
    #[test]
    fn the_standards_forwarding_rule() {
        let sets = PortSets::new(6, 8).unwrap();
        let rule = rule(("2001:db8::", 40), ("192.0.2.0", 24), 16, sets);
        let psid = sets.psid(1232).unwrap();
        assert_eq!(psid, 0x34);
        assert_eq!(address(rule, "192.0.2.18", psid), "2001:db8:12:3400:0:c000:212:34");
        let relay = RelayPrefix::new("2001:db8:ffff::".parse().unwrap(), 64).unwrap();
        assert_eq!(relay.embedded("10.2.3.4".parse().unwrap()).to_string(), "2001:db8:ffff:0:a:203:400:0");
    }

    /// The same, example 4: no embedded bits, no sharing.
    #[test]
    fn the_standards_rule_without_sharing() {
        let sets = PortSets::new(6, 0).unwrap();
        let rule = rule(("2001:db8:12:3400::", 56), ("192.0.2.1", 32), 0, sets);
        assert_eq!(address(rule, "192.0.2.1", 0), "2001:db8:12:3400:0:c000:201:0");
        assert_eq!(rule.address("192.0.2.2".parse().unwrap(), 0), None);
    }

    /// The same, example 5: no embedded bits; the PSID is configured by DHCPv6 (with erratum 5324).
    #[test]
    fn the_standards_rule_with_sharing_told() {
        let sets = PortSets::new(6, 8).unwrap();
        let rule = rule(("2001:db8:12:3400::", 56), ("192.0.2.18", 32), 0, sets);
        assert_eq!(address(rule, "192.0.2.18", 0x34), "2001:db8:12:3400:0:c000:212:34");
    }

    /// RFC 6052 section 2.4.
    #[test]
    fn the_standards_embedded_addresses() {
        for (prefix, length, whole) in [
            ("2001:db8::", 32, "2001:db8:c000:221::"),
            ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
            ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100:0"),
            ("2001:db8:122:344::", 96, "2001:db8:122:344::c000:221"),
        ] {
            let relay = RelayPrefix::new(prefix.parse().unwrap(), length).unwrap();
            assert_eq!(relay.embedded("192.0.2.33".parse().unwrap()).to_string(), whole);
        }
    }

    #[test]
    fn every_port_is_in_exactly_one_set_or_below_the_offset() {
        for offset in 0..=15 {
            for length in 0..=16 - offset {
                let sets = PortSets::new(offset, length).unwrap();
                let mut owner = vec![None; 65536];
                for psid in 0..=u16::try_from(sets.count() - 1).unwrap() {
                    for port in sets.ranges(psid).flatten() {
                        assert_eq!(owner[usize::from(port)].replace(psid), None, "{sets:?}: port {port} twice");
                    }
                }
                for port in 0..=u16::MAX {
                    assert_eq!(owner[usize::from(port)], sets.psid(port), "{sets:?}: port {port}");
                    let left_out = offset > 0 && u32::from(port) < 1 << (16 - offset);
                    assert_eq!(sets.psid(port).is_none(), left_out);
                }
            }
        }
    }

    #[test]
    fn every_owner_has_an_address_of_its_own_within_the_prefix() {
        let sets = PortSets::new(4, 5).unwrap();
        let rule = rule(("2001:db8::", 40), ("198.18.0.0", 22), 15, sets);
        let mut seen = std::collections::BTreeSet::new();
        for suffix in 0..1024 {
            let owner = Ipv4Addr::from_bits(0xc612_0000 + suffix);
            for psid in 0..32 {
                let at = rule.address(owner, psid).unwrap();
                assert_eq!(at.octets()[..5], [0x20, 0x01, 0x0d, 0xb8, 0]);
                assert!(seen.insert(at.to_bits() >> 64), "{owner} {psid}: shares its prefix");
            }
        }
        assert_eq!(rule.address("198.18.4.0".parse().unwrap(), 0), None);
        assert_eq!(rule.address("198.18.0.0".parse().unwrap(), 32), None);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_numbers() {
        assert!(PortSets::new(6, 11).unwrap_err().contains("offset 6 and PSID length 11"));
        assert!(PortSets::new(16, 0).is_err());
        let sets = PortSets::new(6, 8).unwrap();
        let refused = |six: (&str, u8), four: (&str, u8), ea| {
            Rule::new((six.0.parse().unwrap(), six.1), (four.0.parse().unwrap(), four.1), ea, sets).unwrap_err()
        };
        assert!(refused(("2001:db8::", 40), ("192.0.2.0", 24), 15).contains("make 16"));
        assert!(refused(("2001:db8::", 49), ("192.0.2.0", 24), 16).contains("do not fit"));
        assert!(refused(("2001:db8::1", 40), ("192.0.2.0", 24), 16).contains("2001:db8::1/40"));
        assert!(refused(("2001:db8::", 65), ("192.0.2.0", 24), 16).contains("at most 64"));
        assert!(refused(("2001:db8::", 40), ("192.0.2.1", 24), 16).contains("192.0.2.1/24"));
        assert!(refused(("2001:db8::", 40), ("192.0.2.0", 33), 16).contains("at most 32"));
        assert!(refused(("2001:db8::", 40), ("192.0.2.0", 24), 0).contains("make 16"));
        assert!(RelayPrefix::new("2001:db8::".parse().unwrap(), 80).is_err());
        assert!(RelayPrefix::new("2001:db8::1".parse().unwrap(), 64).is_err());
    }
}
