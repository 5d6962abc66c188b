//! Reads the Python frames of a thread that keeps running.
//!
//! A walk follows the links from the innermost frame outwards. It is made twice, with the code objects read in between: a frame
//! counts if both walks found it, in the same order from the outermost one in, at the same address, with the same code and the same
//! caller. A thread that stands still has all its frames; of one that runs those are left that were there all the time.
use super::layout::{Frame, Instructions, Layout, Position};
use super::lines::line_of;
use super::runtime::{Runtime, plausible};
use super::text;
use crate::memory::Memory;
use serde::Serialize;
use std::collections::HashMap;
use std::rc::Rc;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct PyFrame {
    pub file: String,
    pub function: String,
    /// 0: not known.
    pub line: i32,
}

/// What two walks agree on.
#[derive(Clone, Debug, Default)]
pub struct Walked {
    /// Innermost first.
    pub frames: Vec<PyFrame>,
    /// Whether frames changed meanwhile.
    pub moving: bool,
    /// Whether there were more frames than the limit.
    pub cut: bool,
}

/// Where the innermost frame was: the same at two looks, if the thread was in the same call all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceNow {
    pub frame: u64,
    pub instruction: u64,
    /// Its instruction goes back in a loop: a thread seen there is not in a call.
    pub jumps: bool,
}

/// Counts for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Walks {
    pub made: u64,
    /// Number of walks of which nothing was left.
    pub discarded: u64,
    /// Number of walks of which a part was left.
    pub trimmed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Raw {
    address: u64,
    previous: u64,
    code: u64,
    position: u64,
    is_code: bool,
}

impl Raw {
    /// All but the instruction, which goes on in a frame that runs.
    fn is_same(&self, other: &Self) -> bool {
        Self { position: 0, ..*self } == Self { position: 0, ..*other }
    }
}

/// Code objects by address; checked by what they consist of, since an address may be used again.
#[derive(Default)]
pub struct Codes(HashMap<u64, (Identity, Rc<Code>)>);

#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    file: u64,
    name: u64,
    lines: u64,
    first_line: i32,
}

struct Code {
    file: String,
    function: String,
    first_line: i32,
    table: Vec<u8>,
    instructions: u64,
}

pub fn walk(runtime: &Runtime, memory: &Memory, state: u64, codes: &mut Codes, walks: &mut Walks) -> Walked {
    for _ in 0..ATTEMPTS {
        walks.made += 1;
        let (first, cut) = chain(&runtime.layout, memory, state, MOST_FRAMES);
        let decoded: Vec<Option<Rc<Code>>> =
            first.iter().map(|raw| raw.is_code.then(|| codes.get(runtime, memory, raw.code)).flatten()).collect();
        let (second, _) = chain(&runtime.layout, memory, state, MOST_FRAMES);
        let common = agreed(&first, &second, cut);
        // A frame of Python code whose code cannot be read is none.
        let kept = first.len() - common..first.len();
        let broken =
            first[kept.clone()].iter().zip(&decoded[kept.clone()]).any(|(raw, code)| raw.is_code && code.is_none());
        if broken || (common == 0 && !(first.is_empty() && second.is_empty())) {
            walks.discarded += 1;
            continue;
        }
        let moving = common < first.len() || first != second;
        walks.trimmed += u64::from(common < first.len());
        let pairs = first[kept.clone()].iter().zip(&decoded[kept]);
        let frames: Vec<PyFrame> = pairs.filter_map(|(raw, code)| Some(frame(runtime, raw, code.as_ref()?))).collect();
        return Walked { frames, moving, cut };
    }
    Walked { moving: true, ..Walked::default() }
}

/// One walk, with the address of each frame, the outermost first; empty if it could not be made.
pub fn nesting(runtime: &Runtime, memory: &Memory, state: u64, codes: &mut Codes) -> Vec<(u64, PyFrame)> {
    let (raws, cut) = chain(&runtime.layout, memory, state, MOST_FRAMES);
    if cut {
        return Vec::new();
    }
    let outwards = raws.iter().rev().filter(|raw| raw.is_code);
    outwards
        .map_while(|raw| {
            let code = codes.get(runtime, memory, raw.code)?;
            Some((raw.address, frame(runtime, raw, &code)))
        })
        .collect()
}

