//! Finds the line of an instruction in a code object's table. Pure.
use super::layout::Table;

/// None: the instruction has no line, or the table does not reach it.
pub fn line_of(form: Table, table: &[u8], first_line: i32, instruction: u64) -> Option<i32> {
    match form {
        Table::Pairs => by_pairs(table, first_line, instruction),
        Table::Locations => by_locations(table, first_line, instruction),
    }
}

/// 3.10 (Objects/lnotab_notes.txt): a pair covers `delta` bytes of code; its line is relative to the pair before, -128 is none.
fn by_pairs(table: &[u8], first_line: i32, instruction: u64) -> Option<i32> {
    let (mut line, mut end) = (first_line, 0_u64);
    for pair in table.chunks_exact(2) {
        let step = i8::from_ne_bytes([pair[1]]);
        end += u64::from(pair[0]);
        if step != i8::MIN {
            line = line.checked_add(i32::from(step))?;
        }
        if instruction < end {
            return (step != i8::MIN).then_some(line);
        }
    }
    None
}

/// 3.11 (Objects/locations.md): an entry begins with a byte whose top bit is set; four bits of kind, three of its length in units.
fn by_locations(table: &[u8], first_line: i32, instruction: u64) -> Option<i32> {
    let (mut line, mut end, mut at) = (first_line, 0_u64, 0_usize);
    while let Some(&first) = table.get(at) {
        let kind = first >> 3 & 15;
        end += (u64::from(first & 7) + 1) * 2;
        at += 1;
        let has_line = kind != 15;
        match kind {
            // Columns only.
            0..=9 => at += 1,
            10..=12 => {
                line = line.checked_add(i32::from(kind) - 10)?;
                at += 2;
            }
            13 | 14 => {
                line = line.checked_add(signed(table, &mut at)?)?;
                // The line where it ends, and two columns.
                for _ in 0..if kind == 14 { 3 } else { 0 } {
                    unsigned(table, &mut at)?;
                }
            }
            _ => {}
        }
        if instruction < end {
            return has_line.then_some(line);
        }
    }
    None
}

/// Six bits a byte, the lowest first; bit 6 says that there are more.
fn unsigned(table: &[u8], at: &mut usize) -> Option<u32> {
    let (mut value, mut shift) = (0_u32, 0);
    loop {
        let byte = *table.get(*at)?;
        *at += 1;
        value |= u32::from(byte & 63).checked_shl(shift)?;
        if byte & 64 == 0 {
            return Some(value);
        }
        shift += 6;
    }
}

fn signed(table: &[u8], at: &mut usize) -> Option<i32> {
    let value = unsigned(table, at)?;
    let size = i32::try_from(value >> 1).ok()?;
    Some(if value & 1 == 1 { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What CPython itself says of the same code: `crates/tricorn-doctor/line_tables.py` has asked each version.
    fn check(form: Table, table: &str, first_line: i32, lines: &[Option<i32>]) {
        let bytes: Vec<u8> =
            (0..table.len()).step_by(2).map(|at| u8::from_str_radix(&table[at..at + 2], 16).expect("hex")).collect();
        let told: Vec<_> = (0..lines.len()).map(|unit| line_of(form, &bytes, first_line, unit as u64 * 2)).collect();
        assert_eq!(told, lines);
    }

    include!("lines_vectors.rs");

    #[test]
    fn a_table_that_is_cut_or_rubbish_ends() {
        for byte in 0..=255_u8 {
            for length in 0..9 {
                let table = vec![byte; length];
                for form in [Table::Pairs, Table::Locations] {
                    let _ = line_of(form, &table, i32::MAX, 1 << 20);
                    let _ = line_of(form, &table, 1, 0);
                }
            }
        }
    }
}
