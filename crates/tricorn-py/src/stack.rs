//! Python stacks that no thread is at: those of greenlets that wait.
use pyo3::intern;
use pyo3::prelude::*;
use tricorn_io::{Frames, PyFrame};

/// One more than are told of a late call, so that it is told that there are more.
const MOST: usize = 101;

/// The frames from this one on, the innermost first. What cannot be read of them ends them.
pub fn frames_from(frame: Bound<'_, PyAny>) -> Frames {
    let mut frames = Frames::new();
    let mut next = Some(frame);
    while let Some(frame) = next.filter(|frame| !frame.is_none() && frames.len() < MOST) {
        let Ok(read) = read(&frame) else { break };
        frames.push(read);
        next = frame.getattr(intern!(frame.py(), "f_back")).ok();
    }
    frames
}

fn read(frame: &Bound<'_, PyAny>) -> PyResult<PyFrame> {
    let py = frame.py();
    let code = frame.getattr(intern!(py, "f_code"))?;
    let text = |name| code.getattr(name).map(|text| text.to_string());
    let line = frame.getattr(intern!(py, "f_lineno"))?.extract().unwrap_or(0);
    Ok(PyFrame { file: text(intern!(py, "co_filename"))?, function: text(intern!(py, "co_name"))?, line })
}
