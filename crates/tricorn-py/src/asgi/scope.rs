//! The scope of a request (ASGI HTTP and WebSocket specification, "Connection Scope"): a template copied, then what this
//! request adds.
use super::headers::Headers;
use crate::ends;
use crate::text::{Cache, latin1};
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyList, PyString};
use tricorn_io::{Engine, Exchange, Request};
use tricorn_proto::message::{Scheme, Version, target};

/// The version of the HTTP specification that is kept to, which is that of uvicorn, granian and hypercorn's like. From 2.4 on
/// `send` is to raise an OSError when the client has left, and Starlette then relies on it: it no longer listens for the
/// disconnect while it streams, skips background tasks, and lets an exception out of the application for each client that
/// leaves. Django, Channels, Quart and Litestar do not expect the error either.
const HTTP_SPEC: &str = "2.3";

/// The version of the WebSocket specification. Frameworks do expect the OSError here, and since 2.5 the reason of a close.
const WEBSOCKET_SPEC: &str = "2.5";

/// Keys of every scope, and values that repeat, interned once: a table, a name a row.
struct Keys {
    asgi: Py<PyString>,
    tricorn: Py<PyString>,
    queue_time: Py<PyString>,
    request_id: Py<PyString>,
    extensions: Py<PyString>,
    http_version: Py<PyString>,
    server: Py<PyString>,
    client: Py<PyString>,
    scheme: Py<PyString>,
    method: Py<PyString>,
    path: Py<PyString>,
    raw_path: Py<PyString>,
    query: Py<PyString>,
    headers: Py<PyString>,
    state: Py<PyString>,
    http10: Py<PyString>,
    http2: Py<PyString>,
}

/// A path as it came, `path` and `raw_path` of its scope.
type Path = (Box<[u8]>, Py<PyString>, Py<PyBytes>);

/// What all scopes of a kind have in common. What an application may put something into is each request's own.
struct Template {
    scope: Py<PyDict>,
    asgi: Py<PyDict>,
    extensions: Py<PyDict>,
}

/// A copy of a template, with its `extensions`.
struct Copy<'py> {
    scope: Bound<'py, PyDict>,
    extensions: Bound<'py, PyDict>,
}

impl Template {
    /// `scope`: without the two; `names`: of the extensions.
    fn new(scope: &Bound<'_, PyDict>, keys: &Keys, spec_version: &str, names: &[&str]) -> PyResult<Template> {
        let py = scope.py();
        let asgi = PyDict::new(py);
        asgi.set_item("version", "3.0")?;
        asgi.set_item("spec_version", spec_version)?;
        let extensions = PyDict::new(py);
        for name in names {
            extensions.set_item(name, PyDict::new(py))?;
        }
        // Placeholders, so that a copy has its final size.
        extensions.set_item(&keys.tricorn, py.None())?;
        scope.set_item(&keys.asgi, py.None())?;
        scope.set_item(&keys.extensions, py.None())?;
        Ok(Template { scope: scope.clone().unbind(), asgi: asgi.unbind(), extensions: extensions.unbind() })
    }

    fn copy<'py>(&self, py: Python<'py>, keys: &Keys) -> PyResult<Copy<'py>> {
        let scope = self.scope.bind(py).copy()?;
        let extensions = self.extensions.bind(py).copy()?;
        put(&scope, &keys.asgi, &self.asgi.bind(py).copy()?)?;
        put(&scope, &keys.extensions, &extensions)?;
        Ok(Copy { scope, extensions })
    }
}

/// Makes scopes; one per loop.
pub struct Maker {
    keys: Keys,
    /// `extensions["tricorn"]` without what each request has of its own.
    ours: Py<PyDict>,
    http: Template,
    websocket: Template,
    state: Option<Py<PyDict>>,
    /// The mount point that paths are below of, whether the front end took it off or not.
    root: String,
    headers: Headers,
    texts: Cache,
    https: Py<PyString>,
    wss: Py<PyString>,
    scratch: Vec<u8>,
    /// The path of the last request, which is likely to be that of the next.
    last: Option<Path>,
    /// `http.response.pathsend` is offered.
    pub offers_pathsend: bool,
}

