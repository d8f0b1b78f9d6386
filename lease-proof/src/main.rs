//! `cargo xtask model` and `cargo xtask sim`: this program, in release mode.

fn main() {}
