// SPDX-License-Identifier: Apache-2.0
//! Writes what is constant during a trial into the programs' instructions, before the kernel sees them.
//!
//! The kernel reads the plan, too, and removes the branches that are never taken. But it leaves the loads of the plan and
//! the arithmetic with it in the way of each frame. Here each instruction is replaced by one that knows the numbers, so
//! that neither jumps nor debug information move, and the kernel removes those that do nothing.

use std::ops::Range;

use libbpf_sys::{
    bpf_insn, BPF_ADD, BPF_ALU64, BPF_AND, BPF_ARSH, BPF_DIV, BPF_END, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JLE, BPF_JLT,
    BPF_JMP, BPF_JNE, BPF_JSET, BPF_JSGE, BPF_JSGT, BPF_JSLE, BPF_JSLT, BPF_LSH, BPF_MOD, BPF_MOV, BPF_MUL, BPF_NEG,
    BPF_OR, BPF_PSEUDO_MAP_VALUE, BPF_RSH, BPF_SUB, BPF_XOR,
};

use super::instructions::{
    call, called, class, destination, has_source, is_arithmetic, is_atomic, is_call, is_conditional, is_known, is_load,
    is_store, is_wide, jump, next, nothing, octets, operation, set, source, target, touched, with_immediate, OF_CALLS,
    REGISTERS,
};

/// The read-only data: the descriptor of its map, and its octets.
#[derive(Clone, Copy)]
pub struct Constants<'a> {
    pub map: i32,
    pub octets: &'a [u8],
}

/// What a register holds, whichever way led there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Unknown,
    Number(u64),
    /// The address of the constants, and so many octets more.
    Place(u64),
}

use Held::{Number, Place, Unknown};

type Registers = [Held; REGISTERS];