impl Maker {
    /// `state`: what the application put into the lifespan's; requests get copies. `None`: there is no lifespan.
    /// `pathsend`: whether `http.response.pathsend` is offered.
    pub fn new(py: Python<'_>, root: &str, state: Option<Py<PyDict>>, pathsend: bool) -> PyResult<Maker> {
        let key = |name: &str| PyString::intern(py, name).unbind();
        let root = root.trim_end_matches('/');
        let keys = Keys {
            asgi: key("asgi"),
            tricorn: key("tricorn"),
            queue_time: key("queue_time"),
            request_id: key("request_id"),
            extensions: key("extensions"),
            http_version: key("http_version"),
            server: key("server"),
            client: key("client"),
            scheme: key("scheme"),
            method: key("method"),
            path: key("path"),
            raw_path: key("raw_path"),
            query: key("query_string"),
            headers: key("headers"),
            state: key("state"),
            http10: key("1.0"),
            http2: key("2"),
        };
        let http = PyDict::new(py);
        http.set_item("type", "http")?;
        // Placeholders, so that a copy has its final size.
        for (name, value) in [("http_version", "1.1"), ("scheme", "http"), ("method", "GET"), ("path", "/")] {
            http.set_item(PyString::intern(py, name), PyString::intern(py, value))?;
        }
        for name in ["server", "client", "headers"] {
            http.set_item(PyString::intern(py, name), py.None())?;
        }
        http.set_item("root_path", root)?;
        http.set_item("raw_path", PyBytes::new(py, b"/"))?;
        http.set_item("query_string", PyBytes::new(py, b""))?;
        if state.is_some() {
            http.set_item("state", py.None())?;
        }
        let websocket = http.copy()?;
        websocket.del_item("method")?;
        websocket.set_item("type", "websocket")?;
        websocket.set_item("scheme", "ws")?;
        let ours = PyDict::new(py);
        ours.set_item("leaving", py.import("tricorn.shutdown")?.getattr("NOTICE")?)?;
        ours.set_item(&keys.queue_time, py.None())?;
        let mut of_http = vec!["http.response.early_hint", "http.response.trailers"];
        if pathsend {
            of_http.push("http.response.pathsend");
        }
        Ok(Maker {
            http: Template::new(&http, &keys, HTTP_SPEC, &of_http)?,
            websocket: Template::new(&websocket, &keys, WEBSOCKET_SPEC, &["websocket.http.response"])?,
            ours: ours.unbind(),
            keys,
            state,
            root: root.to_owned(),
            headers: Headers::new(),
            texts: Cache::new(),
            https: key("https"),
            wss: key("wss"),
            scratch: Vec::new(),
            last: None,
            offers_pathsend: pathsend,
        })
    }

