// SPDX-License-Identifier: Apache-2.0
//! Programs of a few instructions before and after.

use super::instruction::{ALU, JMP, LDX, STX};
use super::*;

const MAP: i32 = 3;
const OTHER: i32 = 4;
const EXIT: Instruction = plain(JMP | 0x90, 0, 0, 0, 0);

/// One value of 16 octets: 3 in 4, then 2^31 in 4, then 2^63 in 8.
struct One;

impl Contents for One {
    fn of(&mut self, map: i32) -> Option<&[u8]> {
        const VALUE: [u8; 16] = [3, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x80];
        (map == MAP).then_some(&VALUE)
    }
}

const fn plain(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction { code, to, from, offset, immediate }
}

fn address(to: u8, map: i32) -> [Instruction; 2] {
    [plain(0x18, to, MAP_VALUE, 0, map), plain(0, 0, 0, 0, 0)]
}

const fn load32(to: u8, from: u8, offset: i16) -> Instruction {
    plain(LDX | 0x60, to, from, offset, 0)
}

fn folded(parts: &[&[Instruction]]) -> Vec<Instruction> {
    let mut program = parts.concat();
    fold(&mut program, &mut One);
    program
}

#[test]
fn a_constant_takes_the_place_of_its_load_and_of_the_address() {
    // r0 = r1 * value, r1 being what the program is called with.
    let by_register = [plain(ALU64 | MUL | 8, 1, 3, 0, 0), plain(ALU64 | MOV | 8, 0, 1, 0, 0), EXIT];
    let all = folded(&[&address(2, MAP), &[load32(3, 2, 0)], &by_register]);
    let times = plain(ALU64 | MUL, 1, 0, 0, 3);
    assert_eq!(all, [NOTHING, NOTHING, NOTHING, times, by_register[1], EXIT]);
}

#[test]
fn what_programs_may_write_to_is_loaded_and_loads_that_nobody_reads_stay() {
    let before = [&address(2, OTHER)[..], &[load32(3, 2, 0), plain(ALU64 | MOV, 0, 0, 0, 1), EXIT]].concat();
    assert_eq!(folded(&[&before]), before);
}

#[test]
fn numbers_that_do_not_fit_an_instruction_are_loaded() {
    let long = plain(LDX | 0x78, 0, 2, 8, 0);
    assert_eq!(folded(&[&address(2, MAP), &[long, EXIT]])[2], long);
    let word = folded(&[&address(2, MAP), &[load32(0, 2, 4), EXIT]]);
    assert_eq!(word[2], plain(ALU | MOV, 0, 0, 0, i32::MIN), "32 bits fill the rest with zeros");
}

#[test]
fn where_paths_meet_only_what_is_the_same_on_all_is_known() {
    // r0 is 3 or 4, by an argument; r3 is 3 either way.
    let meet = [
        plain(ALU64 | MOV, 0, 0, 0, 4),
        plain(ALU64 | MOV, 3, 0, 0, 3),
        plain(JMP | 0x10, 1, 0, 1, 0),
        plain(ALU64 | MOV, 0, 0, 0, 3),
        plain(ALU64 | ADD | 8, 0, 3, 0, 0),
        EXIT,
    ];
    let all = folded(&[&meet]);
    assert_eq!(all[4], plain(ALU64 | ADD, 0, 0, 0, 3));
    assert_eq!((all[0], all[1], all[3]), (meet[0], NOTHING, meet[3]));
}

#[test]
fn a_branch_that_a_constant_rules_out_changes_nothing_behind_it() {
    // if value == 3 skip; r0 = 9.
    let guarded = [
        load32(3, 2, 0),
        plain(ALU64 | MOV, 0, 0, 0, 5),
        plain(JMP | 0x10, 3, 0, 1, 3),
        plain(ALU64 | MOV, 0, 0, 0, 9),
        plain(ALU64 | ADD | 8, 1, 0, 0, 0),
        plain(STX | 0x78, 10, 1, -8, 0),
        EXIT,
    ];
    let all = folded(&[&address(2, MAP), &guarded]);
    assert_eq!(all[6], plain(ALU64 | ADD, 1, 0, 0, 5), "r0 is 5 there");
    assert_eq!(all[4], guarded[2], "the verifier takes the branch out, and wants its target reachable");
}

#[test]
fn constants_are_stored_without_a_register() {
    let store = [load32(3, 2, 0), plain(STX | 0x60, 10, 3, -4, 0), plain(ALU64 | MOV, 0, 0, 0, 0), EXIT];
    let all = folded(&[&address(2, MAP), &store]);
    assert_eq!(all[2..4], [NOTHING, plain(instruction::ST | 0x60, 10, 0, -4, 3)]);
}

#[test]
fn powers_of_two_are_shifted_by() {
    for (operation, operand, becomes, by) in
        [(MUL, 8, LSH, 3), (DIV, 4, RSH, 2), (MOD, 16, AND, 15), (MUL, 6, MUL, 6), (DIV, 3, DIV, 3)]
    {
        let all = folded(&[&[plain(ALU64 | operation, 1, 0, 0, operand), plain(ALU64 | MOV | 8, 0, 1, 0, 0), EXIT]]);
        assert_eq!(all[0], plain(ALU64 | becomes, 1, 0, 0, by));
    }
    let once = folded(&[&[plain(ALU64 | MUL, 1, 0, 0, 1), plain(ALU64 | MOV | 8, 0, 1, 0, 0), EXIT]]);
    assert_eq!(once[0], NOTHING);
}

#[test]
fn arithmetic_is_the_machines() {
    let cases: [(u8, u64, u64, u64); 9] = [
        (ALU64 | SUB, 1, 2, u64::MAX),
        (ALU | SUB, 1, 2, u64::from(u32::MAX)),
        (ALU | ADD, u64::MAX, 1, 0),
        (ALU64 | LSH, 1, 33, 1 << 33),
        (ALU | LSH, 1, 31, 1 << 31),
        (ALU64 | instruction::ARSH, 1 << 63, 63, u64::MAX),
        (ALU | instruction::ARSH, 1 << 31, 31, u64::from(u32::MAX)),
        (ALU | NEG, 1, 0, u64::from(u32::MAX)),
        (ALU64 | MOD, 17, 5, 2),
    ];
    for (code, left, right, result) in cases {
        assert_eq!(plain(code, 0, 0, 0, 0).compute(left, right), Some(result), "{code:#x} {left} {right}");
    }
    assert_eq!(plain(ALU64 | DIV, 0, 0, 0, 0).compute(1, 0), None, "left to the kernel");
    let swap = |bits| plain(ALU | END | 8, 0, 0, 0, bits).compute(0x0102_0304_0506_0708, 0);
    assert_eq!(swap(16), Some(0x0807));
    assert_eq!(swap(32), Some(0x0807_0605));
}
