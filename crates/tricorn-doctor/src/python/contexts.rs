//! Finds the contexts (`contextvars`) in which a thread runs, to tell requests of an event loop or a hub apart.
//!
//! ```text
//!   PyThreadState.context ──▶ PyContext ──ctx_prev──▶ the one that was entered before
//!                                 └──ctx_vars──▶ HAMT: nodes of (variable, value) and of nodes
//! ```
//!
//! `PyContext` and the nodes have had these fields since 3.7. Where the thread state has its context no table tells: a caller finds it out
//! ([`offsets_of`]), in its own process.
use super::runtime::plausible;
use crate::memory::Memory;

/// What is known of a thread: its state, where that has its context, and the variable that names a request (0: none does).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    pub state: u64,
    pub context: u64,
    pub variable: u64,
}

/// For each context of the thread, from the innermost one on: its address, and the object that the variable has in it.
pub fn identities(memory: &Memory, marks: Marks) -> Vec<u64> {
    let mut found = Vec::new();
    let mut next = memory.word(marks.state + marks.context);
    while let Some(context) = next.filter(|&context| plausible(context) && found.len() < 2 * MOST_CONTEXTS) {
        let Some([previous, variables]) = words::<2>(memory, context + HEAD) else { break };
        found.push(context);
        if marks.variable != 0
            && let Some(root) = memory.word(variables.wrapping_add(HEAD)).filter(|_| plausible(variables))
        {
            found.extend(value(memory, root, marks.variable, &mut MOST_NODES.clone()));
        }
        next = Some(previous);
    }
    found
}

/// What a key has below a node. Looked for everywhere: there are few variables, and the hash is the interpreter's affair.
fn value(memory: &Memory, node: u64, key: u64, left: &mut usize) -> Option<u64> {
    if !plausible(node) || *left == 0 {
        return None;
    }
    *left -= 1;
    let [kind, size] = words::<2>(memory, node + 8)?;
    let name = memory.bytes::<8>(memory.word(kind.wrapping_add(TYPE_NAME))?)?;
    let pairs = |from: u64| {
        let count = usize::try_from(size).ok().filter(|&count| count <= MOST_ENTRIES && count.is_multiple_of(2))?;
        let mut bytes = [0; 8 * MOST_ENTRIES];
        let bytes = &mut bytes[..8 * count];
        memory.read(node + from, bytes)?;
        let words: Vec<u64> =
            bytes.chunks_exact(8).filter_map(|each| Some(u64::from_ne_bytes(*each.first_chunk()?))).collect();
        Some(words)
    };
    // `hamt_bitmap_node`, `hamt_array_node`, `hamt_collision_node`.
    match &name {
        b"hamt_bit" | b"hamt_col" => {
            for pair in pairs(PAIRS)?.chunks_exact(2) {
                match *pair {
                    [0, inner] => match value(memory, inner, key, left) {
                        None => {}
                        found => return found,
                    },
                    [this, found] if this == key => return Some(found),
                    _ => {}
                }
            }
            None
        }
        b"hamt_arr" => {
            let inner = words::<CHILDREN>(memory, node + HEAD)?;
            inner.into_iter().filter(|&inner| inner != 0).find_map(|inner| value(memory, inner, key, left))
        }
        _ => None,
    }
}

fn words<const COUNT: usize>(memory: &Memory, address: u64) -> Option<[u64; COUNT]> {
    let mut bytes = [[0_u8; 8]; COUNT];
    memory.read(address, bytes.as_flattened_mut())?;
    Some(bytes.map(u64::from_ne_bytes))
}

/// Where in an object of this process a word stands, in its first bytes. The kernel copies, so that any address may be given.
pub fn offsets_of(object: u64, word: u64) -> Vec<u64> {
    let Ok(memory) = Memory::open(std::process::id(), object) else { return Vec::new() };
    let bytes = memory.up_to(object, OBJECT);
    let places = bytes.chunks_exact(8).enumerate();
    places.filter(|(_, each)| *each == word.to_ne_bytes()).map(|(place, _)| 8 * place as u64).collect()
}