    pub fn http<'py>(
        &mut self,
        py: Python<'py>,
        engine: &Engine,
        exchange: &mut Exchange,
    ) -> PyResult<Bound<'py, PyDict>> {
        let copy = self.http.copy(py, &self.keys)?;
        self.fill(&copy, engine, exchange)?;
        let scope = copy.scope;
        let request = &*exchange.request;
        let (head, bytes) = (&request.head, request.head_bytes());
        let method = head.method.of(bytes);
        if method != b"GET" {
            put(&scope, &self.keys.method, &self.texts.get(py, method)?)?;
        }
        if head.scheme == Scheme::Https {
            put(&scope, &self.keys.scheme, self.https.bind(py))?;
        }
        Ok(scope)
    }

    /// With the `subprotocols` that the client offers.
    pub fn websocket<'py>(
        &mut self,
        py: Python<'py>,
        engine: &Engine,
        exchange: &mut Exchange,
        subprotocols: Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let copy = self.websocket.copy(py, &self.keys)?;
        self.fill(&copy, engine, exchange)?;
        let scope = copy.scope;
        if exchange.request.head.scheme == Scheme::Https {
            put(&scope, &self.keys.scheme, self.wss.bind(py))?;
        }
        scope.set_item("subprotocols", subprotocols)?;
        Ok(scope)
    }

    /// What both kinds have.
    fn fill(&mut self, copy: &Copy<'_>, engine: &Engine, exchange: &mut Exchange) -> PyResult<()> {
        let Copy { scope, extensions } = copy;
        let py = scope.py();
        let forwarded = if exchange.client.trusted { ends::forwarded(py, engine, exchange)? } else { None };
        let claimed =
            exchange.request.claims().and_then(|claims| Some((claims.server_name.clone(), claims.server_port?)));
        let ends = ends::of(py, engine, exchange)?;
        if let Some(client) = forwarded.as_ref().or(ends.client.as_ref().map(|client| client.bind(py))) {
            put(scope, &self.keys.client, client)?;
        }
        if let Some(server) = &ends.server {
            put(scope, &self.keys.server, server.bind(py))?;
        }
        if let Some(session) = &ends.session {
            extensions.set_item(intern!(py, "tls"), session.bind(py).copy()?)?;
        }
        let claimed = claimed
            .map(|(name, port)| ends::claimed_server(py, name.as_deref(), port, ends.server.as_ref()))
            .transpose()?;
        if let Some(vars) = exchange.request.vars() {
            crate::vars::fill_scope(scope, &vars, &self.root)?;
        }
        if let Some(server) = &claimed {
            put(scope, &self.keys.server, server)?;
        }
        let request = &*exchange.request;
        let (head, bytes) = (&request.head, request.head_bytes());
        let headers = self.headers.list(py, head, bytes)?;
        let id = request.reply.request_id();
        if !id.is_empty() && head.find(bytes, b"x-request-id") != Some(id) {
            self.headers.set_one(&headers, (b"x-request-id", id))?;
        }
        put(scope, &self.keys.headers, &headers)?;
        self.tell_of_us(extensions, exchange.timing.queue, id, request)?;
        let path = head.path.of(bytes);
        if self.last.as_ref().is_none_or(|(last, _, _)| **last != *path) {
            self.last = Some((path.into(), self.path(py, path)?.unbind(), PyBytes::new(py, path).unbind()));
        }
        let is_told = request.vars().is_some();
        if let Some((_, text, raw)) = &self.last {
            if !is_told {
                put(scope, &self.keys.path, text.bind(py))?;
            }
            put(scope, &self.keys.raw_path, raw.bind(py))?;
        }
        let query = head.query.of(bytes);
        if !query.is_empty() && !is_told {
            put(scope, &self.keys.query, &PyBytes::new(py, query))?;
        }
        match head.version {
            Version::Http11 | Version::Uwsgi | Version::Scgi | Version::FastCgi(_) => {}
            Version::Http10 => put(scope, &self.keys.http_version, self.keys.http10.bind(py))?,
            Version::Http2 => put(scope, &self.keys.http_version, self.keys.http2.bind(py))?,
        }
        if let Some(state) = &self.state {
            put(scope, &self.keys.state, &state.bind(py).copy()?)?;
        }
        Ok(())
    }

    /// `extensions["tricorn"]`: the notice that the worker leaves, seconds that the request has waited, its id, and what a
    /// front end or a balancer has said.
    fn tell_of_us(&self, extensions: &Bound<'_, PyDict>, queued: u64, id: &[u8], request: &Request) -> PyResult<()> {
        let py = extensions.py();
        let ours = self.ours.bind(py).copy()?;
        put(&ours, &self.keys.queue_time, &PyFloat::new(py, queued as f64 / 1e9))?;
        if !id.is_empty() {
            put(&ours, &self.keys.request_id, &latin1(py, id)?)?;
        }
        if let Some(vars) = request.vars() {
            ours.set_item("vars", crate::vars::told(py, &vars)?)?;
        }
        if let Some(announced) = request.announced() {
            ours.set_item("proxy", crate::announced::scope(py, announced)?)?;
        }
        put(extensions, &self.keys.tricorn, &ours)
    }

    /// Decoded; below the mount point.
    fn path<'py>(&mut self, py: Python<'py>, raw: &[u8]) -> PyResult<Bound<'py, PyString>> {
        self.scratch.clear();
        target::percent_decode(raw, &mut self.scratch);
        let path = String::from_utf8_lossy(&self.scratch);
        let is_below = path.strip_prefix(&self.root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if self.root.is_empty() || is_below || !path.starts_with('/') {
            return Ok(PyString::new(py, &path));
        }
        Ok(PyString::new(py, &format!("{}{path}", self.root)))
    }
}

/// `scope[key] = value` without detours.
#[inline]
fn put<T>(scope: &Bound<'_, PyDict>, key: &Py<PyString>, value: &Bound<'_, T>) -> PyResult<()> {
    // SAFETY: three live objects; the dictionary takes its own references; a negative result has an error set.
    let result = unsafe { ffi::PyDict_SetItem(scope.as_ptr(), key.as_ptr(), value.as_ptr()) };
    if result < 0 { Err(PyErr::take(scope.py()).unwrap_or_else(|| PyMemoryError::new_err("scope"))) } else { Ok(()) }
}
