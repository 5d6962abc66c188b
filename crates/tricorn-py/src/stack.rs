//! Python stacks that no thread is at: those of greenlets that wait.
use pyo3::intern;
use pyo3::prelude::*;

/// As many as faulthandler writes.
const FRAMES: usize = 100;
/// A line must fit the pipe to the arbiter in one write (PIPE_BUF).
const LINE: usize = 1024;

/// The stack from this frame on, in faulthandler's lines. What cannot be read of it ends it.
pub fn stack_from(frame: Bound<'_, PyAny>) -> Vec<u8> {
    let mut lines = b"Stack (most recent call first):\n".to_vec();
    let mut next = Some(frame);
    for _ in 0..FRAMES {
        let Some(frame) = next.filter(|frame| !frame.is_none()) else { return lines };
        let Ok(line) = line_of(&frame) else { return lines };
        let mut end = line.len().min(LINE);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        lines.extend_from_slice(line[..end].replace(['\n', '\r'], " ").as_bytes());
        lines.push(b'\n');
        next = frame.getattr(intern!(frame.py(), "f_back")).ok();
    }
    lines.extend_from_slice(b"  ...\n");
    lines
}

fn line_of(frame: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = frame.py();
    let code = frame.getattr(intern!(py, "f_code"))?;
    let (file, name) = (code.getattr(intern!(py, "co_filename"))?, code.getattr(intern!(py, "co_name"))?);
    Ok(format!("  File \"{file}\", line {} in {name}", frame.getattr(intern!(py, "f_lineno"))?))
}
