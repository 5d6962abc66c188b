//! Cache of a sampler: the places where threads wait.
use crate::python::frames::PyFrame;
use std::collections::HashMap;
use std::time::Instant;

/// The C functions that were found, by the place of the thread.
#[derive(Default)]
pub struct Leaves {
    pub known: HashMap<Key, Option<PyFrame>>,
    pub renewed: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub tid: u32,
    pub stack: u64,
    pub program: u64,
    pub line: i32,
}