impl Constants<'_> {
    /// The same program with the constants in its instructions; None: it has to stay as it is.
    pub fn written_into(self, program: &[bpf_insn]) -> Option<Vec<bpf_insn>> {
        if !is_understood(program) {
            return None;
        }
        let mut insns = program.to_vec();
        let before = self.followed(program);
        // The second half of an instruction is reached with the first.
        let wide = |at: usize| at > 0 && before[at - 1].is_some() && is_wide(&program[at - 1]);
        let reached: Vec<bool> = (0..insns.len()).map(|at| before[at].is_some() || wide(at)).collect();
        for (at, registers) in before.iter().enumerate() {
            if let Some(changed) = registers.and_then(|registers| self.simpler(&program[at..], &registers)) {
                insns[at] = changed;
            }
        }
        for function in functions(program).into_iter().filter(|function| reached[function.start]) {
            let decided = |at: usize| decided(&program[at], &before[at]?).map(|taken| (at, taken));
            let decided: Vec<(usize, bool)> = function.clone().filter_map(decided).collect();
            for &(at, taken) in &decided {
                insns[at] = if taken { jump(program[at].off) } else { nothing() };
            }
            let unreached = runs(function.filter(|&at| !reached[at]));
            if !unreached.is_empty() {
                chain(program, &mut insns, &decided, unreached)?;
            }
        }
        while remove_unread(&mut insns, &reached) {}
        Some(insns)
    }

    /// What the registers hold before each instruction; None: no way leads there.
    fn followed(self, insns: &[bpf_insn]) -> Vec<Option<Registers>> {
        let mut before: Vec<Option<Registers>> = vec![None; insns.len()];
        let mut left = vec![(0, [Unknown; REGISTERS])];
        while let Some((at, mut registers)) = left.pop() {
            if let Some(known) = &before[at] {
                for (one, other) in registers.iter_mut().zip(known) {
                    if one != other {
                        *one = Unknown;
                    }
                }
                if registers == *known {
                    continue;
                }
            }
            before[at] = Some(registers);
            left.extend(called(insns, at).map(|function| (function, [Unknown; REGISTERS])));
            let after = self.after(&insns[at..], registers);
            match decided(&insns[at], &registers) {
                Some(taken) => left.push((if taken { target(insns, at) } else { at + 1 }, after)),
                None => left.extend(next(insns, at).map(|next| (next, after))),
            }
        }
        before
    }

    /// The registers after the first of these instructions.
    fn after(self, insns: &[bpf_insn], mut registers: Registers) -> Registers {
        let insn = &insns[0];
        let (_, overwritten) = touched(insn);
        if is_call(insn) {
            registers[OF_CALLS].fill(Unknown);
        } else if is_atomic(insn) {
            // One that loads writes its destination, others their source or register 0.
            registers[destination(insn)] = Unknown;
            registers[source(insn)] = Unknown;
            registers[0] = Unknown;
        } else if overwritten != 0 {
            registers[destination(insn)] = self.result(insns, &registers);
        }
        registers
    }

    /// What the first of these instructions, which is no call, leaves in its destination.
    fn result(self, insns: &[bpf_insn], registers: &Registers) -> Held {
        let insn = &insns[0];
        if is_wide(insn) {
            let upper = insns[1].imm as u32;
            return match u32::from(insn.src_reg()) {
                0 => Number(u64::from(upper) << 32 | u64::from(insn.imm as u32)),
                BPF_PSEUDO_MAP_VALUE if insn.imm == self.map => Place(u64::from(upper)),
                _ => Unknown,
            };
        }
        if is_load(insn) {
            let Place(place) = registers[source(insn)] else { return Unknown };
            return self.read(place.wrapping_add_signed(i64::from(insn.off)), octets(insn)).map_or(Unknown, Number);
        }
        // With an offset, some operations are others, such as signed divisions.
        if !is_arithmetic(insn) || insn.off != 0 {
            return Unknown;
        }
        let wide = class(insn) == BPF_ALU64;
        match (operation(insn), registers[destination(insn)], operand(insn, registers)) {
            (BPF_MOV, _, Place(place)) if wide => Place(place),
            (BPF_ADD, Place(place), Number(more)) if wide => Place(place.wrapping_add(more)),
            (BPF_MOV, _, Number(number)) => Number(if wide { number } else { u64::from(number as u32) }),
            (operation, Number(one), Number(two)) => computed(operation, wide, one, two).map_or(Unknown, Number),
            _ => Unknown,
        }
    }

    /// The number of so many octets at a place.
    fn read(self, place: u64, octets: usize) -> Option<u64> {
        let place = usize::try_from(place).ok()?;
        let mut number = [0; size_of::<u64>()];
        number.get_mut(..octets)?.copy_from_slice(self.octets.get(place..place.checked_add(octets)?)?);
        Some(u64::from_ne_bytes(number))
    }

    /// What does the same as the first of these instructions with less, where there is such an instruction.
    fn simpler(self, insns: &[bpf_insn], registers: &Registers) -> Option<bpf_insn> {
        let insn = &insns[0];
        if is_arithmetic(insn) || is_load(insn) {
            if let Number(number) = self.result(insns, registers) {
                if let Some(set) = set(destination(insn), number) {
                    return Some(set);
                }
            }
        }
        if is_store(insn) {
            let Number(number) = registers[source(insn)] else { return None };
            return with_immediate(insn, number);
        }
        let binary = is_arithmetic(insn) && insn.off == 0 && !matches!(operation(insn), BPF_END | BPF_NEG);
        if !binary && !is_conditional(insn) {
            return None;
        }
        let Number(number) = operand(insn, registers) else { return None };
        let (cheaper, number) = if binary { without_division(insn, number) } else { (*insn, number) };
        if binary && class(insn) == BPF_ALU64 && changes_nothing(operation(&cheaper), number) {
            return Some(nothing());
        }
        // The kernel refuses shifts by too much and divisions by 0 where it sees the number.
        let refused = match operation(&cheaper) {
            BPF_LSH | BPF_RSH | BPF_ARSH => number >= bits(class(insn) == BPF_ALU64),
            BPF_DIV | BPF_MOD => number as u32 == 0,
            _ => false,
        };
        if binary && refused || !has_source(insn) && cheaper.code == insn.code {
            return None;
        }
        with_immediate(&cheaper, number)
    }
}

