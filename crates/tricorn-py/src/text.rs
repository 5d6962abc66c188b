//! Bytes from the wire as Python strings (latin-1, PEP 3333 "Unicode Issues"), with a cache for those that repeat.
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::types::string::PyStringData;
use rustc_hash::FxHasher;
use std::hash::Hasher;

/// A new string of these bytes.
pub fn latin1<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    // SAFETY: the pointer and length are of one slice; a null result carries the error (MemoryError).
    unsafe {
        let text = ffi::PyUnicode_DecodeLatin1(bytes.as_ptr().cast(), bytes.len() as ffi::Py_ssize_t, std::ptr::null());
        Ok(Bound::from_owned_ptr_or_err(py, text)?.cast_into_unchecked())
    }
}

/// A new string of this text. A long one that is ASCII, as most are, is copied without being looked at by Python again.
pub fn utf8<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    if text.len() < WORTH_LOOKING || !text.is_ascii() {
        return Ok(PyString::new(py, text));
    }
    // SAFETY: a new string of so many ASCII characters, which no other code has seen yet, holds a byte for each; null carries
    // the error.
    unsafe {
        let string = ffi::PyUnicode_New(text.len() as ffi::Py_ssize_t, 0x7f);
        let string = Bound::from_owned_ptr_or_err(py, string)?;
        let data = ffi::PyUnicode_DATA(string.as_ptr()).cast::<u8>();
        data.copy_from_nonoverlapping(text.as_ptr(), text.len());
        Ok(string.cast_into_unchecked())
    }
}

/// The latin-1 bytes of a string; `None` if it has characters beyond.
#[inline]
pub fn as_latin1<'a>(text: &'a Bound<'_, PyString>) -> Option<&'a [u8]> {
    ascii(text).or_else(|| any_latin1(text))
}

fn any_latin1<'a>(text: &'a Bound<'_, PyString>) -> Option<&'a [u8]> {
    // SAFETY: strings are immutable, and the borrow keeps this one alive.
    match unsafe { text.data() } {
        Ok(PyStringData::Ucs1(bytes)) => Some(bytes),
        _ => None,
    }
}

/// The characters of a string that is ASCII, as nearly all are. They follow its header, whose fields tell of them (PEP 393).
#[cfg(not(Py_3_14))]
#[inline]
fn ascii<'a>(text: &'a Bound<'_, PyString>) -> Option<&'a [u8]> {
    let text = text.as_ptr();
    // SAFETY: a live string. Its bytes are immutable, and the borrow keeps it alive; a compact one has so many.
    unsafe {
        (ffi::PyUnicode_IS_COMPACT_ASCII(text) != 0).then(|| {
            std::slice::from_raw_parts(ffi::PyUnicode_DATA(text).cast::<u8>(), ffi::PyUnicode_GET_LENGTH(text) as usize)
        })
    }
}

/// From 3.14 on these fields are read by functions of CPython's.
#[cfg(Py_3_14)]
#[inline]
fn ascii<'a>(_text: &'a Bound<'_, PyString>) -> Option<&'a [u8]> {
    None
}

/// Whether the values of this field should not be kept longer than the request.
pub fn is_secret(name: &[u8]) -> bool {
    match name.len() {
        6 => name.eq_ignore_ascii_case(b"cookie"),
        13 => name.eq_ignore_ascii_case(b"authorization"),
        _ => false,
    }
}

/// What stands between the values of a field that came in several lines. RFC 9110 section 5.3 has a comma; in a cookie a
/// comma is a part of its value, and RFC 9113 section 8.2.3 has `; ` for it.
pub fn separator(name: &[u8]) -> &'static [u8] {
    if name.eq_ignore_ascii_case(b"cookie") { b"; " } else { b"," }
}

/// From this length on a look for ASCII pays off.
const WORTH_LOOKING: usize = 1024;
/// Longest text worth keeping.
const LONGEST: usize = 96;
const PLACES: usize = 512;

/// Strings that came before: header values, paths. One per app thread; each text has one place, the newcomer stays.
pub struct Cache {
    places: Vec<Option<Py<PyString>>>,
}

impl Cache {
    pub fn new() -> Cache {
        Cache { places: (0..PLACES).map(|_| None).collect() }
    }

    /// The string of these bytes, made or found.
    #[inline]
    pub fn get<'py>(&mut self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
        if bytes.len() > LONGEST {
            return latin1(py, bytes);
        }
        let place = &mut self.places[place_of(bytes, PLACES)];
        if let Some(text) = place {
            let text = text.bind(py);
            if as_latin1(text) == Some(bytes) {
                return Ok(text.clone());
            }
        }
        let text = latin1(py, bytes)?;
        *place = Some(text.clone().unbind());
        Ok(text)
    }
}

/// Longest header name worth keeping.
const LONGEST_NAME: usize = 64;
/// Pairs of places for header names.
const PAIRS: usize = 512;

/// Header names that came before, and what was made of each. A name has two places that it shares with others: two names of
/// one request that share them do not displace one another, and names that are not sent any more give way.
pub struct Names<T> {
    places: Vec<[Option<KeptName<T>>; 2]>,
}

struct KeptName<T> {
    name: Box<[u8]>,
    made: Py<T>,
}

impl<T> Names<T> {
    pub fn new() -> Names<T> {
        Names { places: (0..PAIRS).map(|_| [None, None]).collect() }
    }

    /// What was made of this name.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&Py<T>> {
        let pair = &self.places[place_of(name, PAIRS)];
        pair.iter().flatten().find(|kept| *kept.name == *name).map(|kept| &kept.made)
    }

    /// Keeps what was made of a name that was not found, in place of the older of two.
    #[cold]
    pub fn keep<'py>(&mut self, name: &[u8], made: Bound<'py, T>) -> Bound<'py, T> {
        if name.len() <= LONGEST_NAME {
            let pair = &mut self.places[place_of(name, PAIRS)];
            pair.swap(0, 1);
            pair[0] = Some(KeptName { name: name.into(), made: made.clone().unbind() });
        }
        made
    }
}

fn place_of(bytes: &[u8], places: usize) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    // The upper bits of a multiplicative hash are the well-mixed ones.
    (hasher.finish() >> 32) as usize % places
}
