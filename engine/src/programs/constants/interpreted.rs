// SPDX-License-Identifier: Apache-2.0
//! Random programs do the same with the constants in their instructions as without: an interpreter (RFC 9669) follows both.

use std::collections::HashMap;

use libbpf_sys::{
    bpf_insn, BPF_ADD, BPF_ALU, BPF_ALU64, BPF_AND, BPF_ARSH, BPF_ATOMIC, BPF_B, BPF_CALL, BPF_CMPXCHG, BPF_DIV,
    BPF_DW, BPF_END, BPF_EXIT, BPF_FETCH, BPF_H, BPF_IMM, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JLE, BPF_JLT, BPF_JMP,
    BPF_JMP32, BPF_JNE, BPF_JSET, BPF_JSGE, BPF_JSGT, BPF_JSLE, BPF_JSLT, BPF_K, BPF_LD, BPF_LDX, BPF_LOAD_ACQ,
    BPF_LSH, BPF_MEM, BPF_MEMSX, BPF_MOD, BPF_MOV, BPF_MUL, BPF_NEG, BPF_OR, BPF_PSEUDO_CALL, BPF_PSEUDO_MAP_VALUE,
    BPF_RSH, BPF_ST, BPF_STX, BPF_SUB, BPF_W, BPF_X, BPF_XCHG, BPF_XOR,
};

use super::{is_understood, Constants};
use crate::plan::SplitMix64;

const MAP: i32 = 7;
/// Where the read-only data, what another map has, and the stack lie.
const CONSTANTS: u64 = 0xffff_8880_0000_1000;
const OTHER: u64 = 0xffff_8880_0009_0000;
const STACK: u64 = 0xffff_c900_0000_8000;
const FRAME: u64 = 512;
/// Instructions after which a program in a loop is left.
const MOST_STEPS: u64 = 300;
const SIZES: [(u32, usize); 4] = [(BPF_B, 1), (BPF_H, 2), (BPF_W, 4), (BPF_DW, 8)];

/// A number that follows from another.
fn hashed(number: u64) -> u64 {
    SplitMix64(number).next()
}

fn signed(number: u64, octets: usize) -> u64 {
    let unused = 64 - 8 * octets as u32;
    ((number << unused) as i64 >> unused) as u64
}

struct Machine<'a> {
    constants: &'a [u8],
    seed: u64,
    registers: [u64; 11],
    written: HashMap<u64, u8>,
    /// Where calls return to, with the registers that they keep.
    callers: Vec<(usize, [u64; 5])>,
    /// What another sees of the program: its stores, its calls of the kernel, and its result.
    seen: Vec<[u64; 6]>,
    steps: u64,
}