/// How many frames, from the outermost one in, both walks found.
fn agreed(first: &[Raw], second: &[Raw], cut: bool) -> usize {
    if cut {
        // The outermost frames of the two are others then, and nothing is told if the thread runs.
        return if first == second { first.len() } else { 0 };
    }
    first.iter().rev().zip(second.iter().rev()).take_while(|(one, other)| one.is_same(other)).count()
}

/// One walk along the links.
fn chain(layout: &Layout, memory: &Memory, state: u64, most: usize) -> (Vec<Raw>, bool) {
    let thread = &layout.thread;
    let start = match thread.cframe {
        Some(offset) => memory.word(state + offset).filter(|&cframe| plausible(cframe)),
        None => Some(state),
    };
    let mut next = start.and_then(|start| memory.word(start + thread.frame)).unwrap_or(0);
    let mut frames: Vec<Raw> = Vec::new();
    while plausible(next) {
        if frames.len() == most {
            return (frames, true);
        }
        let Some(raw) = read(&layout.frame, memory, next) else { break };
        next = raw.previous;
        frames.push(raw);
    }
    (frames, false)
}

fn read(layout: &Frame, memory: &Memory, address: u64) -> Option<Raw> {
    let mut bytes = [0; MOST_FRAME_BYTES];
    let bytes = bytes.get_mut(..usize::try_from(layout.size).ok()?)?;
    memory.read(address, bytes)?;
    let word = |offset: u64| field(bytes, offset).map(u64::from_ne_bytes);
    let position = match layout.position {
        Position::Pointer(offset) => word(offset)?,
        Position::Index(offset) => word(offset)? & u64::from(u32::MAX),
    };
    let is_code = match layout.owner {
        Some((offset, none_from)) => *bytes.get(usize::try_from(offset).ok()?)? < none_from,
        None => true,
    };
    // 3.14 marks references in their lowest bits.
    let code = word(layout.code)? & !7;
    Some(Raw { address, previous: word(layout.previous)?, code, position, is_code })
}

fn field<const LENGTH: usize>(bytes: &[u8], offset: u64) -> Option<[u8; LENGTH]> {
    bytes.get(usize::try_from(offset).ok()?..)?.first_chunk().copied()
}

impl Codes {
    fn get(&mut self, runtime: &Runtime, memory: &Memory, address: u64) -> Option<Rc<Code>> {
        let (layout, text) = (&runtime.layout.code, &runtime.layout.text);
        if !plausible(address) {
            return None;
        }
        // One read for all of it: calls of the kernel are what a walk costs.
        let mut bytes = [0; MOST_CODE_BYTES];
        let bytes = bytes.get_mut(..usize::try_from(layout.size).ok()?.min(MOST_CODE_BYTES))?;
        memory.read(address, bytes)?;
        let word = |offset: u64| field(bytes, offset).map(u64::from_ne_bytes);
        let kind = word(text.kind)?;
        if runtime.code_type.is_some_and(|code_type| code_type != kind) {
            return None;
        }
        let identity = Identity {
            file: word(layout.file)?,
            name: word(layout.name)?,
            lines: word(layout.lines)?,
            first_line: field(bytes, layout.first_line).map(i32::from_ne_bytes)?,
        };
        if let Some((_, code)) = self.0.get(&address).filter(|(known, _)| *known == identity) {
            return Some(Rc::clone(code));
        }
        let instructions = match layout.instructions {
            Instructions::Inside(offset) => address + offset,
            Instructions::Bytes(offset) => word(offset)? + text.bytes_start,
        };
        let code = Rc::new(Code {
            file: text::string(memory, text, identity.file)?,
            function: text::string(memory, text, identity.name)?,
            first_line: identity.first_line,
            table: text::bytes(memory, text, identity.lines)?,
            instructions,
        });
        if self.0.len() >= MOST_CODES {
            self.0.clear();
        }
        self.0.insert(address, (identity, Rc::clone(&code)));
        Some(code)
    }
}

