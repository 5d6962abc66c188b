//! One app thread's side of the gateway: it answers exchange after exchange.
use super::environ::{Built, Maker};
use super::handle::{self, Handle};
use super::input::EmptyInput;
use super::respond::{Response, is_ours_alone};
use super::socket::RequestSocket;
use crate::core::drop_chores;
use crate::text::as_latin1;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::sync::Arc;
use tricorn_io::{Chores, Engine, Exchange, clock};
use tricorn_proto::access_log::Record;
use tricorn_proto::exchange::End;

/// How a WSGI application is called.
#[pyclass(frozen, module = "tricorn._core")]
pub struct WsgiGateway {
    application: Py<PyAny>,
    base_environ: Py<PyDict>,
    on_error: Py<PyAny>,
    on_notice: Option<Py<PyAny>>,
}

#[pymethods]
impl WsgiGateway {
    #[new]
    #[pyo3(signature = (application, base_environ, on_error, on_notice=None))]
    fn new(
        application: Py<PyAny>,
        base_environ: Py<PyDict>,
        on_error: Py<PyAny>,
        on_notice: Option<Py<PyAny>>,
    ) -> WsgiGateway {
        WsgiGateway { application, base_environ, on_error, on_notice }
    }
}

/// What is given to the application per request and, if it kept nothing of it, given to it again.
struct Kit {
    handle: Py<Handle>,
    start_response: Py<PyAny>,
    early_hints: Py<PyAny>,
    socket: Py<RequestSocket>,
    /// The environ's template; it holds `early_hints` and `socket`.
    template: Py<PyDict>,
}

impl Kit {
    fn new(py: Python<'_>, maker: &Maker, gateway: &WsgiGateway, engine: &Arc<Engine>) -> PyResult<Kit> {
        let handle = Py::new(py, Handle::new(engine.clone()))?;
        let early_hints = handle::early_hints(py, &handle)?;
        let socket = Py::new(py, RequestSocket::new(handle.clone_ref(py)))?;
        let template = maker.template(gateway.base_environ.bind(py))?;
        template.set_item("wsgi.early_hints", &early_hints)?;
        template.set_item("gunicorn.socket", &socket)?;
        template.set_item("wsgi.input", Py::new(py, EmptyInput)?)?;
        let start_response = handle::start_response(py, &handle)?;
        Ok(Kit { handle, start_response, early_hints, socket, template: template.unbind() })
    }

    /// Whether the application kept none of it. The holders: this kit, the template, and for the handle its three users.
    fn is_unused(&self) -> bool {
        is_ours_alone(&self.start_response, 1)
            && is_ours_alone(&self.early_hints, 2)
            && is_ours_alone(&self.socket, 2)
            && is_ours_alone(&self.handle, 4)
    }
}

/// An app thread's gateway.
pub struct Server {
    engine: Arc<Engine>,
    gateway: Py<WsgiGateway>,
    file_wrapper: Option<Py<PyAny>>,
    sendfile: bool,
    maker: Maker,
    kit: Kit,
    pid: u32,
}

impl Server {
    pub fn new(
        py: Python<'_>,
        gateway: &Bound<'_, WsgiGateway>,
        engine: Arc<Engine>,
        sendfile: bool,
    ) -> PyResult<Server> {
        let settings = gateway.get();
        let base = settings.base_environ.bind(py);
        let maker = Maker::new(py, base)?;
        let kit = Kit::new(py, &maker, settings, &engine)?;
        let file_wrapper = base.get_item("wsgi.file_wrapper")?.map(Bound::unbind);
        Ok(Server {
            engine,
            gateway: gateway.clone().unbind(),
            file_wrapper,
            sendfile,
            maker,
            kit,
            pid: std::process::id(),
        })
    }

    /// Answers one request. What the application lets out, `SystemExit` included, ends this request and nothing else; an
    /// error is a defect of ours.
    pub fn answer(&mut self, py: Python<'_>, mut exchange: Box<Exchange>) -> (Box<Exchange>, PyResult<()>) {
        let template = self.kit.template.bind(py);
        let environ = match self.maker.build(template, &self.engine, &mut exchange) {
            Ok(Built::Environ(environ)) => environ,
            Ok(Built::Misplaced(why)) => {
                exchange.answer_error(500, &why.0);
                self.log(py, &exchange, None);
                return (exchange, Ok(()));
            }
            Err(error) => {
                self.failed(py, &mut exchange, error);
                return (exchange, Ok(()));
            }
        };
        self.kit.handle.get().put(exchange);
        let outcome = self.call(py, &environ);
        let mut exchange = self.kit.handle.get().take_back(py);
        match outcome {
            Ok(Some(End::Short { missing })) => self.complain(py, &exchange, missing),
            Ok(_) => {}
            Err(error) => self.failed(py, &mut exchange, error),
        }
        if exchange.timing.answered == 0 {
            exchange.answered();
        }
        self.log(py, &exchange, Some(&environ));
        drop(environ);
        if !self.kit.is_unused() {
            match Kit::new(py, &self.maker, self.gateway.get(), &self.engine) {
                Ok(kit) => self.kit = kit,
                Err(error) => return (exchange, Err(error)),
            }
        }
        (exchange, Ok(()))
    }

