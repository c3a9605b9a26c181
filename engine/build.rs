// SPDX-License-Identifier: Apache-2.0
//! Compiles each `bpf/*.bpf.c` with clang and writes `<name>.skel.rs` with the programs, the maps and the Rust side of the
//! C structs, so that no struct is written twice.

#![allow(clippy::expect_used, clippy::panic, reason = "a build script reports to cargo alone")]

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let libbpf_headers = env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys sets DEP_BPF_INCLUDE");
    let bpf = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR")).join("../bpf");
    // Debian's asm/types.h is in a folder named after the architecture, which clang's bpf target does not search.
    let multiarch = format!("-I/usr/include/{}-linux-gnu", env::consts::ARCH);
    println!("cargo:rerun-if-changed={}", bpf.display());
    for entry in fs::read_dir(&bpf).expect("bpf/ is next to engine/") {
        let source = entry.expect("bpf/ can be read").path();
        println!("cargo:rerun-if-changed={}", source.display());
        let Some(name) = source.file_name().and_then(OsStr::to_str).and_then(|file| file.strip_suffix(".bpf.c")) else {
            continue;
        };
        SkeletonBuilder::new()
            .source(&source)
            // The object stays a file, which rustc reads faster than a list of its octets.
            .reference_obj(true)
            .clang_args([
                OsStr::new("-I"),
                libbpf_headers.as_os_str(),
                OsStr::new(&multiarch),
                // v3: 32-bit ALU and the atomic operations that return a value.
                OsStr::new("-mcpu=v3"),
                OsStr::new("-Wall"),
                // IP headers begin 14 octets after an aligned address; all supported machines read unaligned words.
                OsStr::new("-Wno-address-of-packed-member"),
                OsStr::new("-Werror"),
            ])
            .build_and_generate(out.join(format!("{name}.skel.rs")))
            .unwrap_or_else(|error| panic!("{}: {error:#}", source.display()));
    }
}
