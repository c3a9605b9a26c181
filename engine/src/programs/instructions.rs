// SPDX-License-Identifier: Apache-2.0
//! Instructions of the frame programs (RFC 9669): what they read and write, and where they lead.

use libbpf_sys::{
    bpf_insn, BPF_ALU, BPF_ALU64, BPF_ATOMIC, BPF_B, BPF_CALL, BPF_DW, BPF_END, BPF_EXIT, BPF_H, BPF_IMM, BPF_JA,
    BPF_JCOND, BPF_JMP, BPF_JMP32, BPF_K, BPF_LD, BPF_LDX, BPF_MEM, BPF_MEMSX, BPF_MOV, BPF_PSEUDO_CALL,
    BPF_PSEUDO_FUNC, BPF_ST, BPF_STX, BPF_W, BPF_X,
};

pub const REGISTERS: usize = 11;
/// Registers that a call overwrites; all but the first are its arguments.
pub const OF_CALLS: std::ops::Range<usize> = 0..6;

/// The class of an instruction.
pub fn class(insn: &bpf_insn) -> u32 {
    u32::from(insn.code) & 0x07
}

/// The operation of arithmetic, or of a jump.
pub fn operation(insn: &bpf_insn) -> u32 {
    u32::from(insn.code) & 0xf0
}

/// Whether an instruction is one of those that this module describes. Not: loads by the instructions of classic BPF, which
/// may end the program; addresses of functions, which are entered by others than calls; jumps and calls to addresses.
pub fn is_known(insn: &bpf_insn) -> bool {
    if destination(insn) >= REGISTERS || source(insn) >= REGISTERS {
        return false;
    }
    match class(insn) {
        BPF_LD => is_wide(insn) && u32::from(insn.src_reg()) != BPF_PSEUDO_FUNC,
        BPF_LDX => has_mode(insn, BPF_MEM) || has_mode(insn, BPF_MEMSX),
        BPF_ST => has_mode(insn, BPF_MEM),
        BPF_STX => is_store(insn) || is_atomic(insn),
        BPF_JMP | BPF_JMP32 if is_conditional(insn) => operation(insn) <= BPF_JCOND,
        BPF_JMP | BPF_JMP32 => !has_source(insn),
        _ => operation(insn) <= BPF_END,
    }
}

/// Octets that a load or a store moves.
pub fn octets(insn: &bpf_insn) -> usize {
    match u32::from(insn.code) & 0x18 {
        BPF_B => 1,
        BPF_H => 2,
        BPF_W => 4,
        _ => 8,
    }
}

/// Whether a load or a store has this mode.
fn has_mode(insn: &bpf_insn, mode: u32) -> bool {
    u32::from(insn.code) & 0xe0 == mode
}

pub fn is_load(insn: &bpf_insn) -> bool {
    class(insn) == BPF_LDX && has_mode(insn, BPF_MEM)
}

/// Whether it stores a register.
pub fn is_store(insn: &bpf_insn) -> bool {
    class(insn) == BPF_STX && has_mode(insn, BPF_MEM)
}

pub fn is_atomic(insn: &bpf_insn) -> bool {
    class(insn) == BPF_STX && has_mode(insn, BPF_ATOMIC)
}

/// Whether it sets a register to a number of 64 bits, or to an address; its upper half is a second instruction.
pub fn is_wide(insn: &bpf_insn) -> bool {
    u32::from(insn.code) == BPF_LD | BPF_IMM | BPF_DW
}

pub fn is_arithmetic(insn: &bpf_insn) -> bool {
    matches!(class(insn), BPF_ALU | BPF_ALU64)
}

fn is_jump(insn: &bpf_insn) -> bool {
    matches!(class(insn), BPF_JMP | BPF_JMP32)
}

pub fn is_call(insn: &bpf_insn) -> bool {
    class(insn) == BPF_JMP && operation(insn) == BPF_CALL
}

pub fn is_conditional(insn: &bpf_insn) -> bool {
    is_jump(insn) && !matches!(operation(insn), BPF_JA | BPF_CALL | BPF_EXIT)
}

/// Whether the second operand of arithmetic or of a jump is a register.
pub fn has_source(insn: &bpf_insn) -> bool {
    u32::from(insn.code) & BPF_X != 0
}

pub fn destination(insn: &bpf_insn) -> usize {
    usize::from(insn.dst_reg())
}

pub fn source(insn: &bpf_insn) -> usize {
    usize::from(insn.src_reg())
}

