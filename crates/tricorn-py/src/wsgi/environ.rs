//! The environ of a request: a template copied, then what this request adds.
use super::handle::Handle;
use super::peer;
use crate::announced;
use crate::text::{self, Cache, Names, as_latin1, is_secret, latin1};
use crate::vars;
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyString};
use tricorn_io::{Body, Engine, Exchange};
use tricorn_proto::cgi::Vars;
use tricorn_proto::message::{Framing, Known, Scheme, target};
use tricorn_proto::peer::Claims;

/// A dictionary grows when two thirds full: with this many entries in the template its copies have room for as many again.
const PRESIZE: usize = 22;

/// Makes room in a dictionary and its copies, as [`PRESIZE`] says. A dictionary keeps the table to which it has grown, also
/// when entries are deleted. A full template would have each request's environ grow.
fn presize(dictionary: &Bound<'_, PyDict>) -> PyResult<()> {
    let more = PRESIZE.saturating_sub(dictionary.len());
    for number in 0..more {
        dictionary.set_item(format!("tricorn.{number}"), number)?;
    }
    for number in 0..more {
        dictionary.del_item(format!("tricorn.{number}"))?;
    }
    Ok(())
}

/// Keys of every request, interned once: a table, a name a row.
struct Keys {
    method: Py<PyString>,
    script_name: Py<PyString>,
    path_info: Py<PyString>,
    query: Py<PyString>,
    raw_uri: Py<PyString>,
    protocol: Py<PyString>,
    scheme: Py<PyString>,
    remote: Py<PyString>,
    remote_port: Py<PyString>,
    server: Py<PyString>,
    server_port: Py<PyString>,
    content_type: Py<PyString>,
    content_length: Py<PyString>,
    input: Py<PyString>,
    queue_time: Py<PyString>,
    request_id: Py<PyString>,
    http_request_id: Py<PyString>,
}

/// Where the application is mounted, and the path does not say so: the operator's mistake.
pub struct Misplaced(pub String);

pub enum Built<'py> {
    Environ(Bound<'py, PyDict>),
    Misplaced(Misplaced),
}

/// Makes environs; one per app thread.
pub struct Maker {
    keys: Keys,
    /// Environ keys.
    names: Names<PyString>,
    cache: Cache,
    /// The mount point given by the operator (`SCRIPT_NAME`), latin-1.
    mount: Vec<u8>,
    https: Py<PyString>,
    scratch: Vec<u8>,
}

impl Maker {
    pub fn new(py: Python<'_>, base: &Bound<'_, PyDict>) -> PyResult<Maker> {
        let key = |name: &str| PyString::intern(py, name).unbind();
        let mount = match base.get_item("SCRIPT_NAME")? {
            Some(mount) => mount.extract::<String>()?.chars().map(|c| c as u8).collect(),
            None => Vec::new(),
        };
        Ok(Maker {
            keys: Keys {
                method: key("REQUEST_METHOD"),
                script_name: key("SCRIPT_NAME"),
                path_info: key("PATH_INFO"),
                query: key("QUERY_STRING"),
                raw_uri: key("RAW_URI"),
                protocol: key("SERVER_PROTOCOL"),
                scheme: key("wsgi.url_scheme"),
                remote: key("REMOTE_ADDR"),
                remote_port: key("REMOTE_PORT"),
                server: key("SERVER_NAME"),
                server_port: key("SERVER_PORT"),
                content_type: key("CONTENT_TYPE"),
                content_length: key("CONTENT_LENGTH"),
                input: key("wsgi.input"),
                queue_time: key("tricorn.queue_time"),
                request_id: key("tricorn.request_id"),
                http_request_id: key("HTTP_X_REQUEST_ID"),
            },
            names: Names::new(),
            cache: Cache::new(),
            mount,
            https: key("https"),
            scratch: Vec::new(),
        })
    }

