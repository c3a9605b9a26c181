// SPDX-License-Identifier: Apache-2.0
//! Where libbpf hands programs over: maps are made and filled by then, addresses stand in the instructions.

use std::collections::HashMap;
use std::ffi::{c_int, c_long};
use std::slice;
use std::sync::OnceLock;

use libbpf_sys::{bpf_insn, bpf_prog_load_opts, bpf_program};

use super::instruction::Instruction;
use super::{fold, Contents};
use crate::failure::{Failure, Outcome};

static HANDLER: OnceLock<i32> = OnceLock::new();

/// From now on this process loads XDP programs with their constants in place.
pub fn install() -> Outcome<()> {
    let handler = *HANDLER.get_or_init(|| {
        let options = libbpf_sys::libbpf_prog_handler_opts {
            sz: size_of::<libbpf_sys::libbpf_prog_handler_opts>() as libbpf_sys::size_t,
            prog_prepare_load_fn: Some(prepare),
            ..Default::default()
        };
        // SAFETY: the name is a constant with its zero; libbpf copies name and options.
        unsafe {
            libbpf_sys::libbpf_register_prog_handler(
                c"xdp".as_ptr(),
                libbpf_sys::BPF_PROG_TYPE_XDP,
                libbpf_sys::BPF_XDP,
                &raw const options,
            )
        }
    });
    if handler < 0 {
        let error = std::io::Error::from_raw_os_error(-handler);
        return Err(Failure::Broke(format!("libbpf does not hand programs over: {error}")));
    }
    Ok(())
}

unsafe extern "C" fn prepare(program: *mut bpf_program, _: *mut bpf_prog_load_opts, _: c_long) -> c_int {
    // SAFETY: libbpf hands a program of its own over, whose instructions live until they are set anew.
    let before = unsafe {
        slice::from_raw_parts(
            libbpf_sys::bpf_program__insns(program),
            libbpf_sys::bpf_program__insn_cnt(program) as usize,
        )
    };
    let mut instructions: Vec<Instruction> = before.iter().map(decoded).collect();
    fold(&mut instructions, &mut ReadOnly::default());
    let mut after: Vec<bpf_insn> = instructions.iter().map(encoded).collect();
    // SAFETY: libbpf copies as many instructions as are given.
    unsafe { libbpf_sys::bpf_program__set_insns(program, after.as_mut_ptr(), after.len() as libbpf_sys::size_t) }
}

fn decoded(from: &bpf_insn) -> Instruction {
    Instruction { code: from.code, to: from.dst_reg(), from: from.src_reg(), offset: from.off, immediate: from.imm }
}

fn encoded(from: &Instruction) -> bpf_insn {
    let mut to = bpf_insn { code: from.code, off: from.offset, imm: from.immediate, ..Default::default() };
    to.set_dst_reg(from.to);
    to.set_src_reg(from.from);
    to
}

/// Maps by descriptor, asked of the kernel once.
#[derive(Default)]
struct ReadOnly(HashMap<i32, Option<Vec<u8>>>);

impl Contents for ReadOnly {
    fn of(&mut self, map: i32) -> Option<&[u8]> {
        self.0.entry(map).or_insert_with(|| read(map)).as_deref()
    }
}

/// The only value of a map that programs cannot write to; libbpf lets nobody else write to it either.
fn read(map: i32) -> Option<Vec<u8>> {
    let mut info = libbpf_sys::bpf_map_info::default();
    let mut length = size_of::<libbpf_sys::bpf_map_info>() as u32;
    // SAFETY: the struct outlives the call; its length is given.
    if unsafe { libbpf_sys::bpf_map_get_info_by_fd(map, &raw mut info, &raw mut length) } != 0 {
        return None;
    }
    if info.type_ != libbpf_sys::BPF_MAP_TYPE_ARRAY
        || info.max_entries != 1
        || info.map_flags & libbpf_sys::BPF_F_RDONLY_PROG == 0
    {
        return None;
    }
    // The kernel writes whole words of eight octets.
    let mut value = vec![0_u8; info.value_size.next_multiple_of(8) as usize];
    let key = 0_u32;
    // SAFETY: the key and the value, which is as long as the kernel makes it, outlive the call.
    let status = unsafe { libbpf_sys::bpf_map_lookup_elem(map, (&raw const key).cast(), value.as_mut_ptr().cast()) };
    value.truncate(info.value_size as usize);
    (status == 0).then_some(value)
}