/// A shift or a mask in place of a division by a power of two, and its number.
fn without_division(insn: &bpf_insn, number: u64) -> (bpf_insn, u64) {
    let divisor = if class(insn) == BPF_ALU64 { number } else { u64::from(number as u32) };
    let (cheaper, number) = match operation(insn) {
        BPF_DIV if divisor.is_power_of_two() => (BPF_RSH, u64::from(divisor.trailing_zeros())),
        BPF_MOD if divisor.is_power_of_two() => (BPF_AND, divisor - 1),
        same => (same, number),
    };
    (bpf_insn { code: (u32::from(insn.code) & !0xf0 | cheaper) as u8, ..*insn }, number)
}

/// What the second operand of arithmetic or of a jump is.
fn operand(insn: &bpf_insn, registers: &Registers) -> Held {
    if has_source(insn) {
        registers[source(insn)]
    } else {
        Number(i64::from(insn.imm) as u64)
    }
}

fn bits(wide: bool) -> u64 {
    if wide {
        64
    } else {
        32
    }
}

/// The result of an operation on two numbers, of those that the kernel's verifier computes, too.
fn computed(operation: u32, wide: bool, one: u64, two: u64) -> Option<u64> {
    let (one, two) = if wide { (one, two) } else { (u64::from(one as u32), u64::from(two as u32)) };
    let shift = (two < bits(wide)).then_some(two);
    let result = match operation {
        BPF_ADD => one.wrapping_add(two),
        BPF_SUB => one.wrapping_sub(two),
        BPF_MUL => one.wrapping_mul(two),
        BPF_AND => one & two,
        BPF_OR => one | two,
        BPF_XOR => one ^ two,
        BPF_LSH => one << shift?,
        BPF_RSH => one >> shift?,
        _ => return None,
    };
    Some(if wide { result } else { u64::from(result as u32) })
}

/// Whether an operation of 64 bits with this number leaves its register as it is.
fn changes_nothing(operation: u32, number: u64) -> bool {
    match operation {
        BPF_ADD | BPF_SUB | BPF_OR | BPF_XOR | BPF_LSH | BPF_RSH | BPF_ARSH => number == 0,
        BPF_MUL => number == 1,
        BPF_AND => number == u64::MAX,
        _ => false,
    }
}

/// Whether a conditional jump is taken, where that is known.
fn decided(insn: &bpf_insn, registers: &Registers) -> Option<bool> {
    if !is_conditional(insn) {
        return None;
    }
    let (Number(one), Number(two)) = (registers[destination(insn)], operand(insn, registers)) else { return None };
    let wide = class(insn) == BPF_JMP;
    let (one, two) = if wide { (one, two) } else { (u64::from(one as u32), u64::from(two as u32)) };
    let signed = |number: u64| if wide { number as i64 } else { i64::from(number as i32) };
    Some(match operation(insn) {
        BPF_JEQ => one == two,
        BPF_JNE => one != two,
        BPF_JGT => one > two,
        BPF_JGE => one >= two,
        BPF_JLT => one < two,
        BPF_JLE => one <= two,
        BPF_JSET => one & two != 0,
        BPF_JSGT => signed(one) > signed(two),
        BPF_JSGE => signed(one) >= signed(two),
        BPF_JSLT => signed(one) < signed(two),
        BPF_JSLE => signed(one) <= signed(two),
        _ => return None,
    })
}

/// Whether all instructions are known, and the program's beginning leads to each. What only something else leads to, such
/// as an exception, would be taken for never reached.
fn is_understood(insns: &[bpf_insn]) -> bool {
    let mut found = vec![false; insns.len()];
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        let Some(insn) = insns.get(at).filter(|insn| is_known(insn)) else { return false };
        if !std::mem::replace(&mut found[at], true) {
            if is_wide(insn) {
                let Some(second) = found.get_mut(at + 1) else { return false };
                *second = true;
            }
            open.extend(next(insns, at).chain(called(insns, at)));
        }
    }
    found.iter().all(|found| *found)
}