    /// The entries that most requests share, and placeholders for the rest, so that a copy has its final size.
    pub fn template<'py>(&self, base: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        let py = base.py();
        let template = base.copy()?;
        for (key, value) in [
            (&self.keys.method, "GET"),
            (&self.keys.script_name, ""),
            (&self.keys.path_info, ""),
            (&self.keys.query, ""),
            (&self.keys.raw_uri, ""),
            (&self.keys.protocol, "HTTP/1.1"),
            (&self.keys.scheme, "http"),
            (&self.keys.remote, ""),
            (&self.keys.remote_port, ""),
            (&self.keys.server, ""),
            (&self.keys.server_port, ""),
        ] {
            let key = key.bind(py);
            if !template.contains(key)? {
                template.set_item(key, PyString::intern(py, value))?;
            }
        }
        template.set_item(self.keys.queue_time.bind(py), 0.0)?;
        presize(&template)?;
        Ok(template)
    }

    pub fn build<'py>(
        &mut self,
        template: &Bound<'py, PyDict>,
        handle: &Py<Handle>,
        exchange: &mut Exchange,
    ) -> PyResult<Built<'py>> {
        let py = template.py();
        let environ = template.copy()?;
        if let Some(vars) = exchange.request.vars() {
            vars::fill_environ(&environ, &vars)?;
        }
        self.addresses(&environ, handle.get().engine(), exchange)?;
        // What came of a body that is still to come stays with the exchange, and is read together with the rest.
        let body = if exchange.is_partial() { None } else { Some(exchange.take_body()) };
        let request = &*exchange.request;
        let (head, bytes) = (&request.head, request.head_bytes());
        let set = |key: &Py<PyString>, value: &Bound<'py, PyString>| put(&environ, key.bind(py), value);

        let method = head.method.of(bytes);
        if method != b"GET" {
            set(&self.keys.method, &self.cache.get(py, method)?)?;
        }
        let protocol = head.protocol.of(bytes);
        if protocol != b"HTTP/1.1" {
            set(&self.keys.protocol, &self.cache.get(py, protocol)?)?;
        }
        if head.scheme == Scheme::Https {
            set(&self.keys.scheme, self.https.bind(py))?;
        }
        let raw = self.cache.get(py, head.target.of(bytes))?;
        set(&self.keys.raw_uri, &raw)?;
        let query = head.query.of(bytes);
        if !query.is_empty() {
            set(&self.keys.query, &self.cache.get(py, query)?)?;
        }
        // A body that came in chunks and is whole has a length, by which applications read it (PEP 3333).
        let length = body.as_ref().filter(|_| head.framing == Framing::Chunked).map(Body::len);
        let mount = self.headers(&environ, exchange, length)?;
        let path = head.path.of(bytes);
        if let Some(vars) = request.vars() {
            self.front_end(&environ, &vars)?;
        } else if mount.is_none() && self.mount.is_empty() && head.path == head.target && !target::needs_decoding(path)
        {
            set(&self.keys.path_info, &raw)?;
        } else if let Some(misplaced) = self.path(&environ, path, mount)? {
            return Ok(Built::Misplaced(misplaced));
        }
        let queued = PyFloat::new(py, exchange.timing.queue as f64 / 1e9);
        put(&environ, self.keys.queue_time.bind(py), &queued)?;
        let id = request.reply.request_id();
        if !id.is_empty() {
            let id = latin1(py, id)?;
            put(&environ, self.keys.request_id.bind(py), &id)?;
            put(&environ, self.keys.http_request_id.bind(py), &id)?;
        }
        match body {
            None => put(&environ, self.keys.input.bind(py), &super::body::reader(py, handle)?)?,
            Some(Body::Empty) => {}
            Some(body) => put(&environ, self.keys.input.bind(py), &super::input::reader(py, body)?)?,
        }
        Ok(Built::Environ(environ))
    }

    fn addresses(&self, environ: &Bound<'_, PyDict>, engine: &Engine, exchange: &mut Exchange) -> PyResult<()> {
        let py = environ.py();
        if let Some((name, port)) = exchange.request.vars().and_then(|vars| vars.server()) {
            put(environ, self.keys.server.bind(py), &latin1(py, name)?)?;
            put(environ, self.keys.server_port.bind(py), &latin1(py, port)?)?;
        }
        let is_named = exchange.request.vars().is_some_and(|vars| vars.server().is_some());
        let names = peer::names(py, engine, exchange)?;
        let session = names.session.as_ref().map(|session| session.clone_ref(py));
        put(environ, self.keys.remote.bind(py), names.remote.bind(py))?;
        put(environ, self.keys.remote_port.bind(py), names.remote_port.bind(py))?;
        if is_named {
            // By the front end, as its clients know it.
        } else if let Some((name, port)) = &names.server {
            put(environ, self.keys.server.bind(py), name.bind(py))?;
            put(environ, self.keys.server_port.bind(py), port.bind(py))?;
        } else {
            // A unix socket has no address to tell: the Host field is what is left (gunicorn does the same).
            let (name, port) = host_of(exchange);
            put(environ, self.keys.server.bind(py), &latin1(py, name)?)?;
            put(environ, self.keys.server_port.bind(py), &latin1(py, port)?)?;
        }
        if let Some(announced) = exchange.request.announced() {
            announced::fill_environ(environ, announced)?;
        }
        if let Some(session) = session {
            environ.update(session.bind(py).as_mapping())?; // our own, whatever a balancer knows of another one
        }
        exchange.request.claims().map_or(Ok(()), |claims| self.claims(environ, claims))
    }

    /// What trusted front ends say, in place of what the connection says.
    #[cold]
    fn claims(&self, environ: &Bound<'_, PyDict>, claims: &Claims) -> PyResult<()> {
        let py = environ.py();
        let set = |key: &Py<PyString>, text: &[u8]| put(environ, key.bind(py), &latin1(py, text)?);
        if let Some(client) = &claims.client {
            set(&self.keys.remote, client.name.as_bytes())?;
            let port = if client.port > 0 { client.port.to_string() } else { String::new() };
            set(&self.keys.remote_port, port.as_bytes())?;
        }
        if let Some(name) = &claims.server_name {
            set(&self.keys.server, name)?;
        }
        if let Some(port) = claims.server_port {
            set(&self.keys.server_port, port.to_string().as_bytes())?;
        }
        Ok(())
    }

    /// `HTTP_*`, `CONTENT_TYPE`, `CONTENT_LENGTH`; returns a trusted front end's `SCRIPT_NAME`.
    ///
    /// `length`: of a body that came in chunks, in place of its Transfer-Encoding.
    fn headers(
        &mut self,
        environ: &Bound<'_, PyDict>,
        exchange: &Exchange,
        length: Option<u64>,
    ) -> PyResult<Option<Vec<u8>>> {
        let py = environ.py();
        let request = &*exchange.request;
        let bytes = request.head_bytes();
        let mut mount = None;
        for field in &request.head.fields {
            let (name, value) = (field.name.of(bytes), field.value.of(bytes));
            match field.known {
                Known::ContentType => put(environ, self.keys.content_type.bind(py), &self.cache.get(py, value)?)?,
                Known::ContentLength => put(environ, self.keys.content_length.bind(py), &self.cache.get(py, value)?)?,
                Known::TransferEncoding if length.is_some() => {}
                _ if name.eq_ignore_ascii_case(b"SCRIPT_NAME") => mount = Some(value.to_vec()),
                _ => {
                    let text = if is_secret(name) { latin1(py, value)? } else { self.cache.get(py, value)? };
                    self.header(environ, name, &text)?;
                }
            }
        }
        if let Some(length) = length {
            put(environ, self.keys.content_length.bind(py), &PyString::new(py, &length.to_string()))?;
        }
        Ok(mount)
    }

    /// One `HTTP_*` entry; values of repeated names are joined.
    fn header(&mut self, environ: &Bound<'_, PyDict>, name: &[u8], value: &Bound<'_, PyString>) -> PyResult<()> {
        let py = environ.py();
        let made;
        let key = match self.names.find(name) {
            Some(key) => key.bind(py),
            None => {
                made = self.names.keep(name, environ_key(py, name)?);
                &made
            }
        };
        let before = environ.len();
        // SAFETY: three live objects; the result is borrowed from the dictionary, or null with an error set.
        let there = unsafe { ffi::PyDict_SetDefault(environ.as_ptr(), key.as_ptr(), value.as_ptr()) };
        if there.is_null() {
            return Err(PyErr::take(py).unwrap_or_else(|| PyMemoryError::new_err("environ")));
        }
        if environ.len() == before {
            // SAFETY: borrowed from the dictionary, which holds it until it is replaced below.
            let first = unsafe { Borrowed::from_ptr(py, there).cast_unchecked::<PyString>() }.to_owned();
            let (first, second) = (as_latin1(&first).unwrap_or(b""), as_latin1(value).unwrap_or(b""));
            put(environ, key, &latin1(py, &[first, text::separator(name), second].concat())?)?;
        }
        Ok(())
    }

    /// What a front end says of the path, in place of what its client has sent.
    #[cold]
    fn front_end(&self, environ: &Bound<'_, PyDict>, vars: &Vars<'_>) -> PyResult<()> {
        let py = environ.py();
        let set = |key: &Py<PyString>, text: &[u8]| put(environ, key.bind(py), &latin1(py, text)?);
        let (script, path) = vars.paths();
        let below = path.strip_prefix(self.mount.as_slice()).filter(|rest| rest.is_empty() || rest.starts_with(b"/"));
        let (script, path) = match below {
            Some(rest) if script.is_empty() => (self.mount.as_slice(), rest),
            _ => (script, &*path),
        };
        set(&self.keys.script_name, script)?;
        set(&self.keys.path_info, path)?;
        vars.get(b"QUERY_STRING").map_or(Ok(()), |query| set(&self.keys.query, query))
    }

    /// `SCRIPT_NAME` and `PATH_INFO` where they are not simply the path as it came.
    #[cold]
    fn path(
        &mut self,
        environ: &Bound<'_, PyDict>,
        path: &[u8],
        mount: Option<Vec<u8>>,
    ) -> PyResult<Option<Misplaced>> {
        let py = environ.py();
        let mount = mount.as_deref().unwrap_or(&self.mount);
        self.scratch.clear();
        target::percent_decode(path, &mut self.scratch);
        let rest = match self.scratch.strip_prefix(mount) {
            Some(rest) if mount.is_empty() || rest.is_empty() || rest.starts_with(b"/") || mount.ends_with(b"/") => {
                rest
            }
            _ => {
                return Ok(Some(Misplaced(format!(
                    "Configuration problem: Request path {:?} does not start with SCRIPT_NAME {:?}",
                    String::from_utf8_lossy(path),
                    String::from_utf8_lossy(mount),
                ))));
            }
        };
        put(environ, self.keys.script_name.bind(py), &latin1(py, mount)?)?;
        put(environ, self.keys.path_info.bind(py), &latin1(py, rest)?)?;
        Ok(None)
    }
}

