//! Frames as the lines that faulthandler writes, for the arbiter's pipe (`python/tricorn/workers/messages.py`).
use tricorn_doctor::PyFrame;

/// As many as faulthandler writes.
const FRAMES: usize = 100;
/// A line must fit the pipe in one write (PIPE_BUF).
const LINE: usize = 1024;

/// A line for each of these frames, the innermost first.
pub fn stack_lines(frames: &[PyFrame]) -> impl Iterator<Item = Vec<u8>> {
    let head = std::iter::once(b"Stack (most recent call first):\n".to_vec());
    let rest = (frames.len() > FRAMES).then(|| b"  ...\n".to_vec());
    head.chain(frames.iter().take(FRAMES).map(line)).chain(rest)
}

fn line(PyFrame { file, function, line }: &PyFrame) -> Vec<u8> {
    let line = format!("  File \"{file}\", line {line} in {function}");
    let end = (0..=line.len().min(LINE)).rev().find(|end| line.is_char_boundary(*end)).unwrap_or_default();
    let mut text = line[..end].replace(['\n', '\r'], " ").into_bytes();
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(frames: &[PyFrame]) -> String {
        String::from_utf8(stack_lines(frames).flatten().collect()).expect("UTF-8")
    }

    fn frame(file: &str, line: i32) -> PyFrame {
        PyFrame { file: file.into(), function: "wait".into(), line }
    }

    #[test]
    fn frames_are_told_as_faulthandler_tells_them() {
        let told = text(&[frame("a.py", 3), frame("b\n.py", 4)]);
        let expected =
            "Stack (most recent call first):\n  File \"a.py\", line 3 in wait\n  File \"b .py\", line 4 in wait\n";
        assert_eq!(told, expected);
    }

    #[test]
    fn a_stack_and_a_line_of_it_have_an_end() {
        let told = text(&vec![frame("a.py", 1); FRAMES + 1]);
        assert!(told.ends_with("in wait\n  ...\n"), "{told}");
        assert_eq!(told.lines().count(), FRAMES + 2);
        let long = text(&[frame(&"é".repeat(LINE), 1)]);
        assert!(long.lines().all(|line| line.len() <= LINE));
    }
}
