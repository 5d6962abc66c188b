//! The Huffman code of strings (RFC 7541 section 5.2): four bits at a time through a table that the compiler builds.
use super::huffman_codes::CODES;

/// Appends what `coded` stands for. `false` if it is no valid code.
///
/// RFC 7541 section 5.2: "A padding strictly longer than 7 bits MUST be treated as a decoding error. A padding not
/// corresponding to the most significant bits of the code for the EOS symbol MUST be treated as a decoding error. A
/// Huffman-encoded string literal containing the EOS symbol MUST be treated as a decoding error."
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> bool {
    // The shortest code has five bits.
    out.reserve(coded.len() * 8 / 5);
    let mut node = 0;
    for &octet in coded {
        for nibble in [octet >> 4, octet & 15] {
            let step = STEPS[node as usize][nibble as usize];
            match step.kind {
                Kind::Inner => {}
                Kind::Symbol => out.push(step.symbol),
                Kind::Invalid => return false,
            }
            node = step.next;
        }
    }
    IS_PADDING[node as usize]
}

/// Octets of `text` in the code.
pub(super) fn encoded_length(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(CODES[byte as usize].1)).sum();
    bits.div_ceil(8)
}

/// Appends `text` in the code.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0u64, 0u32);
    for &byte in text {
        let (code, length) = CODES[byte as usize];
        bits = bits << length | u64::from(code);
        count += u32::from(length);
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        let padding = 8 - count;
        out.push((bits << padding) as u8 | ((1 << padding) - 1) as u8);
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Inner,
    Symbol,
    /// EOS.
    Invalid,
}

/// Where four bits lead from an inner node of the tree. The shortest code has five, so there is at most one symbol.
#[derive(Clone, Copy)]
struct Step {
    next: u8,
    symbol: u8,
    kind: Kind,
}

/// A full binary tree of 257 leaves has 256 inner nodes.
const NODES: usize = 256;
/// Children below this are inner nodes, the others are `LEAF` and a symbol.
const LEAF: u16 = 256;

const TREE: [[u16; 2]; NODES] = tree();
static STEPS: [[Step; 16]; NODES] = steps();
/// Whether a string may end at this node: the root, or up to seven bits of EOS, which is all ones, from it.
static IS_PADDING: [bool; NODES] = padding();

const fn tree() -> [[u16; 2]; NODES] {
    // 0 stands for a missing child: the root is the child of no node.
    let mut tree = [[0u16; 2]; NODES];
    let (mut symbol, mut nodes) = (0, 1);
    while symbol < CODES.len() {
        let (code, length) = CODES[symbol];
        let (mut node, mut bit) = (0, length as u32);
        while bit > 1 {
            bit -= 1;
            let side = (code >> bit & 1) as usize;
            if tree[node][side] == 0 {
                tree[node][side] = nodes;
                nodes += 1;
            }
            node = tree[node][side] as usize;
        }
        tree[node][(code & 1) as usize] = LEAF + symbol as u16;
        symbol += 1;
    }
    tree
}

const fn steps() -> [[Step; 16]; NODES] {
    let mut steps = [[Step { next: 0, symbol: 0, kind: Kind::Inner }; 16]; NODES];
    let mut start = 0;
    while start < NODES {
        let mut nibble = 0;
        while nibble < 16 {
            let mut step = Step { next: start as u8, symbol: 0, kind: Kind::Inner };
            let mut bit = 4;
            while bit > 0 {
                bit -= 1;
                let child = TREE[step.next as usize][nibble >> bit & 1];
                if child == LEAF + 256 {
                    step.kind = Kind::Invalid;
                    step.next = 0;
                } else if child >= LEAF {
                    step = Step { next: 0, symbol: (child - LEAF) as u8, kind: Kind::Symbol };
                } else {
                    step.next = child as u8;
                }
            }
            steps[start][nibble] = step;
            nibble += 1;
        }
        start += 1;
    }
    steps
}

const fn padding() -> [bool; NODES] {
    let mut padding = [false; NODES];
    let (mut node, mut bits) = (0, 0);
    while bits < 8 {
        padding[node] = true;
        node = TREE[node][1] as usize;
        bits += 1;
    }
    padding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_after_every_byte_survives() {
        for first in 0..=255u8 {
            for second in (0..=255u8).step_by(if cfg!(miri) { 51 } else { 1 }) {
                let (text, mut coded, mut decoded) = ([first, second, first], Vec::new(), Vec::new());
                encode(&text, &mut coded);
                assert_eq!(coded.len(), encoded_length(&text));
                assert!(decode(&coded, &mut decoded));
                assert_eq!(decoded, text);
            }
        }
    }

    #[test]
    fn wrong_padding_and_eos_are_errors() {
        let decodes = |coded: &[u8]| decode(coded, &mut Vec::new());
        // "0" is 00000; then three bits of padding.
        assert!(decodes(&[0b0000_0111]));
        assert!(!decodes(&[0b0000_0110]) && !decodes(&[0b0000_0000]));
        assert!(!decodes(&[0b0000_0111, 0xff]), "eleven bits of padding");
        assert!(!decodes(&[0xff]), "eight bits of padding");
        assert!(!decodes(&[0xff, 0xff, 0xff, 0xff]), "EOS");
        assert!(!decodes(&[0xff, 0xff, 0xff, 0b1111_1100, 0b0001_1111]), "EOS, then more");
    }
}
