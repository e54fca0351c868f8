//! The `onecopy` command.
fn main() {}
