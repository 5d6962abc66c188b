//! Offsets of the fields in CPython's structures.
//!
//! From 3.13 on the interpreter tells it: `_PyRuntime` begins with `_Py_DebugOffsets`. For 3.10 to 3.12 there is a table of ours, a row
//! for each minor version, written down from `offsetof` on the headers of that version (docs/internals/diagnosis.md says how). A row is
//! not believed: `runtime.rs` looks whether the threads it leads to are threads of that process.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub interpreters: Interpreters,
    pub gil: Gil,
    pub thread: Thread,
    pub frame: Frame,
    pub code: Code,
    pub text: Text,
}

/// `_PyRuntimeState` and `PyInterpreterState`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreters {
    pub head: u64,
    pub next: u64,
    pub threads: u64,
    /// An int that is 1 while garbage is collected (`gc.collecting`).
    pub collecting: u64,
}

/// `struct _gil_runtime_state`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gil {
    pub at: GilAt,
    pub holder: u64,
    pub locked: u64,
    /// Its size, which includes the mutexes and conditions on which threads wait for it.
    pub size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GilAt {
    /// One for all interpreters.
    Runtime(u64),
    /// An interpreter points to it.
    Interpreter(u64),
    /// A free-threaded build, whose GIL is off.
    Nowhere,
}

/// `PyThreadState`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub next: u64,
    pub interpreter: u64,
    /// pthread_self().
    pub ident: u64,
    /// gettid(): since 3.11.
    pub native: Option<u64>,
    /// The innermost frame, or where it stands: behind a `_PyCFrame` in 3.11 and 3.12.
    pub frame: u64,
    pub cframe: Option<u64>,
}

/// `PyFrameObject` in 3.10, `_PyInterpreterFrame` since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub size: u64,
    pub previous: u64,
    pub code: u64,
    pub position: Position,
    /// Who owns it; from this value on it is no frame of Python code.
    pub owner: Option<(u64, u8)>,
}

/// How a frame tells which instruction it is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// An int, in units of two bytes.
    Index(u64),
    /// A pointer into the code.
    Pointer(u64),
}

/// `PyCodeObject`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    pub size: u64,
    pub file: u64,
    /// Its qualified name where there is one (3.11), else its name.
    pub name: u64,
    pub first_line: u64,
    pub lines: u64,
    pub instructions: Instructions,
    pub table: Table,
    /// Opcodes that go back in the same loop: a frame that is always seen at one of them runs.
    pub jumps: &'static [u8],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// They follow the code object, from here on.
    Inside(u64),
    /// It points to a `bytes`.
    Bytes(u64),
}

/// The form of `co_linetable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// PEP 626: pairs of bytes.
    Pairs,
    /// The location table of 3.11.
    Locations,
}

/// `PyASCIIObject`, `PyBytesObject`, `PyObject`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub kind: u64,
    pub length: u64,
    pub state: u64,
    /// Where the characters are: of ASCII, and of others.
    pub ascii: u64,
    pub compact: u64,
    pub bytes_length: u64,
    pub bytes_start: u64,
}

const TEXT_310: Text =
    Text { kind: 8, length: 16, state: 32, ascii: 48, compact: 72, bytes_length: 16, bytes_start: 32 };
const TEXT_312: Text = Text { ascii: 40, compact: 56, ..TEXT_310 };

const fn gil(at: GilAt) -> Gil {
    Gil { at, holder: 8, locked: 16, size: GIL_SIZE }
}

/// Two conditions and two mutexes behind four words.
const GIL_SIZE: u64 = 32 + 2 * (size_of::<libc::pthread_cond_t>() + size_of::<libc::pthread_mutex_t>()) as u64;