impl Machine<'_> {
    /// What the program `insns` lets others see.
    fn seen(insns: &[bpf_insn], constants: &[u8], seed: u64) -> Vec<[u64; 6]> {
        let mut registers = [0; 11].map(|_: u64| 0);
        for (at, register) in registers.iter_mut().enumerate() {
            *register = hashed(seed + at as u64);
        }
        registers[10] = STACK;
        let (written, callers, seen) = (HashMap::new(), Vec::new(), Vec::new());
        let mut machine = Machine { constants, seed, registers, written, callers, seen, steps: 0 };
        let mut at = Some(0);
        while let Some(here) = at.filter(|_| machine.steps < MOST_STEPS) {
            machine.steps += 1;
            at = machine.step(insns, here);
        }
        machine.seen
    }

    fn load(&self, place: u64, octets: usize) -> u64 {
        let octet = |place: u64| {
            let constant = || self.constants.get(place.checked_sub(CONSTANTS)? as usize).copied();
            let written = self.written.get(&place).copied();
            written.or_else(constant).unwrap_or_else(|| hashed(self.seed ^ place) as u8)
        };
        (0..octets).fold(0, |all, at| all | u64::from(octet(place.wrapping_add(at as u64))) << (8 * at))
    }

    fn store(&mut self, place: u64, octets: usize, number: u64) {
        for at in 0..octets {
            self.written.insert(place.wrapping_add(at as u64), (number >> (8 * at)) as u8);
        }
        self.seen.push([1, place, octets as u64, self.load(place, octets), 0, 0]);
    }

    /// Registers that hold nothing after a call, or at the beginning of a function.
    fn forget(&mut self, registers: std::ops::Range<usize>) {
        for at in registers {
            self.registers[at] = hashed(self.seed ^ self.steps << 8 ^ at as u64);
        }
    }

    /// Where the program continues; None: it has ended.
    fn step(&mut self, insns: &[bpf_insn], at: usize) -> Option<usize> {
        let insn = &insns[at];
        let (to, from) = (usize::from(insn.dst_reg()), usize::from(insn.src_reg()));
        let code = u32::from(insn.code);
        let (class, operation) = (code & 7, code & 0xf0);
        let octets = SIZES.iter().find(|(size, _)| *size == code & 0x18).map_or(0, |(_, octets)| *octets);
        let far = |base: u64| base.wrapping_add_signed(i64::from(insn.off));
        let second = if code & BPF_X == 0 { i64::from(insn.imm) as u64 } else { self.registers[from] };
        let ahead = |over: i32| Some((at as i64 + 1 + i64::from(over)) as usize);
        match class {
            BPF_LD => {
                let upper = insns[at + 1].imm as u32;
                self.registers[to] = match insn.src_reg().into() {
                    0 => u64::from(upper) << 32 | u64::from(insn.imm as u32),
                    BPF_PSEUDO_MAP_VALUE if insn.imm == MAP => CONSTANTS + u64::from(upper),
                    _ => OTHER + u64::from(upper),
                };
                self.steps += 1; // as long as the two that do nothing in its place
                return ahead(1);
            }
            BPF_LDX => {
                let number = self.load(far(self.registers[from]), octets);
                self.registers[to] = if code & 0xe0 == BPF_MEMSX { signed(number, octets) } else { number };
            }
            BPF_ST => self.store(far(self.registers[to]), octets, i64::from(insn.imm) as u64),
            BPF_STX if code & 0xe0 == BPF_ATOMIC => self.exchange(insn, far(self.registers[to]), octets),
            BPF_STX => self.store(far(self.registers[to]), octets, self.registers[from]),
            BPF_ALU | BPF_ALU64 => {
                self.registers[to] = result(insn, class == BPF_ALU64, self.registers[to], second);
            }
            BPF_JMP if operation == BPF_CALL => return self.call(insn, at),
            BPF_JMP if operation == BPF_EXIT => {
                let Some((caller, kept)) = self.callers.pop() else {
                    self.seen.push([3, self.registers[0], 0, 0, 0, 0]);
                    return None;
                };
                self.forget(1..6);
                self.registers[6..].copy_from_slice(&kept);
                return Some(caller + 1);
            }
            BPF_JMP if operation == BPF_JA => return ahead(insn.off.into()),
            _ if operation == BPF_JA => return ahead(insn.imm),
            _ if is_taken(operation, class == BPF_JMP, self.registers[to], second) => return ahead(insn.off.into()),
            _ => {}
        }
        ahead(0)
    }

    fn call(&mut self, insn: &bpf_insn, at: usize) -> Option<usize> {
        if u32::from(insn.src_reg()) == BPF_PSEUDO_CALL {
            let kept = [6, 7, 8, 9, 10].map(|register| self.registers[register]);
            self.callers.push((at, kept));
            self.forget(0..1);
            self.forget(6..10);
            self.registers[10] -= FRAME;
            return Some((at as i64 + 1 + i64::from(insn.imm)) as usize);
        }
        let [_, one, two, three, four, five, ..] = self.registers;
        self.seen.push([2, one, two, three, four, five]);
        self.forget(0..6);
        Some(at + 1)
    }

    /// An atomic operation, or a load or store of its kind.
    fn exchange(&mut self, insn: &bpf_insn, place: u64, octets: usize) {
        let (to, from) = (usize::from(insn.dst_reg()), usize::from(insn.src_reg()));
        let (old, operand) = (self.load(place, octets), self.registers[from]);
        match insn.imm as u32 {
            BPF_LOAD_ACQ => {
                self.registers[to] = self.load(self.registers[from].wrapping_add_signed(insn.off.into()), octets)
            }
            BPF_CMPXCHG => {
                let whole = if octets == 8 { u64::MAX } else { 0xffff_ffff };
                let new = if old == self.registers[0] & whole { operand } else { old };
                self.store(place, octets, new);
                self.registers[0] = old;
            }
            BPF_XCHG => {
                self.store(place, octets, operand);
                self.registers[from] = old;
            }
            imm => {
                self.store(place, octets, old.wrapping_add(operand));
                if imm & BPF_FETCH != 0 {
                    self.registers[from] = old;
                }
            }
        }
    }
}

