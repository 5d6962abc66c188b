//! What of `wsgi.file_wrapper` the kernel can send in place of Python.
//!
//! PEP 3333: a server may transmit the file as it likes, if the result is what iterating over `read` gives. So it is only done
//! for objects whose `read` is known to be the descriptor's: an `io.FileIO`, a buffered reader around one, and what `tempfile`
//! puts around those. All other objects may have a `fileno` of one thing and a `read` of another (`gzip.GzipFile`).
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::os::fd::RawFd;

struct Types {
    raw: Py<PyType>,
    buffered: [Py<PyType>; 2],
}

static TYPES: PyOnceLock<Types> = PyOnceLock::new();

/// The class in `tempfile`, and where its instances have the file itself.
const TEMPORARY: [(&str, &str); 2] = [("_TemporaryFileWrapper", "file"), ("SpooledTemporaryFile", "_file")];

/// Descriptor, position and size.
pub struct Regular {
    pub fd: RawFd,
    pub offset: u64,
    pub size: u64,
}

/// `None`: `read` has to tell what there is.
pub fn regular(filelike: &Bound<'_, PyAny>) -> Option<Regular> {
    let file = within_temporary(filelike).unwrap_or_else(|| filelike.clone());
    is_plain(&file).then_some(())?;
    let fd: RawFd = file.call_method0(intern!(file.py(), "fileno")).ok()?.extract().ok()?;
    // The object's own idea of the position: the descriptor's is ahead of it where reads are buffered.
    let offset: u64 = file.call_method0(intern!(file.py(), "tell")).ok()?.extract().ok()?;
    let size = tricorn_io::stored_size(fd)?;
    Some(Regular { fd, offset, size })
}

fn within_temporary<'py>(filelike: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let py = filelike.py();
    let modules = py.import(intern!(py, "sys")).ok()?.getattr(intern!(py, "modules")).ok()?;
    let tempfile = modules.get_item(intern!(py, "tempfile")).ok()?;
    let (_, inner) = TEMPORARY
        .iter()
        .find(|(class, _)| tempfile.getattr(*class).is_ok_and(|class| filelike.get_type().as_any().is(&class)))?;
    filelike.getattr(*inner).ok()
}

fn is_plain(file: &Bound<'_, PyAny>) -> bool {
    let py = file.py();
    let Ok(types) = TYPES.get_or_try_init(py, || Types::new(py)) else { return false };
    let is_exactly = |object: &Bound<'_, PyAny>, class: &Py<PyType>| object.get_type().is(class.bind(py));
    let is_buffered = types.buffered.iter().any(|class| is_exactly(file, class));
    let raw = if is_buffered { file.getattr(intern!(py, "raw")) } else { Ok(file.clone()) };
    raw.is_ok_and(|raw| is_exactly(&raw, &types.raw))
}

impl Types {
    fn new(py: Python<'_>) -> PyResult<Types> {
        let io = py.import("io")?;
        let class = |name: &str| Ok::<_, PyErr>(io.getattr(name)?.cast_into::<PyType>()?.unbind());
        Ok(Types { raw: class("FileIO")?, buffered: [class("BufferedReader")?, class("BufferedRandom")?] })
    }
}
