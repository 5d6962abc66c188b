//! Reads the interpreter's state from the memory of a process. Works while the interpreter is stuck: needs no GIL and calls nothing in it.
//!
//! * `layout.rs`: where the fields are; a table for 3.10 to 3.12, told by the interpreter from 3.13 on.
//! * `runtime.rs`: finds the interpreter, its threads, and who holds the GIL.
//! * `frames.rs`: the frames of a thread, walked twice: what both walks agree on is told.
//! * `contexts.rs`: in which contexts a thread runs.
//! * `lines.rs`: the line of an instruction.
//! * `text.rs`: strings.

pub mod contexts;
pub mod frames;
pub mod layout;
pub mod lines;
pub mod runtime;
pub mod text;