/// A jump over so many instructions.
pub fn jump(over: i16) -> bpf_insn {
    bpf_insn { code: (BPF_JMP | BPF_JA) as u8, off: over, ..Default::default() }
}

/// Does nothing. The kernel removes it.
pub fn nothing() -> bpf_insn {
    jump(0)
}

/// The immediate operand that means a number in this width.
pub fn immediate(number: u64, wide: bool) -> Option<i32> {
    if wide {
        i32::try_from(number as i64).ok()
    } else {
        Some(number as i32)
    }
}

/// Sets a register to a number; None: one instruction cannot.
pub fn set(register: usize, number: u64) -> Option<bpf_insn> {
    let wide = u32::try_from(number).is_err();
    let class = if wide { BPF_ALU64 } else { BPF_ALU };
    let code = (class | BPF_MOV | BPF_K) as u8;
    let mut insn = bpf_insn { code, imm: immediate(number, wide)?, ..Default::default() };
    insn.set_dst_reg(register as u8);
    Some(insn)
}

/// The same with a number in place of the source register.
pub fn with_immediate(insn: &bpf_insn, number: u64) -> Option<bpf_insn> {
    let wide = match class(insn) {
        BPF_STX => octets(insn) == 8,
        class => matches!(class, BPF_ALU64 | BPF_JMP),
    };
    let code = match class(insn) {
        BPF_STX => u32::from(insn.code) & !0x07 | BPF_ST,
        _ => u32::from(insn.code) & !BPF_X,
    };
    let mut changed = bpf_insn { code: code as u8, imm: immediate(number, wide)?, ..*insn };
    changed.set_src_reg(0);
    Some(changed)
}

/// The number of the instruction so far after the next one.
fn ahead(at: usize, by: i32) -> usize {
    (at as i64 + 1 + i64::from(by)) as usize
}

/// Where a jump leads.
pub fn target(insns: &[bpf_insn], at: usize) -> usize {
    let insn = &insns[at];
    let long = u32::from(insn.code) == BPF_JMP32 | BPF_JA;
    ahead(at, if long { insn.imm } else { i32::from(insn.off) })
}

/// The function of the program that an instruction calls.
pub fn called(insns: &[bpf_insn], at: usize) -> Option<usize> {
    let insn = &insns[at];
    (is_call(insn) && u32::from(insn.src_reg()) == BPF_PSEUDO_CALL).then(|| ahead(at, insn.imm))
}

/// Calls a function of the program.
pub fn call(at: usize, function: usize) -> bpf_insn {
    let over = function as i64 - at as i64 - 1;
    let mut insn = bpf_insn { code: (BPF_JMP | BPF_CALL) as u8, imm: over as i32, ..Default::default() };
    insn.set_src_reg(BPF_PSEUDO_CALL as u8);
    insn
}

/// The instructions that may follow one within its function.
pub fn next(insns: &[bpf_insn], at: usize) -> impl Iterator<Item = usize> + use<> {
    let insn = &insns[at];
    let (jumps, falls) = match operation(insn) {
        _ if !is_jump(insn) => (false, true),
        BPF_JA => (true, false),
        BPF_CALL => (false, true),
        BPF_EXIT => (false, false),
        _ => (true, true),
    };
    let following = at + 1 + usize::from(is_wide(insn));
    falls.then_some(following).into_iter().chain(jumps.then(|| target(insns, at)))
}

/// Registers that an instruction reads and those that it overwrites, a bit each.
pub fn touched(insn: &bpf_insn) -> (u32, u32) {
    let (to, from) = (1 << destination(insn), 1 << source(insn));
    let second = if has_source(insn) { from } else { 0 };
    match class(insn) {
        BPF_LD if is_wide(insn) => (0, to),
        BPF_LDX => (from, to),
        BPF_ST => (to, 0),
        BPF_STX => (to | from | 1, 0), // some atomic operations compare register 0
        BPF_ALU | BPF_ALU64 if operation(insn) == BPF_END => (to, to),
        BPF_ALU | BPF_ALU64 if operation(insn) == BPF_MOV => (second, to),
        BPF_ALU | BPF_ALU64 => (to | second, to),
        BPF_JMP | BPF_JMP32 => match operation(insn) {
            BPF_JA => (0, 0),
            BPF_CALL => (0b11_1110, 0b11_1111),
            BPF_EXIT => (1, 0),
            _ => (to | second, 0),
        },
        _ => (u32::MAX, 0),
    }
}
