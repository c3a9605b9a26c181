// SPDX-License-Identifier: Apache-2.0
//! BPF instructions as far as constants are followed through them (RFC 9669 sections 3 to 5).

/// One of 64 bits; a wide one takes two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Class, operation and kind of operand.
    pub code: u8,
    /// Register that is written, or the left side of a comparison, or where an address is stored to.
    pub to: u8,
    /// Register that is read.
    pub from: u8,
    /// Of a jump or an address.
    pub offset: i16,
    /// Operand that stands in the instruction.
    pub immediate: i32,
}

pub const LDX: u8 = 1;
pub const ST: u8 = 2;
pub const STX: u8 = 3;
pub const ALU: u8 = 4;
pub const JMP: u8 = 5;
pub const JMP32: u8 = 6;
pub const ALU64: u8 = 7;

pub const ADD: u8 = 0x00;
pub const SUB: u8 = 0x10;
pub const MUL: u8 = 0x20;
pub const DIV: u8 = 0x30;
pub const OR: u8 = 0x40;
pub const AND: u8 = 0x50;
pub const LSH: u8 = 0x60;
pub const RSH: u8 = 0x70;
pub const NEG: u8 = 0x80;
pub const MOD: u8 = 0x90;
pub const XOR: u8 = 0xa0;
pub const MOV: u8 = 0xb0;
pub const ARSH: u8 = 0xc0;
pub const END: u8 = 0xd0;

const JA: u8 = 0x00;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;

/// Second operand: a register. Of END: to big-endian.
const BY_REGISTER: u8 = 0x08;
/// Loads 64 bits, whose upper half stands in the place behind.
const WIDE: u8 = 0x18;
const MODE: u8 = 0xe0;
const MEMORY: u8 = 0x60;
const ATOMIC: u8 = 0xc0;
const FETCH: i32 = 0x01;
const COMPARE_AND_EXCHANGE: i32 = 0xf1;

/// A jump to the next place: does nothing, and the verifier takes it out.
pub const NOTHING: Instruction = Instruction { code: JMP | JA, to: 0, from: 0, offset: 0, immediate: 0 };

/// Where a program may go on.
pub enum Next {
    /// Nowhere.
    End,
    /// There, by the distance in places.
    There(isize),
    /// In the next place or there.
    Either(isize),
}

impl Instruction {
    /// The lowest bits of its code.
    pub fn class(self) -> u8 {
        self.code & 7
    }

    /// The highest bits of its code.
    pub fn operation(self) -> u8 {
        self.code & 0xf0
    }

    /// Whether it computes.
    pub fn computes(self) -> bool {
        matches!(self.class(), ALU | ALU64)
    }

    /// Whether it compares and may jump.
    pub fn compares(self) -> bool {
        matches!(self.class(), JMP | JMP32) && !matches!(self.operation(), JA | CALL | EXIT)
    }

    /// Whether a computation's or a comparison's second operand is a register.
    pub fn by_register(self) -> bool {
        self.code & BY_REGISTER != 0 && !(self.computes() && self.operation() == END)
    }

    /// Whether it makes a register what stands in it.
    pub fn is_constant(self) -> bool {
        self.computes() && self.operation() == MOV && self.code & BY_REGISTER == 0
    }

    /// Whether it takes two places.
    pub fn wide(self) -> bool {
        self.code == WIDE
    }

    /// Whether it reads memory into a register, without extending the sign.
    pub fn loads(self) -> bool {
        self.class() == LDX && self.code & MODE == MEMORY
    }

    /// Whether it writes a register into memory and does nothing else.
    pub fn stores(self) -> bool {
        self.class() == STX && self.code & MODE == MEMORY
    }

    /// Whether it is a call.
    pub fn calls(self) -> bool {
        self.class() == JMP && self.operation() == CALL
    }

    /// Octets that are loaded or stored.
    pub fn octets(self) -> usize {
        match self.code & 0x18 {
            0x00 => 4,
            0x08 => 2,
            0x10 => 1,
            _ => 8,
        }
    }

    /// The same with an operand that stands in it.
    pub fn with_immediate(self, immediate: i32) -> Self {
        Self { code: self.code & !BY_REGISTER, from: 0, immediate, ..self }
    }

    /// A store of an operand that stands in it, in place of a register's.
    pub fn storing(self, immediate: i32) -> Self {
        Self { code: self.code & !7 | ST, from: 0, immediate, ..self }
    }

    /// An instruction that makes a register this; None where no single one does.
    pub fn load(to: u8, value: u64) -> Option<Self> {
        let plain = |code, immediate| Some(Self { code, to, from: 0, offset: 0, immediate });
        match (u32::try_from(value), i32::try_from(value as i64)) {
            (Ok(low), _) => plain(ALU | MOV, low as i32),
            (_, Ok(low)) => plain(ALU64 | MOV, low),
            _ => None,
        }
    }

