// SPDX-License-Identifier: Apache-2.0
//! Compiles every `bpf/*.bpf.c` with clang and writes `<name>.skel.rs`, which holds the programs, the maps and the Rust
//! side of every struct of `bpf/shared.h`: nothing that crosses the border is written twice.

#![allow(clippy::expect_used, clippy::panic, reason = "a build script has nobody to report to but cargo")]

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let libbpf_headers = env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let bpf = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR")).join("../bpf");
    // Debian keeps asm/types.h in a folder named after the architecture, which clang's bpf target does not search.
    let multiarch = format!("-I/usr/include/{}-linux-gnu", env::consts::ARCH);
    println!("cargo:rerun-if-changed={}", bpf.display());
    for entry in fs::read_dir(&bpf).expect("bpf/ lies beside engine/") {
        let source = entry.expect("bpf/ can be read").path();
        println!("cargo:rerun-if-changed={}", source.display());
        let Some(name) = source.file_name().and_then(OsStr::to_str).and_then(|file| file.strip_suffix(".bpf.c")) else {
            continue;
        };
        SkeletonBuilder::new()
            .source(&source)
            .clang_args([
                OsStr::new("-I"),
                libbpf_headers.as_os_str(),
                OsStr::new(&multiarch),
                // v3: 32-bit ALU and the atomic operations that return a value.
                OsStr::new("-mcpu=v3"),
                OsStr::new("-Wall"),
                // Frames begin 14 octets behind an aligned address; all supported machines read unaligned words.
                OsStr::new("-Wno-address-of-packed-member"),
                OsStr::new("-Werror"),
            ])
            .build_and_generate(out.join(format!("{name}.skel.rs")))
            .unwrap_or_else(|error| panic!("{}: {error:#}", source.display()));
    }
}