fn environ_key<'py>(py: Python<'py>, name: &[u8]) -> PyResult<Bound<'py, PyString>> {
    let mut key = Vec::with_capacity(name.len() + 5);
    key.extend_from_slice(b"HTTP_");
    key.extend(name.iter().map(|byte| if *byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }));
    latin1(py, &key)
}

/// Name and port of the Host field. PEP 3333: `SERVER_NAME` and `SERVER_PORT` "can never be empty strings", so what it does
/// not say is `localhost` and the scheme's port.
fn host_of(exchange: &Exchange) -> (&[u8], &[u8]) {
    let request = &*exchange.request;
    let field = request.head.fields.iter().find(|field| field.known == Known::Host);
    let host = field.map_or(b"".as_slice(), |field| field.value.of(request.head_bytes()));
    let port_at = host.iter().rposition(|byte| *byte == b':').filter(|at| !host[*at..].contains(&b']'));
    let (name, port) = port_at.map_or((host, b"".as_slice()), |at| (&host[..at], &host[at + 1..]));
    let usual: &[u8] = if request.head.scheme == Scheme::Https { b"443" } else { b"80" };
    (if name.is_empty() { b"localhost" } else { name }, if port.is_empty() { usual } else { port })
}

/// `environ[key] = value` without detours.
#[inline]
fn put(environ: &Bound<'_, PyDict>, key: &Bound<'_, PyString>, value: &Bound<'_, impl Sized>) -> PyResult<()> {
    // SAFETY: three live objects; the dictionary takes its own references; a negative result has an error set.
    let result = unsafe { ffi::PyDict_SetItem(environ.as_ptr(), key.as_ptr(), value.as_ptr()) };
    if result < 0 {
        Err(PyErr::take(environ.py()).unwrap_or_else(|| PyMemoryError::new_err("environ")))
    } else {
        Ok(())
    }
}