/// The rows for the versions that do not tell.
pub fn of_version(minor: u8) -> Option<Layout> {
    Some(match minor {
        10 => Layout {
            interpreters: Interpreters { head: 32, next: 0, threads: 8, collecting: 616 + 200 },
            gil: gil(GilAt::Runtime(352)),
            thread: Thread { next: 8, interpreter: 16, ident: 176, native: None, frame: 24, cframe: None },
            frame: Frame { size: 112, previous: 24, code: 32, position: Position::Index(96), owner: None },
            code: Code {
                size: 176,
                file: 104,
                name: 112,
                first_line: 40,
                lines: 120,
                instructions: Instructions::Bytes(48),
                table: Table::Pairs,
                jumps: jumps(10),
            },
            text: TEXT_310,
        },
        11 => Layout {
            interpreters: Interpreters { head: 40, next: 0, threads: 16, collecting: 648 + 200 },
            gil: gil(GilAt::Runtime(360)),
            thread: Thread { next: 8, interpreter: 16, ident: 152, native: Some(160), frame: 8, cframe: Some(56) },
            frame: Frame { size: 72, previous: 48, code: 32, position: Position::Pointer(56), owner: Some((69, 3)) },
            code: Code {
                size: 192,
                file: 112,
                name: 128,
                first_line: 72,
                lines: 136,
                instructions: Instructions::Inside(184),
                table: Table::Locations,
                jumps: jumps(11),
            },
            text: TEXT_310,
        },
        12 => Layout {
            interpreters: Interpreters { head: 40, next: 0, threads: 72, collecting: 112 + 200 },
            gil: gil(GilAt::Interpreter(384)),
            thread: Thread { next: 8, interpreter: 16, ident: 136, native: Some(144), frame: 0, cframe: Some(56) },
            frame: Frame { size: 72, previous: 8, code: 0, position: Position::Pointer(56), owner: Some((70, 3)) },
            code: Code {
                size: 200,
                file: 112,
                name: 128,
                first_line: 68,
                lines: 136,
                instructions: Instructions::Inside(192),
                table: Table::Locations,
                jumps: jumps(12),
            },
            text: TEXT_312,
        },
        _ => return None,
    })
}

/// JUMP_BACKWARD and its specialised forms (JUMP_ABSOLUTE before 3.11), from opcode.h of each version.
const fn jumps(minor: u8) -> &'static [u8] {
    match minor {
        10 => &[113],
        11 => &[140, 38, 134],
        12 => &[140, 134, 246],
        13 => &[77, 78, 249],
        _ => &[],
    }
}

/// What `_PyRuntime` begins with since 3.13. None: it does not, or tells what cannot be.
pub fn of_debug_offsets(bytes: &[u8]) -> Option<(u8, Layout)> {
    let word = |index: usize| Some(u64::from_ne_bytes(*bytes.get(index * 8..)?.first_chunk()?));
    let version = word(1)?;
    let minor = u8::try_from(version >> 16 & 0xff).ok()?;
    if bytes.get(..8)? != b"xdebugpy" || version >> 24 != 3 {
        return None;
    }
    // The fields that are used, by their index among the words of the structure; each version has inserted some.
    let fields = match minor {
        13 => &FIELDS_313,
        14 => &FIELDS_314,
        _ => return None,
    };
    let small = |index: usize| word(index).filter(|&offset| offset < MOST_OFFSET);
    let ascii = small(fields.ascii)?;
    let gil_at = small(fields.gil)?;
    // Offsets within the interpreter, of a GIL that lies in it.
    let own = small(fields.gil + 1)?;
    let gil = Gil {
        at: if word(2)? == 0 { GilAt::Interpreter(gil_at) } else { GilAt::Nowhere },
        holder: small(fields.gil + 4)?.checked_sub(own)?,
        locked: small(fields.gil + 3)?.checked_sub(own)?,
        size: GIL_SIZE,
    };
    let layout = Layout {
        interpreters: Interpreters {
            head: small(5)?,
            next: small(8)?,
            threads: small(9)?,
            collecting: small(fields.gil - 4)? + small(fields.ascii + 2)?,
        },
        gil,
        thread: Thread {
            next: small(fields.thread + 2)?,
            interpreter: small(fields.thread + 3)?,
            ident: small(fields.thread + 5)?,
            native: Some(small(fields.thread + 6)?),
            frame: small(fields.thread + 4)?,
            cframe: None,
        },
        frame: Frame {
            size: small(fields.frame)?.min(96),
            previous: small(fields.frame + 1)?,
            code: small(fields.frame + 2)?,
            position: Position::Pointer(small(fields.frame + 3)?),
            owner: Some((small(fields.frame + 5)?, 3)),
        },
        code: Code {
            size: small(fields.code)?,
            file: small(fields.code + 1)?,
            name: small(fields.code + 3)?,
            first_line: small(fields.code + 5)?,
            lines: small(fields.code + 4)?,
            instructions: Instructions::Inside(small(fields.code + 9)?),
            table: Table::Locations,
            jumps: jumps(minor),
        },
        text: Text {
            kind: small(fields.object + 1)?,
            length: small(fields.ascii - 1)?,
            state: small(fields.ascii - 2)?,
            ascii,
            // Two words more: the length of its UTF-8, and a pointer to that.
            compact: ascii + 16,
            bytes_length: small(fields.bytes + 1)?,
            bytes_start: small(fields.bytes + 2)?,
        },
    };
    Some((minor, layout))
}