/// What arithmetic results in.
fn result(insn: &bpf_insn, wide: bool, one: u64, two: u64) -> u64 {
    let code = u32::from(insn.code);
    let narrow = |number: u64| if wide { number } else { number & 0xffff_ffff };
    let (one, two, bits) = (narrow(one), narrow(two), if wide { 64 } else { 32 });
    let as_signed = |number: u64| if wide { number as i64 } else { i64::from(number as i32) };
    let shift = (two % bits) as u32;
    narrow(match code & 0xf0 {
        BPF_ADD => one.wrapping_add(two),
        BPF_SUB => one.wrapping_sub(two),
        BPF_MUL => one.wrapping_mul(two),
        BPF_DIV if two == 0 => 0,
        BPF_MOD if two == 0 => one,
        BPF_DIV if insn.off == 1 => as_signed(one).wrapping_div(as_signed(two)) as u64,
        BPF_MOD if insn.off == 1 => as_signed(one).wrapping_rem(as_signed(two)) as u64,
        BPF_DIV => one / two,
        BPF_MOD => one % two,
        BPF_OR => one | two,
        BPF_AND => one & two,
        BPF_XOR => one ^ two,
        BPF_LSH => one << shift,
        BPF_RSH => one >> shift,
        BPF_ARSH => (as_signed(one) >> shift) as u64,
        BPF_NEG => one.wrapping_neg(),
        BPF_MOV if insn.off != 0 => signed(two, insn.off as usize / 8),
        BPF_MOV => two,
        // 64-bit classes swap always, the other one to big-endian order.
        BPF_END if wide || code & BPF_X != 0 => one.swap_bytes() >> (64 - insn.imm),
        _ => one << (64 - insn.imm) >> (64 - insn.imm),
    })
}

fn is_taken(operation: u32, wide: bool, one: u64, two: u64) -> bool {
    let (one, two) = if wide { (one, two) } else { (one & 0xffff_ffff, two & 0xffff_ffff) };
    let as_signed = |number: u64| if wide { number as i64 } else { i64::from(number as i32) };
    match operation {
        BPF_JEQ => one == two,
        BPF_JNE => one != two,
        BPF_JGT => one > two,
        BPF_JGE => one >= two,
        BPF_JLT => one < two,
        BPF_JLE => one <= two,
        BPF_JSET => one & two != 0,
        BPF_JSGT => as_signed(one) > as_signed(two),
        BPF_JSGE => as_signed(one) >= as_signed(two),
        BPF_JSLT => as_signed(one) < as_signed(two),
        BPF_JSLE => as_signed(one) <= as_signed(two),
        _ => unreachable!("no jump: {operation:#x}"),
    }
}

struct Writer(SplitMix64);