/// Bytes from the beginning of the code; None for a copy of it that a thread of a free-threaded build has.
fn offset(runtime: &Runtime, raw: &Raw, start: u64) -> Option<u64> {
    match runtime.layout.frame.position {
        // -1: not begun.
        Position::Index(_) => raw.position.checked_mul(2),
        Position::Pointer(_) => raw.position.checked_sub(start).map(|offset| offset & !1),
    }
}

fn frame(runtime: &Runtime, raw: &Raw, code: &Code) -> PyFrame {
    let line = offset(runtime, raw, code.instructions)
        .and_then(|offset| line_of(runtime.layout.code.table, &code.table, code.first_line, offset));
    // A frame that has not begun is one instruction before its first.
    let has_begun = match runtime.layout.frame.position {
        Position::Index(_) => raw.position != u64::from(u32::MAX),
        Position::Pointer(_) => raw.position >= code.instructions,
    };
    let line = line.or((!has_begun).then_some(code.first_line));
    PyFrame { file: code.file.clone(), function: code.function.clone(), line: line.unwrap_or(0) }
}

/// Finds the innermost frame. Costs a tenth of a walk.
pub fn place(runtime: &Runtime, memory: &Memory, state: u64) -> Option<PlaceNow> {
    let (frames, _) = chain(&runtime.layout, memory, state, GLANCE);
    let raw = frames.into_iter().find(|raw| raw.is_code && plausible(raw.code))?;
    let start = match runtime.layout.code.instructions {
        Instructions::Inside(offset) => raw.code + offset,
        Instructions::Bytes(offset) => memory.word(raw.code + offset)? + runtime.layout.text.bytes_start,
    };
    let opcode = offset(runtime, &raw, start).and_then(|offset| memory.bytes::<1>(start.wrapping_add(offset)));
    let jumps = opcode.is_some_and(|[opcode]| runtime.layout.code.jumps.contains(&opcode));
    Some(PlaceNow { frame: raw.address, instruction: raw.position, jumps })
}