    /// Where it may go on.
    pub fn next(self) -> Next {
        match (self.class(), self.operation()) {
            (JMP, EXIT) => Next::End,
            (JMP, JA) => Next::There(1 + self.offset as isize),
            (JMP32, JA) => Next::There(1 + self.immediate as isize),
            _ if self.compares() => Next::Either(1 + self.offset as isize),
            _ => Next::There(if self.wide() { 2 } else { 1 }),
        }
    }

    /// Registers it reads, a bit each; a call may read all that hand arguments over.
    pub fn reads(self) -> u16 {
        let (to, from) = (1 << self.to, 1 << self.from);
        let second = if self.by_register() { from } else { 0 };
        match self.class() {
            ALU | ALU64 if self.operation() == MOV => second,
            ALU | ALU64 => to | second,
            LDX => from,
            ST => to,
            STX if self.code & MODE == ATOMIC => to | from | 1,
            STX => to | from,
            JMP if self.operation() == EXIT => 1,
            JMP if self.operation() == CALL => 0b11_1110,
            JMP | JMP32 if self.compares() => to | second,
            _ => 0,
        }
    }

    /// Registers whose content is another one afterwards, a bit each.
    pub fn writes(self) -> u16 {
        match self.class() {
            ALU | ALU64 | LDX => 1 << self.to,
            STX if self.code & MODE == ATOMIC && self.immediate == COMPARE_AND_EXCHANGE => 1,
            STX if self.code & MODE == ATOMIC && self.immediate & FETCH != 0 => 1 << self.from,
            JMP if self.calls() => 0b11_1111,
            _ if self.wide() => 1 << self.to,
            // What reads packets in the old way answers in the first and spoils those of a call.
            0 => 0b11_1111,
            _ => 0,
        }
    }

    /// What a computation makes of its operands; None where it is not followed.
    pub fn compute(self, left: u64, right: u64) -> Option<u64> {
        if self.operation() == END {
            return (self.class() == ALU).then(|| self.ordered(left)).flatten();
        }
        if self.offset != 0 {
            return None; // signed ones
        }
        if self.class() == ALU64 {
            return compute64(self.operation(), left, right);
        }
        let (low, second) = (left as u32, right as u32);
        let found = match self.operation() {
            LSH => low.wrapping_shl(second),
            RSH => low.wrapping_shr(second),
            ARSH => (low as i32).wrapping_shr(second) as u32,
            operation => compute64(operation, low.into(), second.into())? as u32,
        };
        Some(found.into())
    }

    /// Order of octets changed, on a machine that has the lowest first.
    fn ordered(self, value: u64) -> Option<u64> {
        let big = self.code & BY_REGISTER != 0;
        match (self.immediate, cfg!(target_endian = "little")) {
            (16, true) => Some(u64::from(if big { (value as u16).swap_bytes() } else { value as u16 })),
            (32, true) => Some(u64::from(if big { (value as u32).swap_bytes() } else { value as u32 })),
            (64, true) => Some(if big { value.swap_bytes() } else { value }),
            _ => None,
        }
    }

    /// Whether a comparison of these jumps; None where it is not followed.
    pub fn jumps(self, left: u64, right: u64) -> Option<bool> {
        let (left, right, signed_left, signed_right) = if self.class() == JMP {
            (left, right, left as i64, right as i64)
        } else {
            (left as u32 as u64, right as u32 as u64, i64::from(left as i32), i64::from(right as i32))
        };
        Some(match self.operation() {
            0x10 => left == right,
            0x20 => left > right,
            0x30 => left >= right,
            0x40 => left & right != 0,
            0x50 => left != right,
            0x60 => signed_left > signed_right,
            0x70 => signed_left >= signed_right,
            0xa0 => left < right,
            0xb0 => left <= right,
            0xc0 => signed_left < signed_right,
            0xd0 => signed_left <= signed_right,
            _ => return None,
        })
    }
}

fn compute64(operation: u8, left: u64, right: u64) -> Option<u64> {
    Some(match operation {
        ADD => left.wrapping_add(right),
        SUB => left.wrapping_sub(right),
        MUL => left.wrapping_mul(right),
        DIV => left.checked_div(right)?,
        OR => left | right,
        AND => left & right,
        LSH => left.wrapping_shl(right as u32),
        RSH => left.wrapping_shr(right as u32),
        NEG => left.wrapping_neg(),
        MOD => left.checked_rem(right)?,
        XOR => left ^ right,
        MOV => right,
        ARSH => (left as i64).wrapping_shr(right as u32) as u64,
        _ => return None,
    })
}