struct Fields {
    /// `ceval_gil`, and `gil_runtime_state` with three more behind it; `gc` stands four words before it.
    gil: usize,
    thread: usize,
    frame: usize,
    code: usize,
    object: usize,
    bytes: usize,
    /// `asciiobject_size`, and behind it the size of `gc` and its `collecting`.
    ascii: usize,
}

/// Three words, then `runtime_state` (3), `interpreter_state` (13), `thread_state` (9), `interpreter_frame` (6), `code_object` (10),
/// `pyobject` (2), `type_object` (4), `tuple_object` (3), `list_object` (3), `dict_object` (3), `float_object` (2), `long_object` (3),
/// `bytes_object` (3), `unicode_object` (4).
const FIELDS_313: Fields = Fields { gil: 14, thread: 19, frame: 28, code: 34, object: 44, bytes: 64, ascii: 70 };

/// `interpreter_state` has 16, `interpreter_frame` 8, `code_object` 11, and `set_object` (4) stands before `dict_object`.
const FIELDS_314: Fields = Fields { gil: 15, thread: 22, frame: 31, code: 39, object: 50, bytes: 74, ascii: 80 };

/// As many words as the versions above have up to `unicode_object`.
pub const DEBUG_OFFSETS_BYTES: usize = 8 * 84;

/// No structure is that large.
const MOST_OFFSET: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that 3.13.0 has, as its headers give them.
    fn debug_offsets() -> Vec<u8> {
        let mut words = vec![0_u64; DEBUG_OFFSETS_BYTES / 8];
        words[0] = u64::from_ne_bytes(*b"xdebugpy");
        words[1] = 0x030d_00f0;
        let known = [
            (5, 632),
            (8, 7264),
            (9, 7344),
            (10, 7400),
            (14, 16),
            (15, 1000),
            (17, 1016),
            (18, 1008), // the interpreter
            (21, 8),
            (22, 16),
            (23, 72),
            (24, 152),
            (25, 160), // a thread
            (28, 88),
            (29, 8),
            (30, 0),
            (31, 56),
            (33, 70), // a frame
            (34, 208),
            (35, 112),
            (36, 120),
            (37, 128),
            (38, 136),
            (39, 68),
            (43, 200), // code
            (45, 8),
            (65, 16),
            (66, 32),
            (68, 32),
            (69, 16),
            (70, 40),  // objects
            (72, 200), // the collector
        ];
        for (index, value) in known {
            words[index] = value;
        }
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    #[test]
    fn an_interpreter_that_tells_its_offsets_is_believed() {
        let (minor, layout) = of_debug_offsets(&debug_offsets()).expect("they are those of 3.13");
        assert_eq!(minor, 13);
        assert_eq!(layout.interpreters, Interpreters { head: 632, next: 7264, threads: 7344, collecting: 7600 });
        assert_eq!(layout.gil, Gil { at: GilAt::Interpreter(16), holder: 8, locked: 16, size: GIL_SIZE });
        assert_eq!(layout.thread.native, Some(160));
        assert_eq!(layout.frame.position, Position::Pointer(56));
        assert_eq!((layout.code.name, layout.code.lines, layout.code.first_line), (128, 136, 68));
        assert_eq!(
            (layout.text.state, layout.text.length, layout.text.ascii, layout.text.bytes_start),
            (32, 16, 40, 32)
        );
    }

    #[test]
    fn offsets_that_cannot_be_are_refused() {
        let good = debug_offsets();
        let with = |index: usize, value: u64| {
            let mut bytes = good.clone();
            bytes[index * 8..index * 8 + 8].copy_from_slice(&value.to_ne_bytes());
            of_debug_offsets(&bytes)
        };
        assert!(with(1, 0x0310_00f0).is_none(), "a version that is not known");
        assert!(with(23, 1 << 40).is_none(), "an offset beyond any structure");
        assert!(with(0, 0).is_none(), "no cookie");
        assert!(of_debug_offsets(&good[..200]).is_none(), "cut off");
        assert_eq!(with(2, 1).map(|(_, layout)| layout.gil.at), Some(GilAt::Nowhere), "free-threaded");
    }

    #[test]
    fn versions_that_do_not_tell_have_a_row() {
        assert!((10..=12).all(|minor| of_version(minor).is_some()));
        assert!(of_version(9).is_none() && of_version(13).is_none());
    }
}