/// The program and its functions, in order.
fn functions(insns: &[bpf_insn]) -> Vec<Range<usize>> {
    let mut ends: Vec<usize> = (0..insns.len()).filter_map(|at| called(insns, at)).chain([0, insns.len()]).collect();
    ends.sort_unstable();
    ends.dedup();
    ends.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// Consecutive numbers together.
fn runs(numbers: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.end == number => run.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

/// The kernel refuses instructions to which no jump leads, but it removes those that it finds to be never reached. So one
/// of the function's decided jumps stays, and leads to all of them, one after the other. They do nothing but call the
/// functions that they called.
fn chain(
    program: &[bpf_insn],
    insns: &mut [bpf_insn],
    decided: &[(usize, bool)],
    mut unreached: Vec<Range<usize>>,
) -> Option<()> {
    let other_way = |at: usize, taken: bool| if taken { at + 1 } else { target(program, at) };
    let first = |&(at, taken): &(usize, bool)| {
        let run = unreached.iter().position(|run| run.contains(&other_way(at, taken)))?;
        Some((at, taken, run))
    };
    let (kept, taken, run) = decided.iter().find_map(first)?;
    unreached.rotate_left(run);
    let over = |from: usize, to: usize| i16::try_from(to as i64 - from as i64 - 1).ok();
    insns[kept] = program[kept];
    if !taken {
        insns[kept].off = over(kept, unreached[0].start)?;
    }
    let reached = if taken { target(program, kept) } else { kept + 1 };
    let following = unreached.iter().skip(1).map(|run| run.start).chain([reached]);
    for (run, following) in unreached.iter().zip(following) {
        let mut calls = run.clone().filter_map(|at| called(program, at));
        for at in run.clone() {
            insns[at] = calls.next().map_or_else(nothing, |function| call(at, function));
        }
        let last = run.end - 1;
        if called(insns, last).is_some() {
            return None;
        }
        insns[last] = jump(over(last, following)?);
    }
    Some(())
}

/// Replace what only sets a register that nothing reads afterwards. Returns whether there was any.
fn remove_unread(insns: &mut [bpf_insn], reached: &[bool]) -> bool {
    // Registers that are read after each instruction before they are overwritten, a bit each.
    let mut read = vec![0; insns.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for at in (0..insns.len()).rev().filter(|&at| reached[at]) {
            let after = next(insns, at).filter(|&next| reached[next]).fold(0, |all, next| {
                let (reads, overwrites) = touched(&insns[next]);
                all | read[next] & !overwrites | reads
            });
            changed |= after != read[at];
            read[at] = after;
        }
    }
    let only_sets = |insn: &bpf_insn| is_wide(insn) || is_arithmetic(insn);
    let unread = |at: &usize| reached[*at] && only_sets(&insns[*at]) && read[*at] & 1 << destination(&insns[*at]) == 0;
    let unread: Vec<usize> = (0..insns.len()).filter(unread).collect();
    for &at in &unread {
        if is_wide(&insns[at]) {
            insns[at + 1] = nothing();
        }
        insns[at] = nothing();
    }
    !unread.is_empty()
}

#[cfg(test)]
mod interpreted;

#[cfg(test)]
mod tests {
    use libbpf_sys::{
        BPF_ABS, BPF_ALU, BPF_ATOMIC, BPF_B, BPF_CALL, BPF_DW, BPF_EXIT, BPF_IMM, BPF_JA, BPF_JCOND, BPF_JMP32, BPF_K,
        BPF_LD, BPF_LDX, BPF_LOAD_ACQ, BPF_MEM, BPF_MEMSX, BPF_PSEUDO_FUNC, BPF_ST, BPF_STX, BPF_W, BPF_X,
    };

    use super::*;

    /// Of the read-only data; another map has the next one.
    const MAP: i32 = 7;
    const BIG: u64 = 0x0123_4567_89ab_cdef;

    type Fields = (u8, u8, u8, i16, i32);
    type Parts<'a> = &'a [&'a [bpf_insn]];

    /// At 0 the number 300 in four octets, at 4 the octet 250, at 8 a number of 64 bits, at 16 -2 in 64 bits.
    fn octets() -> Vec<u8> {
        [&300_u32.to_ne_bytes()[..], &[250, 0, 0, 0], &BIG.to_ne_bytes(), &(-2_i64).to_ne_bytes()].concat()
    }

    fn insn(code: u32, to: u8, from: u8, off: i16, imm: i32) -> bpf_insn {
        let mut insn = bpf_insn { code: code as u8, off, imm, ..Default::default() };
        insn.set_dst_reg(to);
        insn.set_src_reg(from);
        insn
    }

    fn address(to: u8, map: i32, place: i32) -> [bpf_insn; 2] {
        [insn(BPF_LD | BPF_IMM | BPF_DW, to, BPF_PSEUDO_MAP_VALUE as u8, 0, map), insn(0, 0, 0, 0, place)]
    }

    fn load(size: u32, to: u8, from: u8, off: i16) -> bpf_insn {
        insn(BPF_LDX | BPF_MEM | size, to, from, off, 0)
    }

    fn store(size: u32, from: u8) -> bpf_insn {
        insn(BPF_STX | BPF_MEM | size, 10, from, -8, 0)
    }

    fn stored(size: u32, number: i32) -> bpf_insn {
        insn(BPF_ST | BPF_MEM | size, 10, 0, -8, number)
    }

    fn number(to: u8, number: i32) -> bpf_insn {
        insn(BPF_ALU | BPF_MOV | BPF_K, to, 0, 0, number)
    }

    fn with_number(operation: u32, to: u8, number: i32) -> bpf_insn {
        insn(BPF_ALU64 | operation | BPF_K, to, 0, 0, number)
    }

    fn with_register(operation: u32, to: u8, from: u8) -> bpf_insn {
        insn(BPF_ALU64 | operation | BPF_X, to, from, 0, 0)
    }

    fn jump_if(operation: u32, register: u8, number: i32, over: i16) -> bpf_insn {
        insn(BPF_JMP | operation | BPF_K, register, 0, over, number)
    }

    fn exit() -> bpf_insn {
        insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
    }

    fn helper() -> bpf_insn {
        insn(BPF_JMP | BPF_CALL, 0, 0, 0, 5)
    }

    fn fields(insns: &[bpf_insn]) -> Vec<Fields> {
        insns.iter().map(|insn| (insn.code, insn.dst_reg(), insn.src_reg(), insn.off, insn.imm)).collect()
    }

    fn written(program: Parts) -> Option<Vec<bpf_insn>> {
        Constants { map: MAP, octets: &octets() }.written_into(&program.concat())
    }

    /// What is left of a program, without what does nothing.
    fn left(program: Parts) -> Vec<Fields> {
        let insns = written(program).unwrap_or_default();
        assert_eq!(insns.len(), program.concat().len());
        let idle = fields(&[nothing()])[0];
        fields(&insns).into_iter().filter(|insn| *insn != idle).collect()
    }

    #[test]
    fn what_is_read_of_the_constants_is_a_number() {
        let ways: [(&str, Parts, &[bpf_insn]); 8] = [
            ("four octets", &[&address(1, MAP, 0), &[load(BPF_W, 0, 1, 0)]], &[number(0, 300)]),
            ("one octet", &[&address(1, MAP, 0), &[load(BPF_B, 0, 1, 4)]], &[number(0, 250)]),
            (
                "at a sum",
                &[&address(1, MAP, 1), &[with_number(BPF_ADD, 1, 2), load(BPF_B, 0, 1, 1)]],
                &[number(0, 250)],
            ),
            (
                "by another register",
                &[&address(1, MAP, 0), &[with_register(BPF_MOV, 2, 1), load(BPF_W, 0, 2, 0)]],
                &[number(0, 300)],
            ),
            ("negative", &[&address(1, MAP, 0), &[load(BPF_DW, 0, 1, 16)]], &[with_number(BPF_MOV, 0, -2)]),
            (
                "too large for an instruction",
                &[&address(1, MAP, 0), &[load(BPF_DW, 0, 1, 8)]],
                &[address(1, MAP, 0)[0], address(1, MAP, 0)[1], load(BPF_DW, 0, 1, 8)],
            ),
            (
                "beyond the end",
                &[&address(1, MAP, 0), &[load(BPF_DW, 0, 1, 20)]],
                &[address(1, MAP, 0)[0], address(1, MAP, 0)[1], load(BPF_DW, 0, 1, 20)],
            ),
            (
                "of another map",
                &[&address(1, MAP + 1, 0), &[load(BPF_W, 0, 1, 0)]],
                &[address(1, MAP + 1, 0)[0], address(1, MAP + 1, 0)[1], load(BPF_W, 0, 1, 0)],
            ),
        ];
        for (sentence, program, wanted) in ways {
            let wanted = fields(&[wanted, &[exit()]].concat());
            assert_eq!(left(&[&program.concat(), &[exit()]]), wanted, "{sentence}");
        }
    }

    #[test]
    fn arithmetic_with_numbers_is_done_once() {
        let by_register = |operation, one, two| [number(0, one), number(1, two), with_register(operation, 0, 1)];
        let results = [
            (BPF_ADD, 5, 7, 12),
            (BPF_SUB, 7, 5, 2),
            (BPF_MUL, 6, 7, 42),
            (BPF_AND, 6, 3, 2),
            (BPF_OR, 6, 3, 7),
            (BPF_XOR, 6, 3, 5),
            (BPF_LSH, 1, 20, 1 << 20),
            (BPF_RSH, 256, 8, 1),
        ];
        for (operation, one, two, result) in results {
            assert_eq!(left(&[&by_register(operation, one, two), &[exit()]]), fields(&[number(0, result), exit()]));
        }
        // In 32 bits a sum begins again at 0, and the upper half of its register is 0.
        let narrow = [with_number(BPF_MOV, 0, -1), insn(BPF_ALU | BPF_ADD | BPF_K, 0, 0, 0, 1), exit()];
        assert_eq!(left(&[&narrow]), fields(&[number(0, 0), exit()]));
    }

    #[test]
    fn an_operation_with_one_number_has_it_within_or_is_left_out_where_it_changes_nothing() {
        let unknown = load(BPF_W, 0, 10, -8);
        let row = |operation, number_of| {
            let program = [unknown, number(1, number_of), with_register(operation, 0, 1), exit()];
            left(&[&program])
        };
        assert_eq!(row(BPF_MUL, 5), fields(&[unknown, with_number(BPF_MUL, 0, 5), exit()]));
        assert_eq!(row(BPF_DIV, 8), fields(&[unknown, with_number(BPF_RSH, 0, 3), exit()]));
        assert_eq!(row(BPF_MOD, 8), fields(&[unknown, with_number(BPF_AND, 0, 7), exit()]));
        for (operation, idle) in [(BPF_ADD, 0), (BPF_MUL, 1), (BPF_RSH, 0), (BPF_DIV, 1)] {
            assert_eq!(row(operation, idle), fields(&[unknown, exit()]));
        }
        for (operation, refused) in [(BPF_RSH, 64), (BPF_DIV, 0), (BPF_MOD, 0)] {
            let same = [unknown, number(1, refused), with_register(operation, 0, 1), exit()];
            assert_eq!(row(operation, refused), fields(&same), "the kernel would refuse it");
        }
        // The sum of a packet's address and 0 is 0 octets further, but in 32 bits it loses its upper half.
        let narrow = [unknown, insn(BPF_ALU | BPF_ADD | BPF_K, 0, 0, 0, 0), exit()];
        assert_eq!(left(&[&narrow]), fields(&narrow));
    }

    #[test]
    fn a_number_is_stored_without_a_register() {
        let program = |size, from| [&address(1, MAP, 0)[..], &[load(BPF_W, 2, 1, 0), store(size, from)]].concat();
        let end = [number(0, 0), exit()];
        for size in [BPF_B, BPF_W, BPF_DW] {
            assert_eq!(left(&[&program(size, 2), &end]), fields(&[stored(size, 300), end[0], end[1]]));
        }
    }

    #[test]
    fn what_differs_between_the_ways_to_an_instruction_is_not_known_there() {
        let join = |other| {
            let choice = [load(BPF_W, 3, 10, -8), number(0, 1), jump_if(BPF_JEQ, 3, 9, 1), number(0, other)];
            [&choice[..], &[with_number(BPF_ADD, 0, 4), exit()]].concat()
        };
        assert_eq!(left(&[&join(2)]), fields(&join(2)));
        let same = [load(BPF_W, 3, 10, -8), jump_if(BPF_JEQ, 3, 9, 1), number(0, 5), exit()];
        assert_eq!(left(&[&join(1)]), fields(&same), "1 + 4, whichever way");
        // A loop: the first round's number is not that of the others.
        let circle = [number(0, 0), with_number(BPF_ADD, 0, 1), jump_if(BPF_JLT, 0, 9, -2), exit()];
        assert_eq!(left(&[&circle]), fields(&circle));
    }

    #[test]
    fn calls_and_atomic_operations_leave_other_numbers() {
        let call = [number(0, 1), number(6, 2), helper(), with_register(BPF_ADD, 0, 6), exit()];
        assert_eq!(left(&[&call]), fields(&[helper(), with_number(BPF_ADD, 0, 2), exit()]));
        let fetch = insn(BPF_STX | BPF_ATOMIC | BPF_W, 10, 1, -8, 1);
        let atomic = [number(0, 1), number(1, 2), fetch, with_register(BPF_ADD, 0, 1), exit()];
        assert_eq!(left(&[&atomic]), fields(&atomic));
    }

    #[test]
    fn a_branch_that_is_never_taken_does_nothing_but_the_kernel_finds_a_way_to_all_of_it() {
        let option = address(1, MAP, 0);
        let rare = [number(0, 1), number(2, 3), with_register(BPF_ADD, 0, 2), store(BPF_W, 0)];
        let ways: [(&str, bpf_insn); 4] = [
            ("taken over it", jump_if(BPF_JEQ, 1, 300, 4)),
            ("unsigned", jump_if(BPF_JGT, 1, 299, 4)),
            ("signed", jump_if(BPF_JSGT, 1, -1, 4)),
            ("in 32 bits", insn(BPF_JMP32 | BPF_JNE | BPF_K, 1, 0, 4, 301)),
        ];
        for (sentence, jump) in ways {
            let program = [&option[..], &[load(BPF_W, 1, 1, 0), jump], &rare, &[number(0, 7), exit()]].concat();
            let insns = written(&[&program]).unwrap_or_default();
            assert!(is_understood(&insns), "{sentence}");
            let left = fields(&insns);
            assert!(!left.contains(&fields(&rare)[3]), "{sentence}: {left:?}");
            assert_eq!(left[2..4], fields(&[number(1, 300), jump]), "{sentence}: the kernel sees that it is taken");
        }
    }

    #[test]
    fn of_several_decided_jumps_one_stays_and_leads_to_all_that_is_never_reached() {
        let never =
            |register| [jump_if(BPF_JNE, register, 300, 1), jump_if(BPF_JEQ, register, 300, 1), store(BPF_W, 0)];
        let program = [
            &address(1, MAP, 0)[..],
            &[load(BPF_W, 6, 1, 0), number(0, 0)],
            &never(6),
            &[helper()],
            &never(6),
            &[exit()],
        ]
        .concat();
        let insns = written(&[&program]).unwrap_or_default();
        assert!(is_understood(&insns));
        let conditional = insns.iter().filter(|insn| is_conditional(insn)).count();
        assert_eq!(conditional, 1);
        assert!(!insns.iter().any(is_store));
    }

    #[test]
    fn a_function_that_only_a_branch_calls_that_is_never_taken_stays_called() {
        let function = [number(0, 1), exit()];
        let program = |rare: &[bpf_insn]| {
            let begin = [load(BPF_W, 6, 1, 0), jump_if(BPF_JEQ, 6, 300, rare.len() as i16)];
            [&address(1, MAP, 0)[..], &begin, rare, &[number(0, 0), exit()], &function].concat()
        };
        let insns = written(&[&program(&[number(1, 2), call(5, 8)])]);
        assert!(is_understood(&insns.unwrap_or_default()));
        // Without room for a jump beside the call, the program stays as it is.
        assert!(written(&[&program(&[call(4, 7)])]).is_none());
    }

    #[test]
    fn a_program_that_is_not_understood_stays_as_it_is() {
        let constant = [&address(1, MAP, 0)[..], &[load(BPF_W, 0, 1, 0)]].concat();
        let function = [insn(BPF_LD | BPF_IMM | BPF_DW, 2, BPF_PSEUDO_FUNC as u8, 0, 2), insn(0, 0, 0, 0, 0)];
        let ways: [(&str, &[bpf_insn]); 11] = [
            ("a callback", &[function[0], function[1], exit(), number(0, 0), exit()]),
            ("a callback that is called, too", &[function[0], function[1], call(5, 7), exit(), number(0, 0), exit()]),
            ("a load of classic BPF", &[insn(BPF_LD | BPF_ABS | BPF_W, 0, 0, 0, 0), exit()]),
            ("a jump to an address", &[insn(BPF_JMP | BPF_JA | BPF_X, 1, 0, 0, 0), exit()]),
            ("a call of an address", &[insn(BPF_JMP | BPF_CALL | BPF_X, 1, 0, 0, 0), exit()]),
            ("a further operation", &[insn(BPF_ALU64 | 0xe0, 0, 0, 0, 0), exit()]),
            ("a further register", &[number(11, 0), exit()]),
            ("an end to which nothing leads", &[exit(), number(0, 0), exit()]),
            ("no end", &[number(0, 0)]),
            ("half an instruction", &[insn(BPF_LD | BPF_IMM | BPF_DW, 0, 0, 0, 0)]),
            ("a jump between two halves", &[jump_if(BPF_JEQ, 0, 0, 1), function[0], insn(0, 0, 0, 0, 0), exit()]),
        ];
        assert!(written(&[&constant, &[exit()]]).is_some());
        for (sentence, end) in ways {
            assert!(written(&[&constant, end]).is_none(), "{sentence}");
        }
    }

    #[test]
    fn what_only_newer_kernels_know_is_followed() {
        let ways: [(&str, bpf_insn); 4] = [
            ("a load with a sign", insn(BPF_LDX | BPF_MEMSX | BPF_B, 0, 1, 4, 0)),
            ("a move with a sign", insn(BPF_ALU64 | BPF_MOV | BPF_X, 0, 2, 8, 0)),
            ("a division with signs", insn(BPF_ALU64 | BPF_DIV | BPF_K, 0, 0, 1, 2)),
            ("an atomic load", insn(BPF_STX | BPF_ATOMIC | BPF_W, 0, 10, -8, BPF_LOAD_ACQ as i32)),
        ];
        for (sentence, insn) in ways {
            let program = [&address(1, MAP, 0)[..], &[load(BPF_W, 2, 1, 0), number(0, 5), insn]].concat();
            let end = [with_number(BPF_ADD, 0, 1), exit()];
            let left = left(&[&program, &end]);
            assert_eq!(left[left.len() - 3..], fields(&[insn, end[0], end[1]]), "{sentence}");
        }
        // A long jump over what the other way does, and one that the kernel may take.
        let long = insn(BPF_JMP32 | BPF_JA, 0, 0, 0, 1);
        let ways = [load(BPF_W, 3, 10, -8), jump_if(BPF_JEQ, 3, 9, 2), number(0, 1), long, number(0, 2)];
        let joined = [&ways[..], &[with_number(BPF_ADD, 0, 4), exit()]].concat();
        assert_eq!(left(&[&joined]), fields(&joined));
        let perhaps = [number(0, 1), insn(BPF_JMP | BPF_JCOND, 0, 0, 1, 0), number(0, 2), exit()];
        assert_eq!(left(&[&perhaps]), fields(&perhaps));
    }
}