impl Writer {
    fn below(&mut self, limit: usize) -> usize {
        (self.0.next() % limit as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn number(&mut self) -> i32 {
        let any = self.0.next() as i32;
        self.one_of(&[0, 1, 2, 3, -1, 7, 8, 31, 32, 33, 63, 64, 300, 1 << 16, i32::MAX, i32::MIN, any])
    }

    fn insn(&mut self, code: u32, to: usize, from: usize, off: i16, imm: i32) -> bpf_insn {
        let mut insn = bpf_insn { code: code as u8, off, imm, ..Default::default() };
        insn.set_dst_reg(to as u8);
        insn.set_src_reg(from as u8);
        insn
    }

    fn register(&mut self) -> usize {
        self.one_of(&[0, 0, 1, 1, 2, 2, 3, 6, 6, 7])
    }

    fn arithmetic(&mut self) -> bpf_insn {
        let operations = [
            BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_MOD, BPF_OR, BPF_AND, BPF_XOR, BPF_LSH, BPF_RSH, BPF_ARSH, BPF_NEG,
            BPF_MOV, BPF_MOV, BPF_MOV, BPF_END,
        ];
        let (class, operation) = (self.one_of(&[BPF_ALU, BPF_ALU64]), self.one_of(&operations));
        let (to, from) = (self.register(), self.register());
        let mut kind = self.one_of(&[BPF_K, BPF_X, BPF_X]);
        let bits = if class == BPF_ALU64 { 64 } else { 32 };
        let imm = match operation {
            BPF_END => self.one_of(&[16, 32, 64]),
            BPF_LSH | BPF_RSH | BPF_ARSH => self.below(bits) as i32,
            BPF_DIV | BPF_MOD => self.number().max(1),
            _ => self.number(),
        };
        let off = match operation {
            BPF_DIV | BPF_MOD => self.one_of(&[0, 0, 1]),
            BPF_MOV if kind == BPF_X => self.one_of(&[0, 0, 0, 8, 16]),
            _ => 0,
        };
        if operation == BPF_NEG || operation == BPF_END && class == BPF_ALU64 {
            kind = BPF_K;
        }
        let only_end = operation == BPF_END;
        let (from, imm) = if kind == BPF_X && !only_end { (from, 0) } else { (0, imm) };
        self.insn(class | operation | kind, to, from, off, imm)
    }

    fn address(&mut self, to: usize) -> Vec<bpf_insn> {
        let map = self.one_of(&[MAP, MAP, MAP, MAP + 1]);
        let place = self.one_of(&[0, 1, 4, 8, 16, 21]);
        vec![
            self.insn(BPF_LD | BPF_IMM | BPF_DW, to, BPF_PSEUDO_MAP_VALUE as usize, 0, map),
            self.insn(0, 0, 0, 0, place),
        ]
    }

    fn load(&mut self, from: usize) -> bpf_insn {
        let (to, size, off) = (self.register(), self.one_of(&SIZES).0, self.one_of(&[0, 0, 4, 8, 12, 16, -4]));
        let mode = if size == BPF_DW { BPF_MEM } else { self.one_of(&[BPF_MEM, BPF_MEM, BPF_MEM, BPF_MEMSX]) };
        self.insn(BPF_LDX | mode | size, to, from, off, 0)
    }

    /// An instruction, or two that belong together. A jump leads to itself until `functions` gives it a target.
    fn unit(&mut self, calls: bool) -> Vec<Vec<bpf_insn>> {
        let (to, from) = (self.register(), self.register());
        let off = self.one_of(&[-8, -16, -24]);
        let single = match self.below(if calls { 30 } else { 28 }) {
            0..=8 => self.arithmetic(),
            9..=13 => {
                let register = self.register();
                return vec![self.address(register), vec![self.load(register)]];
            }
            14 => self.load(10),
            15 => {
                let number = self.number();
                let upper = self.number();
                return vec![vec![
                    self.insn(BPF_LD | BPF_IMM | BPF_DW, to, 0, 0, number),
                    self.insn(0, 0, 0, 0, upper),
                ]];
            }
            16 | 17 => {
                let size = self.one_of(&SIZES).0;
                self.insn(BPF_STX | BPF_MEM | size, 10, from, off, 0)
            }
            18 => {
                let (size, number) = (self.one_of(&SIZES).0, self.number());
                self.insn(BPF_ST | BPF_MEM | size, 10, 0, off, number)
            }
            19 => {
                let size = self.one_of(&[BPF_W, BPF_DW]);
                let imm = self.one_of(&[BPF_ADD, BPF_ADD | BPF_FETCH, BPF_XCHG, BPF_CMPXCHG]) as i32;
                self.insn(BPF_STX | BPF_ATOMIC | size, 10, from, off, imm)
            }
            20 => self.insn(BPF_STX | BPF_ATOMIC | BPF_W, to, 10, off, BPF_LOAD_ACQ as i32),
            21 => {
                let class = self.one_of(&[BPF_JMP, BPF_JMP32]);
                self.insn(class | BPF_JA, 0, 0, -1, -1)
            }
            22..=27 => {
                let operations = [
                    BPF_JEQ, BPF_JNE, BPF_JGT, BPF_JGE, BPF_JLT, BPF_JLE, BPF_JSET, BPF_JSGT, BPF_JSGE, BPF_JSLT,
                    BPF_JSLE,
                ];
                let class = self.one_of(&[BPF_JMP, BPF_JMP32]);
                let operation = self.one_of(&operations);
                if self.below(2) == 0 {
                    self.insn(class | operation | BPF_X, to, from, -1, 0)
                } else {
                    let number = self.number();
                    self.insn(class | operation | BPF_K, to, 0, -1, number)
                }
            }
            28 => self.insn(BPF_JMP | BPF_CALL, 0, 0, 0, 5),
            _ => self.insn(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL as usize, 0, -1),
        };
        vec![vec![single]]
    }

    /// The instructions of a function, all of whose jumps lead to one of its instructions.
    fn function(&mut self, units: usize, calls: bool) -> Vec<bpf_insn> {
        let mut all: Vec<Vec<bpf_insn>> = (0..units).flat_map(|_| self.unit(calls)).collect();
        all.push(vec![self.insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)]);
        let starts: Vec<usize> =
            all.iter().scan(0, |next, unit| Some(std::mem::replace(next, *next + unit.len()))).collect();
        for (number, unit) in all.iter_mut().enumerate() {
            let code = u32::from(unit[0].code);
            let jumps = matches!(code & 7, BPF_JMP | BPF_JMP32) && !matches!(code & 0xf0, BPF_CALL | BPF_EXIT);
            if jumps {
                // Most lead onward: the others make loops.
                let from = if self.below(10) == 0 { 0 } else { number + 1 };
                let over = starts[from + self.below(starts.len() - from)] as i32 - starts[number] as i32 - 1;
                if code & 0xf0 != BPF_JA || code & 7 == BPF_JMP {
                    (unit[0].off, unit[0].imm) = (over as i16, if code & 0xf0 == BPF_JA { 0 } else { unit[0].imm });
                } else {
                    (unit[0].off, unit[0].imm) = (0, over);
                }
            }
        }
        all.concat()
    }

    /// A program, with a function where it calls one.
    fn program(&mut self) -> Vec<bpf_insn> {
        let units = 4 + self.below(20);
        let mut program = self.function(units, true);
        let end = program.len();
        let calls =
            |insn: &bpf_insn| u32::from(insn.code) == BPF_JMP | BPF_CALL && insn.src_reg() == BPF_PSEUDO_CALL as u8;
        let callers: Vec<usize> = (0..end).filter(|&at| calls(&program[at])).collect();
        for &at in &callers {
            program[at].imm = (end - at - 1) as i32;
        }
        if !callers.is_empty() {
            let units = 2 + self.below(8);
            program.extend(self.function(units, false));
        }
        program
    }
}

/// Whether the kernel would take an instruction's number.
fn is_legal(insn: &bpf_insn) -> bool {
    let code = u32::from(insn.code);
    let bits = if code & 7 == BPF_ALU64 { 64 } else { 32 };
    match code & 0xf0 {
        _ if !matches!(code & 7, BPF_ALU | BPF_ALU64) || code & BPF_X != 0 => true,
        BPF_LSH | BPF_RSH | BPF_ARSH => (0..bits).contains(&insn.imm),
        BPF_DIV | BPF_MOD => insn.imm != 0,
        _ => true,
    }
}

#[test]
fn random_programs_do_the_same_with_the_constants_in_their_instructions() {
    let octets: Vec<u8> = [&[44, 1, 0, 0, 250, 0, 0, 128], &3_u64.to_ne_bytes()[..], &(-2_i64).to_ne_bytes()].concat();
    let constants = Constants { map: MAP, octets: &octets };
    let (mut changed, mut shorter) = (0, 0);
    for seed in 0..20_000 {
        let program = Writer(SplitMix64(seed)).program();
        let Some(written) = constants.written_into(&program) else { continue };
        assert!(is_understood(&written) && written.iter().all(is_legal), "{seed}");
        let fields = |insn: &bpf_insn| (insn.code, insn.dst_reg(), insn.src_reg(), insn.off, insn.imm);
        changed += usize::from(!program.iter().map(fields).eq(written.iter().map(fields)));
        let jumps = |insns: &[bpf_insn]| insns.iter().filter(|insn| insn.code == (BPF_JMP | BPF_JA) as u8).count();
        shorter += usize::from(jumps(&written) > jumps(&program) + 3);
        for run in 0..3 {
            let seen = |insns| Machine::seen(insns, &octets, hashed(seed ^ run << 32));
            assert_eq!(seen(&program), seen(&written), "{seed}");
        }
    }
    assert!(changed > 10_000 && shorter > 5_000, "{changed} programs changed, {shorter} of them by much");
}
