// SPDX-License-Identifier: Apache-2.0
//! Load-time constants made real ones: before the kernel takes a program, what it would read from a read-only map is
//! written into its instructions, and what was needed for the reading alone is left out. The verifier drops the branches
//! that such constants decide, but leaves all loads and the arithmetic with them.
//!
//! Every instruction stays in its place: it is replaced by one of the same length, or by a jump to the next one, which
//! the verifier takes out. So jumps and line numbers stay right.

mod hook;
mod instruction;
#[cfg(test)]
mod tests;

pub use hook::install;

use instruction::{Instruction, Next, ADD, ALU64, AND, DIV, END, LSH, MOD, MOV, MUL, NEG, NOTHING, RSH, SUB};

const REGISTERS: usize = 11;
/// In a wide load: the address of a map's value, the map by its descriptor.
const MAP_VALUE: u8 = 2;

/// What a register holds whenever an instruction is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// Differs, or is not followed.
    Unknown,
    /// Always this.
    Known(u64),
    /// Address of an octet of a read-only map's value: the map's descriptor and how far in.
    Inside(i32, u64),
}

type Registers = [Value; REGISTERS];

/// What read-only maps hold.
trait Contents {
    /// Value of the map with this descriptor; None: programs write to it, too.
    fn of(&mut self, map: i32) -> Option<&[u8]>;
}

/// A program and what is known of it.
struct Folding<'a, C: Contents> {
    program: &'a mut [Instruction],
    contents: &'a mut C,
    /// Before each instruction; None: it is never reached.
    states: Vec<Option<Registers>>,
}

/// Write all constants of read-only maps into the program.
fn fold(program: &mut [Instruction], contents: &mut impl Contents) {
    let states = vec![None; program.len()];
    let mut folding = Folding { program, contents, states };
    folding.follow();
    folding.rewrite();
    folding.leave_out();
}

impl<C: Contents> Folding<'_, C> {
    /// Find out what registers hold: along all paths that constants leave open.
    fn follow(&mut self) {
        let mut open = vec![(0, [Value::Unknown; REGISTERS])];
        while let Some((at, arriving)) = open.pop() {
            let Some(&instruction) = self.program.get(at) else { continue };
            let joined = match self.states[at] {
                None => arriving,
                Some(known) => join(&known, &arriving),
            };
            if self.states[at] == Some(joined) {
                continue;
            }
            self.states[at] = Some(joined);
            let after = self.after(at, instruction, &joined);
            let there = |distance: isize| (at.wrapping_add_signed(distance), after);
            match instruction.next() {
                Next::End => {}
                Next::There(distance) => open.push(there(distance)),
                Next::Either(distance) => {
                    let decided = decided(instruction, &joined);
                    if decided != Some(true) {
                        open.push(there(1));
                    }
                    if decided != Some(false) {
                        open.push(there(distance));
                    }
                }
            }
        }
    }

    /// What registers hold behind an instruction.
    fn after(&mut self, at: usize, instruction: Instruction, before: &Registers) -> Registers {
        let mut after = *before;
        let written = instruction.writes();
        for (register, value) in after.iter_mut().enumerate() {
            if written & 1 << register != 0 {
                *value = Value::Unknown;
            }
        }
        let made = if instruction.wide() {
            self.wide(at, instruction)
        } else if instruction.loads() {
            self.loaded(instruction, before[usize::from(instruction.from)])
        } else if instruction.computes() {
            computed(instruction, before)
        } else {
            return after;
        };
        after[usize::from(instruction.to)] = made;
        after
    }

    fn wide(&mut self, at: usize, instruction: Instruction) -> Value {
        let high = self.program.get(at + 1).map_or(0, |second| second.immediate as u32);
        match instruction.from {
            0 => Value::Known(u64::from(high) << 32 | u64::from(instruction.immediate as u32)),
            MAP_VALUE if self.contents.of(instruction.immediate).is_some() => {
                Value::Inside(instruction.immediate, high.into())
            }
            _ => Value::Unknown,
        }
    }

    fn loaded(&mut self, instruction: Instruction, address: Value) -> Value {
        let Value::Inside(map, at) = address else { return Value::Unknown };
        let from = at.wrapping_add_signed(instruction.offset.into()) as usize;
        let octets = self.contents.of(map).and_then(|all| all.get(from..from.checked_add(instruction.octets())?));
        let Some(octets) = octets else { return Value::Unknown };
        let mut word = [0; 8];
        word[..octets.len()].copy_from_slice(octets);
        Value::Known(u64::from_ne_bytes(word))
    }

    /// Put constants where they are used.
    fn rewrite(&mut self) {
        for at in 0..self.program.len() {
            let Some(before) = self.states[at] else { continue };
            let instruction = self.program[at];
            let made = if instruction.computes() || instruction.loads() {
                self.after(at, instruction, &before)[usize::from(instruction.to)]
            } else {
                Value::Unknown
            };
            let loaded = match made {
                Value::Known(value) if !instruction.is_constant() => Instruction::load(instruction.to, value),
                _ => None,
            };
            self.program[at] = loaded.unwrap_or_else(|| simpler(with_operand(instruction, &before)));
        }
    }

    /// Leave out what makes registers that nobody reads any more. Loads from elsewhere stay: they may be there to bring
    /// something into the caches.
    fn leave_out(&mut self) {
        let mut needed = vec![0_u16; self.program.len() + 1];
        let mut changed = true;
        while changed {
            changed = false;
            for at in (0..self.program.len()).rev() {
                let behind = self.needed_behind(at, &needed);
                let instruction = self.program[at];
                let before = if self.superfluous(at, behind) {
                    behind
                } else {
                    behind & !instruction.writes() | instruction.reads()
                };
                changed |= before != needed[at];
                needed[at] = before;
            }
        }
        for at in 0..self.program.len() {
            if !self.superfluous(at, self.needed_behind(at, &needed)) {
                continue;
            }
            if self.program[at].wide() {
                if let Some(second) = self.program.get_mut(at + 1) {
                    *second = NOTHING;
                }
            }
            self.program[at] = NOTHING;
        }
    }

    /// Registers that are read before they are written, wherever the program goes on.
    fn needed_behind(&self, at: usize, needed: &[u16]) -> u16 {
        let there = |distance: isize| needed.get(at.wrapping_add_signed(distance)).copied().unwrap_or(0);
        match self.program[at].next() {
            Next::End => 0,
            Next::There(distance) => there(distance),
            Next::Either(distance) => there(1) | there(distance),
        }
    }

    fn superfluous(&self, at: usize, needed: u16) -> bool {
        let instruction = self.program[at];
        let Some(before) = &self.states[at] else { return false };
        let ours = || matches!(before[usize::from(instruction.from)], Value::Inside(..));
        (instruction.computes() || instruction.wide() || instruction.loads() && ours())
            && needed & instruction.writes() == 0
    }
}

