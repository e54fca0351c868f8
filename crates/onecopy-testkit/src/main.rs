//! The stand-ins as a command.

fn main() {}