    fn call<'py>(&self, py: Python<'py>, environ: &Bound<'py, PyDict>) -> PyResult<Option<End>> {
        let mut arguments = [std::ptr::null_mut(), environ.as_ptr(), self.kit.start_response.as_ptr()];
        // SAFETY: the callable and both arguments are alive; the slot before the first argument is ours, as
        // PY_VECTORCALL_ARGUMENTS_OFFSET promises; null carries the error.
        let result = unsafe {
            let result = ffi::PyObject_Vectorcall(
                self.gateway.get().application.as_ptr(),
                arguments.as_mut_ptr().add(1),
                2 | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET,
                std::ptr::null_mut(),
            );
            Bound::from_owned_ptr_or_err(py, result)?
        };
        let response = Response {
            handle: self.kit.handle.bind(py),
            file_wrapper: self.file_wrapper.as_ref().map(|wrapper| wrapper.bind(py)),
            sendfile: self.sendfile,
        };
        response.send(&result)
    }

    /// The application let an exception out: a 500 if nothing was sent yet, else a closed connection.
    #[cold]
    fn failed(&self, py: Python<'_>, exchange: &mut Exchange, error: PyErr) {
        exchange.app_failed();
        if exchange.request.reply.head_sent() {
            exchange.abort();
        } else {
            exchange.answer_error(500, "");
        }
        self.report(py, format!("Error handling request {}", request_line(exchange)), error);
    }

    /// A body shorter than its Content-Length: the client cannot use it, and only the log can say why.
    #[cold]
    fn complain(&self, py: Python<'_>, exchange: &Exchange, missing: u64) {
        let line = request_line(exchange);
        let text = format!("{line}: the application sent {missing} bytes less than its Content-Length says");
        self.notify(py, true, text);
    }

    fn report(&self, py: Python<'_>, message: String, error: PyErr) {
        if let Err(second) = self.gateway.get().on_error.call1(py, (message, error.into_value(py))) {
            second.write_unraisable(py, None);
        }
    }

    fn notify(&self, py: Python<'_>, warning: bool, text: String) {
        if let Some(on_notice) = &self.gateway.get().on_notice
            && let Err(error) = on_notice.call1(py, (warning, text))
        {
            error.write_unraisable(py, None);
        }
    }

    /// Drops and logs what other threads could not.
    pub fn do_chores(&self, py: Python<'_>, mut chores: Chores) {
        for notice in chores.notices.drain(..) {
            self.notify(py, notice.warning, notice.text);
        }
        drop_chores(chores);
    }

    fn log(&self, py: Python<'_>, exchange: &Exchange, environ: Option<&Bound<'_, PyDict>>) {
        let (Some(access), Some(format)) = (self.engine.access(), &self.engine.config().access_format) else { return };
        let lookup = |key: &str| -> Option<Vec<u8>> {
            let value = environ?.get_item(key).ok().flatten()?;
            let text = value.cast_into::<PyString>().ok().or_else(|| None)?;
            as_latin1(&text).map(<[u8]>::to_vec)
        };
        let request = &*exchange.request;
        let remote = exchange.attachment.as_ref().and_then(|kept| kept.downcast_ref::<super::peer::Names>());
        let remote = remote.map(|names| names.remote.bind(py));
        let record = Record {
            head: &request.head,
            bytes: request.head_bytes(),
            remote: remote.and_then(|text| as_latin1(text)).unwrap_or(b""),
            status: request.reply.status_code(),
            fields: request.reply.fields(),
            sent: request.reply.body_sent(),
            micros: exchange.micros(clock::now()),
            time: exchange.wall.log_time(),
            pid: self.pid,
            environ: &lookup,
        };
        access.add(|out| format.render(&record, out));
    }
}

/// `GET /path`, for the log.
fn request_line(exchange: &Exchange) -> String {
    let request = &*exchange.request;
    let bytes = request.head_bytes();
    let path = String::from_utf8_lossy(request.head.path.of(bytes)).into_owned();
    format!("{} {path}", String::from_utf8_lossy(request.head.method.of(bytes)))
}