/// A walk that finds another stack each time is given up; the next look may have more luck.
const ATTEMPTS: u64 = 4;
const MOST_FRAMES: usize = 256;
/// Entries of C code stand between frames of Python code: one, seldom two.
const GLANCE: usize = 4;
const MOST_FRAME_BYTES: usize = 128;
/// Of a code object, whose instructions follow.
const MOST_CODE_BYTES: usize = 256;
const MOST_CODES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::layout;

    /// A piece of memory as CPython 3.12 would have it, in this process.
    struct Made(Vec<u64>);

    impl Made {
        fn new(bytes: usize) -> Self {
            Self(vec![0; bytes.div_ceil(8)])
        }

        fn with(mut self, offset: usize, bytes: &[u8]) -> Self {
            for (place, byte) in bytes.iter().enumerate().map(|(place, byte)| (offset + place, u64::from(*byte))) {
                let shift = place % 8 * 8;
                self.0[place / 8] = self.0[place / 8] & !(255 << shift) | byte << shift;
            }
            self
        }

        fn word(self, offset: usize, value: u64) -> Self {
            self.with(offset, &value.to_ne_bytes())
        }

        fn at(&self) -> u64 {
            self.0.as_ptr() as u64
        }
    }

    const KIND: u64 = 0xc0de_0000;

    fn string(text: &str) -> Made {
        Made::new(512).word(16, text.len() as u64).with(32, &[1 << 2 | 3 << 5, 0, 0, 0]).with(40, text.as_bytes())
    }

    struct Stack {
        state: Made,
        frames: Vec<Made>,
        _rest: Vec<Made>,
    }

    /// Innermost first: each function with its first line, which its only instruction has.
    fn stack(functions: &[(&str, u32)]) -> Stack {
        let (mut frames, mut rest) = (Vec::new(), Vec::new());
        let mut previous = 0;
        for (name, line) in functions.iter().rev() {
            let (file, name) = (string("/srv/app.py"), string(name));
            // One entry: kind 13, one unit, no change of the line.
            let table = Made::new(64).word(16, 2).with(32, &[0x80 | 13 << 3, 0]);
            let code = Made::new(256).word(8, KIND).word(112, file.at()).word(128, name.at()).word(136, table.at());
            let code = code.with(68, &line.to_ne_bytes());
            let frame = Made::new(80).word(0, code.at()).word(8, previous).word(56, code.at() + 192);
            previous = frame.at();
            frames.insert(0, frame);
            rest.extend([file, name, table, code]);
        }
        let cframe = Made::new(8).word(0, previous);
        let state = Made::new(256).word(56, cframe.at());
        rest.push(cframe);
        Stack { state, frames, _rest: rest }
    }

    fn walked(state: u64) -> (Walked, Walks) {
        let runtime = Runtime::made(layout::of_version(12).expect("a row"), KIND);
        let memory = Memory::open(std::process::id(), state).expect("our own memory");
        let mut walks = Walks::default();
        (walk(&runtime, &memory, state, &mut Codes::default(), &mut walks), walks)
    }

    #[test]
    fn frames_are_told_innermost_first_with_their_lines() {
        let stack = stack(&[("inner", 7), ("outer", 3)]);
        let (walked, walks) = walked(stack.state.at());
        let told: Vec<_> = walked.frames.iter().map(|frame| (frame.function.as_str(), frame.line)).collect();
        assert_eq!(told, [("inner", 7), ("outer", 3)]);
        assert!(!walked.moving && !walked.cut);
        assert_eq!(walks, Walks { made: 1, discarded: 0, trimmed: 0 });
    }

    #[test]
    fn a_link_that_leads_back_ends() {
        let mut stack = stack(&[("inner", 7), ("outer", 3)]);
        let (first, last) = (stack.frames[0].at(), stack.frames.pop().expect("two"));
        let _last = last.word(8, first);
        let (walked, _) = walked(stack.state.at());
        assert_eq!(walked.frames.len(), MOST_FRAMES);
        assert!(walked.cut);
    }

    #[test]
    fn a_frame_whose_code_is_none_discards_the_walk() {
        let mut stack = stack(&[("inner", 7), ("outer", 3)]);
        let inner = stack.frames.remove(0);
        for wrong in [0, 8, inner.at(), u64::MAX - 7] {
            let inner = Made(inner.0.clone()).word(0, wrong);
            let cframe = Made::new(8).word(0, inner.at());
            let state = Made::new(256).word(56, cframe.at());
            let (walked, walks) = walked(state.at());
            assert!(walked.frames.is_empty(), "{wrong:x}");
            assert_eq!(walks.discarded, ATTEMPTS);
        }
    }

    #[test]
    fn only_frames_that_both_walks_found_count() {
        let raw =
            |address: u64, previous: u64, position: u64| Raw { address, previous, code: 16, position, is_code: true };
        let first = [raw(300, 200, 1), raw(200, 100, 1), raw(100, 0, 1)];
        let went_on = [raw(300, 200, 9), raw(200, 100, 1), raw(100, 0, 1)];
        let returned = [raw(200, 100, 5), raw(100, 0, 1)];
        let another = [raw(300, 208, 1), raw(208, 100, 1), raw(100, 0, 1)];
        assert_eq!(agreed(&first, &went_on, false), 3);
        assert_eq!(agreed(&first, &returned, false), 2);
        assert_eq!(agreed(&first, &another, false), 1);
        let reused = [Raw { code: 24, ..first[0] }, first[1], first[2]];
        assert_eq!(agreed(&first, &reused, false), 2, "another function's frame, at the same address");
        assert_eq!(agreed(&first, &[], false), 0);
        assert_eq!(agreed(&first, &went_on, true), 0, "behind a limit nothing may have moved");
        assert_eq!(agreed(&first, &first, true), 3);
    }
}
