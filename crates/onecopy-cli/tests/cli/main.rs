//! The command as people run it: the built binary, its exit codes, and who gets stdout and stderr.

mod bench;
mod cat;
mod clouds;
mod command;
mod cp;
mod demo;
mod endings;
mod index;
mod limits;
mod ls;
mod run;
mod sync;