fn join(one: &Registers, other: &Registers) -> Registers {
    std::array::from_fn(|register| if one[register] == other[register] { one[register] } else { Value::Unknown })
}

/// A computation's or a comparison's second operand.
fn operand(instruction: Instruction, registers: &Registers) -> Value {
    if instruction.by_register() {
        registers[usize::from(instruction.from)]
    } else {
        Value::Known(i64::from(instruction.immediate) as u64)
    }
}

fn computed(instruction: Instruction, registers: &Registers) -> Value {
    let (left, right) = (registers[usize::from(instruction.to)], operand(instruction, registers));
    let moves = instruction.operation() == MOV && instruction.offset == 0;
    match (left, right) {
        (_, right) if moves && instruction.class() == ALU64 => right,
        (_, Value::Known(right)) if moves => instruction.compute(0, right).map_or(Value::Unknown, Value::Known),
        (Value::Inside(map, at), Value::Known(right)) if instruction.class() == ALU64 => {
            match instruction.operation() {
                ADD => Value::Inside(map, at.wrapping_add(right)),
                SUB => Value::Inside(map, at.wrapping_sub(right)),
                _ => Value::Unknown,
            }
        }
        (Value::Known(left), Value::Known(right)) => {
            instruction.compute(left, right).map_or(Value::Unknown, Value::Known)
        }
        _ => Value::Unknown,
    }
}

/// Whether constants let a comparison always jump, or never.
fn decided(instruction: Instruction, registers: &Registers) -> Option<bool> {
    match (registers[usize::from(instruction.to)], operand(instruction, registers)) {
        (Value::Known(left), Value::Known(right)) => instruction.jumps(left, right),
        _ => None,
    }
}

/// The same with a constant in place of the register it is read from, where it fits.
fn with_operand(instruction: Instruction, registers: &Registers) -> Instruction {
    let Value::Known(value) = registers[usize::from(instruction.from)] else { return instruction };
    // Sign-extended to the length that is worked on.
    let fitting = |octets: usize| match octets {
        8 => i32::try_from(value as i64).ok(),
        _ => Some(value as i32),
    };
    let length = if matches!(instruction.class(), ALU64 | instruction::JMP) { 8 } else { 4 };
    let changed = if instruction.stores() {
        fitting(instruction.octets()).map(|fits| instruction.storing(fits))
    } else if (instruction.computes() && instruction.offset == 0 || instruction.compares()) && instruction.by_register()
    {
        fitting(length).map(|fits| instruction.with_immediate(fits))
    } else {
        None
    };
    changed.unwrap_or(instruction)
}

/// Cheaper than multiplying and dividing, where the operand is a power of two; nothing at all where it changes nothing.
fn simpler(instruction: Instruction) -> Instruction {
    if !instruction.computes() || instruction.by_register() || instruction.offset != 0 {
        return instruction;
    }
    let becomes =
        |operation: u8, immediate| Instruction { code: operation | instruction.class(), immediate, ..instruction };
    let power = u32::try_from(instruction.immediate).ok().filter(|number| number.is_power_of_two());
    let simple = match (instruction.operation(), power) {
        (MUL, Some(power)) => becomes(LSH, power.trailing_zeros() as i32),
        (DIV, Some(power)) => becomes(RSH, power.trailing_zeros() as i32),
        (MOD, Some(power)) => becomes(AND, power as i32 - 1),
        _ => instruction,
    };
    let same = simple.immediate == 0 && !matches!(simple.operation(), MOV | AND | MUL | DIV | MOD | NEG | END);
    if same && simple.class() == ALU64 {
        NOTHING
    } else {
        simple
    }
}