/// `PyObject`: a count of references and a type. Builds without a GIL have longer ones, and no variable is found there.
const HEAD: u64 = 16;
/// Behind `PyVarObject` and a word that is not used here (a bitmap, a hash).
const PAIRS: u64 = 32;
/// `PyTypeObject.tp_name`.
const TYPE_NAME: u64 = 24;
const CHILDREN: usize = 32;
const MOST_CONTEXTS: usize = 4;
const MOST_NODES: usize = 64;
const MOST_ENTRIES: usize = 64;
/// Bytes of a thread state that are looked through.
const OBJECT: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects that stay where they are, as the interpreter would have made them.
    struct Made(Vec<Box<[u64]>>);

    impl Made {
        fn add(&mut self, words: Vec<u64>) -> u64 {
            self.0.push(words.into_boxed_slice());
            self.0.last().map_or(0, |made| made.as_ptr() as u64)
        }

        fn kind(&mut self, name: &[u8; 8]) -> u64 {
            let name = self.add(vec![u64::from_ne_bytes(*name)]);
            self.add(vec![1, 0, 0, name])
        }

        fn context(&mut self, previous: u64, root: u64) -> u64 {
            let variables = self.add(vec![1, 0, root, 0, 0]);
            self.add(vec![1, 0, previous, variables])
        }
    }

    const VARIABLE: u64 = 0x7000;

    fn told(made: &mut Made, context: u64) -> Vec<u64> {
        let state = made.add(vec![0, context]);
        let memory = Memory::open(std::process::id(), state).expect("our own memory");
        identities(&memory, Marks { state, context: 8, variable: VARIABLE })
    }

    #[test]
    fn the_variable_is_found_in_any_kind_of_node_and_in_what_was_entered_before() {
        let made = &mut Made(Vec::new());
        let (bitmap, array, collision) = (made.kind(b"hamt_bit"), made.kind(b"hamt_arr"), made.kind(b"hamt_col"));
        let inner = made.add(vec![1, bitmap, 2, 0, VARIABLE, 0x1111]);
        let mut children = vec![1, array];
        children.extend([0; CHILDREN]);
        children[2 + 5] = inner;
        let middle = made.add(children);
        let root = made.add(vec![1, bitmap, 4, 0, 0x8000, 5, 0, middle]);
        let outer = made.context(0, root);
        let other = made.add(vec![1, collision, 4, 0, 0x9000, 4, VARIABLE, 0x2222]);
        let context = made.context(outer, other);
        assert_eq!(told(made, context), [context, 0x2222, outer, 0x1111]);
    }

    #[test]
    fn what_is_no_context_and_circles_have_an_end() {
        let made = &mut Made(Vec::new());
        assert!(told(made, 0).is_empty() && told(made, 16).is_empty());
        let bitmap = made.kind(b"hamt_bit");
        let mut node = made.add(vec![1, bitmap, 2, 0, 0, 0]);
        let last = made.0.len() - 1;
        made.0[last][5] = node;
        node = made.0[last].as_ptr() as u64;
        let context = made.context(0, node);
        let last = made.0.len() - 1;
        made.0[last][2] = context;
        assert_eq!(told(made, context), [context; 2 * MOST_CONTEXTS]);
        let long = made.add(vec![1, bitmap, 1 << 40, 0]);
        let context = made.context(0, long);
        assert_eq!(told(made, context), [context]);
    }

    #[test]
    fn a_word_is_found_in_an_object_of_our_own() {
        let object = [7_u64, 8, 9, 8];
        assert_eq!(offsets_of(object.as_ptr() as u64, 9).first(), Some(&16));
        assert_eq!(&offsets_of(object.as_ptr() as u64, 8)[..2], [8, 24]);
        assert!(offsets_of(16, 8).is_empty());
    }
}
