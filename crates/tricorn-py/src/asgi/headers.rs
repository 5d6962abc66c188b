//! Header fields as ASGI has them: `(name, value)` in bytes, names in lower case. Those that come again and again are made
//! once: a pair of bytes cannot be changed, so that requests may share it.
use crate::text::{Names, is_secret};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use rustc_hash::FxHasher;
use std::hash::Hasher;
use tricorn_proto::message::RequestHead;

/// Places for pairs; each has one, the newcomer stays.
const PLACES: usize = 1024;
/// Longest value worth keeping.
const LONGEST: usize = 256;

struct Pair {
    name: Box<[u8]>,
    value: Box<[u8]>,
    tuple: Py<PyTuple>,
}

pub struct Headers {
    places: Vec<Option<Pair>>,
    names: Names<PyBytes>,
}

impl Headers {
    pub fn new() -> Headers {
        Headers { places: (0..PLACES).map(|_| None).collect(), names: Names::new() }
    }

    /// The fields of a head; `bytes` are those its spans point into.
    pub fn list<'py>(&mut self, py: Python<'py>, head: &RequestHead, bytes: &[u8]) -> PyResult<Bound<'py, PyList>> {
        // SAFETY: a new list whose places are filled below; one that is not because of an error holds null there, which is
        // how a list looks while it is made (listobject.h).
        let list = unsafe {
            let list = ffi::PyList_New(head.fields.len() as ffi::Py_ssize_t);
            Bound::from_owned_ptr_or_err(py, list)?.cast_into_unchecked::<PyList>()
        };
        for (index, field) in head.fields.iter().enumerate() {
            let pair = self.pair(py, field.name.of(bytes), field.value.of(bytes))?;
            // SAFETY: the place is within the list and holds nothing yet; the reference is given away.
            unsafe { ffi::PyList_SET_ITEM(list.as_ptr(), index as ffi::Py_ssize_t, pair.into_ptr()) };
        }
        Ok(list)
    }

    /// Puts a field (its name in lower case) in the place of those of this name.
    pub fn set_one(&self, list: &Bound<'_, PyList>, field: (&[u8], &[u8])) -> PyResult<()> {
        let py = list.py();
        let name = PyBytes::new(py, field.0);
        for index in (0..list.len()).rev() {
            if list.get_item(index)?.get_item(0)?.eq(&name)? {
                list.del_item(index)?;
            }
        }
        list.append(PyTuple::new(py, [name, PyBytes::new(py, field.1)])?)
    }

    #[inline]
    fn pair<'py>(&mut self, py: Python<'py>, name: &[u8], value: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
        if value.len() > LONGEST || is_secret(name) {
            return self.make(py, name, value);
        }
        let place = place_of(name, value);
        if let Some(pair) = &self.places[place]
            && *pair.value == *value
            && *pair.name == *name
        {
            return Ok(pair.tuple.bind(py).clone());
        }
        let tuple = self.make(py, name, value)?;
        self.places[place] = Some(Pair { name: name.into(), value: value.into(), tuple: tuple.clone().unbind() });
        Ok(tuple)
    }

    #[cold]
    fn make<'py>(&mut self, py: Python<'py>, name: &[u8], value: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
        let made;
        let name = match self.names.find(name) {
            Some(name) => name.bind(py),
            None => {
                made = self.names.keep(name, PyBytes::new(py, &name.to_ascii_lowercase()));
                &made
            }
        };
        PyTuple::new(py, [name, &PyBytes::new(py, value)])
    }
}

fn place_of(name: &[u8], value: &[u8]) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.write(value);
    // The upper bits of a multiplicative hash are the well-mixed ones.
    (hasher.finish() >> 32) as usize % PLACES
}
