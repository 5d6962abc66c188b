//! One app thread's side of the gateway: it answers exchange after exchange.
use super::environ::{Built, Maker};
use super::handle::{self, Handle};
use super::input::EmptyInput;
use super::respond::Response;
use super::socket::RequestSocket;
use super::wait::Wait;
use crate::context::Entered;
use crate::forked;
use crate::holders::is_ours_alone;
use crate::marks::BaseContext;
use crate::report::{Level, Line, Reporter, is_request_timeout, request_line};
use crate::routes::RouteNames;
use crate::text::as_latin1;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use tricorn_io::{Chores, Engine, Exchange};
use tricorn_proto::message::Known;
use tricorn_proto::response::End;

/// How a WSGI application is called.
#[pyclass(frozen, module = "tricorn._core")]
pub struct WsgiGateway {
    application: Py<PyAny>,
    base_environ: Py<PyDict>,
    on_error: Py<PyAny>,
    on_notice: Option<Py<PyAny>>,
    /// Called with the environ before the application; what it returns is `after`'s token.
    before: Option<Py<PyAny>>,
    /// Called when the reply is complete.
    after: Option<Py<PyAny>>,
}

#[pymethods]
impl WsgiGateway {
    #[new]
    #[pyo3(signature = (application, base_environ, on_error, on_notice=None, before=None, after=None))]
    fn new(
        application: Py<PyAny>,
        base_environ: Py<PyDict>,
        on_error: Py<PyAny>,
        on_notice: Option<Py<PyAny>>,
        before: Option<Py<PyAny>>,
        after: Option<Py<PyAny>>,
    ) -> WsgiGateway {
        WsgiGateway { application, base_environ, on_error, on_notice, before, after }
    }
}

/// What is given to the application per request and, if it kept nothing of it, given to it again.
struct CallObjects {
    handle: Py<Handle>,
    write: Py<PyAny>,
    start_response: Py<PyAny>,
    early_hints: Py<PyAny>,
    socket: Py<RequestSocket>,
    /// The environ's template; it holds `early_hints` and `socket`. Gone if the objects will not be used again.
    template: Option<Py<PyDict>>,
}

/// Most call objects kept for later.
const KEPT_OBJECTS: usize = 64;

impl CallObjects {
    fn new(
        py: Python<'_>,
        maker: &Maker,
        gateway: &WsgiGateway,
        engine: &Arc<Engine>,
        wait: &Arc<Wait>,
    ) -> PyResult<CallObjects> {
        let (handle, write) = Handle::new(py, engine.clone(), wait.clone())?;
        let early_hints = handle::early_hints(py, &handle)?;
        let socket = Py::new(py, RequestSocket::new(handle.clone_ref(py)))?;
        let template = maker.template(gateway.base_environ.bind(py))?;
        template.set_item("wsgi.early_hints", &early_hints)?;
        template.set_item("gunicorn.socket", &socket)?;
        template.set_item("wsgi.input", Py::new(py, EmptyInput)?)?;
        let start_response = handle::start_response(py, &handle)?;
        Ok(CallObjects { handle, write, start_response, early_hints, socket, template: Some(template.unbind()) })
    }

    /// Whether the application kept none of it. The holders: these objects, the template, the handle of `write`, and for the
    /// handle its three users and `write`.
    fn is_unused(&self, py: Python<'_>) -> bool {
        self.socket.get().is_unused(py)
            && is_ours_alone(&self.write, 2)
            && is_ours_alone(&self.start_response, 1)
            && is_ours_alone(&self.early_hints, 2)
            && is_ours_alone(&self.socket, 2)
            && is_ours_alone(&self.handle, 5)
    }
}

impl Drop for CallObjects {
    fn drop(&mut self) {
        self.handle.get().forget_write();
    }
}

/// A call that the application is about to get, or has.
pub struct Begun {
    objects: CallObjects,
    context: Entered,
    environ: Py<PyDict>,
    /// What `before` has returned.
    token: Option<Py<PyAny>>,
    slot: usize,
}

/// What a server's calls stand on.
pub struct CallOptions {
    pub wait: Wait,
    /// Each call runs in a copy of this context; without it, in that of its thread.
    pub context: Option<BaseContext>,
}

/// A thread's gateway. Under a hub many of its calls are under way at once, each on a greenlet of its own: nothing is
/// borrowed while the application runs.
pub struct Server {
    engine: Arc<Engine>,
    gateway: Py<WsgiGateway>,
    file_wrapper: Option<Py<PyAny>>,
    sendfile: bool,
    /// Away while a request's environ is made: that may run Python code (a collection, and with it finalizers), which may
    /// switch to another greenlet.
    maker: Cell<Option<Box<Maker>>>,
    kept: RefCell<Vec<CallObjects>>,
    /// Call objects that are in use.
    out: Cell<usize>,
    reporter: Reporter,
    wait: Arc<Wait>,
    context: Option<BaseContext>,
    routes: RouteNames,
}

impl Server {
    pub fn new(
        py: Python<'_>,
        gateway: &Bound<'_, WsgiGateway>,
        engine: Arc<Engine>,
        sendfile: bool,
        options: CallOptions,
    ) -> PyResult<Server> {
        let settings = gateway.get();
        let base = settings.base_environ.bind(py);
        let maker = Maker::new(py, base)?;
        let CallOptions { wait, context } = options;
        let wait = Arc::new(wait);
        let objects = CallObjects::new(py, &maker, settings, &engine, &wait)?;
        let on_notice = settings.on_notice.as_ref().map(|on_notice| on_notice.clone_ref(py));
        let reporter = Reporter::new(engine.clone(), settings.on_error.clone_ref(py), on_notice);
        let file_wrapper = base.get_item("wsgi.file_wrapper")?.map(Bound::unbind);
        Ok(Server {
            routes: RouteNames::new(py, engine.clone()),
            engine,
            gateway: gateway.clone().unbind(),
            file_wrapper,
            sendfile,
            maker: Cell::new(Some(Box::new(maker))),
            kept: RefCell::new(vec![objects]),
            out: Cell::new(0),
            reporter,
            wait,
            context,
        })
    }

    fn take_objects(&self, py: Python<'_>) -> PyResult<CallObjects> {
        self.out.set(self.out.get() + 1);
        if let Some(objects) = self.kept.borrow_mut().pop() {
            return Ok(objects);
        }
        let maker = self.take_maker(py)?;
        let objects = CallObjects::new(py, &maker, self.gateway.get(), &self.engine, &self.wait);
        self.maker.set(Some(maker));
        objects
    }

    /// A second one if it is away; what comes back last is kept.
    #[inline]
    fn take_maker(&self, py: Python<'_>) -> PyResult<Box<Maker>> {
        match self.maker.take() {
            Some(maker) => Ok(maker),
            None => Ok(Box::new(Maker::new(py, self.gateway.get().base_environ.bind(py))?)),
        }
    }

    #[inline]
    fn build<'py>(
        &self,
        template: &Bound<'py, PyDict>,
        handle: &Py<Handle>,
        exchange: &mut Exchange,
    ) -> PyResult<Built<'py>> {
        let mut maker = self.take_maker(template.py())?;
        let built = maker.build(template, handle, exchange);
        self.maker.set(Some(maker));
        built
    }

    /// Keeps call objects for the next request, unless the application has kept one of them.
    fn keep_objects(&self, py: Python<'_>, objects: CallObjects) {
        self.out.set(self.out.get().saturating_sub(1));
        if objects.template.is_some() && objects.is_unused(py) {
            let mut kept = self.kept.borrow_mut();
            if kept.len() < KEPT_OBJECTS {
                kept.push(objects);
            }
        }
    }

    /// Answers one request. What the application lets out, `SystemExit` included, ends this request and nothing else; an
    /// error is a defect of ours.
    ///
    /// `conclude` is called when the application has returned: nothing may be raised in this call any more.
    pub fn answer(
        &self,
        py: Python<'_>,
        exchange: Box<Exchange>,
        conclude: impl FnOnce(&Engine, usize),
    ) -> (Box<Exchange>, PyResult<()>) {
        let mut begun = match self.begin(py, exchange) {
            Ok(begun) => begun,
            Err(refused) => return refused,
        };
        let outcome = self.run(py, &mut begun);
        (self.end(py, begun, outcome, conclude), Ok(()))
    }

    /// Makes what the application is called with. The error is an answer that needs no application.
    #[inline(never)]
    pub fn begin(&self, py: Python<'_>, mut exchange: Box<Exchange>) -> Result<Begun, (Box<Exchange>, PyResult<()>)> {
        let prepared = self.take_objects(py).and_then(|objects| Ok((objects, self.enter_context(py, &exchange)?)));
        let (mut objects, context) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                exchange.answer_error(500, "");
                return Err((exchange, Err(error)));
            }
        };
        let built = match &objects.template {
            Some(template) => self.build(template.bind(py), &objects.handle, &mut exchange),
            None => Err(PyRuntimeError::new_err("call objects without a template (defect of tricorn)")),
        };
        if self.out.get() > KEPT_OBJECTS {
            objects.template = None; // many requests wait, and most of these objects will not be kept
        }
        let environ = match built {
            Ok(Built::Environ(environ)) => environ,
            Ok(Built::Misplaced(why)) => {
                exchange.answer_error(500, &why.0);
                let text = format!("Error handling request {}: {}", request_line(&exchange), why.0);
                self.reporter.notify(py, Level::Error, text);
                self.log(py, &exchange, None);
                self.keep_objects(py, objects);
                return Err((exchange, Ok(())));
            }
            Err(error) => {
                self.failed(py, &mut exchange, error);
                self.keep_objects(py, objects);
                return Err((exchange, Ok(())));
            }
        };
        let slot = exchange.slot();
        if let Some(base) = &self.context {
            base.know(slot, &context);
        }
        objects.handle.get().put(exchange);
        Ok(Begun { objects, context, environ: environ.unbind(), token: None, slot })
    }

    #[inline]
    fn enter_context(&self, py: Python<'_>, exchange: &Exchange) -> PyResult<Entered> {
        let mut context = self.context.as_ref().map_or_else(|| Ok(Entered::default()), |base| base.enter(py))?;
        context.identify(py, exchange.request.reply.request_id())?;
        Ok(context)
    }

    #[inline]
    fn run(&self, py: Python<'_>, begun: &mut Begun) -> PyResult<Option<End>> {
        self.before(py, begun)?;
        let result = self.call(py, begun).ok_or_else(|| PyErr::fetch(py))?;
        self.respond(py, begun, &result)
    }

    /// The application has returned: what it has left to be done.
    #[inline(never)]
    pub fn end(
        &self,
        py: Python<'_>,
        begun: Begun,
        outcome: PyResult<Option<End>>,
        conclude: impl FnOnce(&Engine, usize),
    ) -> Box<Exchange> {
        forked::leave_if_child(py, &outcome);
        conclude(&self.engine, begun.slot);
        let Begun { objects, context, environ, token, .. } = begun;
        let environ = environ.into_bound(py);
        let mut exchange = objects.handle.get().take_back(py);
        match outcome {
            outcome if exchange.is_elsewhere() => self.was_taken(py, &mut exchange, outcome),
            Ok(Some(End::Short { missing })) => self.reporter.complain(py, &exchange, missing),
            Ok(_) => {}
            Err(error) => self.failed(py, &mut exchange, error),
        }
        if exchange.request.reply.names_transfer_encoding() {
            self.reporter.complain_of_framing(py, &exchange);
        }
        exchange.conclude();
        exchange.timing.route = self.routes.of_environ(&environ);
        self.engine.split_call(&mut exchange);
        if exchange.has_rest() {
            let engine = &*self.engine;
            py.detach(|| engine.keep_rest(&mut exchange));
        }
        self.log(py, &exchange, Some(&environ));
        if self.gateway.get().after.is_some() {
            exchange.flush(); // a callback may take long, and the client should not wait for it
        }
        self.after(py, &exchange, &environ, token.map(|token| token.into_bound(py)));
        drop(environ);
        self.keep_objects(py, objects);
        drop(context);
        exchange
    }

    #[inline]
    pub fn before(&self, py: Python<'_>, begun: &mut Begun) -> PyResult<()> {
        if let Some(before) = &self.gateway.get().before {
            begun.token = Some(before.bind(py).call1((&begun.environ,))?.unbind());
        }
        Ok(())
    }

    #[inline]
    fn after<'py>(
        &self,
        py: Python<'py>,
        exchange: &Exchange,
        environ: &Bound<'py, PyDict>,
        token: Option<Bound<'py, PyAny>>,
    ) {
        if let Some(after) = &self.gateway.get().after {
            self.reporter.after(py, exchange, None, |(status, headers, sent, micros)| {
                after.call1(py, (environ, token, status, headers, sent, micros))
            });
        }
    }

    /// Calls the application. `None`: it has raised, and its exception is the interpreter's. That is smaller than a result, and
    /// stands in the frame that a greenlet keeps while it waits.
    #[inline(never)]
    pub fn call<'py>(&self, py: Python<'py>, begun: &Begun) -> Option<Bound<'py, PyAny>> {
        let mut arguments = [std::ptr::null_mut(), begun.environ.as_ptr(), begun.objects.start_response.as_ptr()];
        // SAFETY: the callable and both arguments are alive; the slot before the first argument is ours, as
        // PY_VECTORCALL_ARGUMENTS_OFFSET promises; null has an error set.
        unsafe {
            let result = ffi::PyObject_Vectorcall(
                self.gateway.get().application.as_ptr(),
                arguments.as_mut_ptr().add(1),
                2 | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET,
                std::ptr::null_mut(),
            );
            Bound::from_owned_ptr_or_opt(py, result)
        }
    }

    #[inline(never)]
    pub fn respond(&self, py: Python<'_>, begun: &Begun, result: &Bound<'_, PyAny>) -> PyResult<Option<End>> {
        let response = Response {
            handle: begun.objects.handle.bind(py),
            file_wrapper: self.file_wrapper.as_ref().map(|wrapper| wrapper.bind(py)),
            sendfile: self.sendfile,
        };
        response.send(result)
    }

    /// The application has spoken for itself over the socket: nothing more is sent there. That it ends by `StopIteration`, or
    /// without an answer, is how gunicorn's users say so.
    #[cold]
    fn was_taken(&self, py: Python<'_>, exchange: &mut Exchange, outcome: PyResult<Option<End>>) {
        if let Err(error) = outcome
            && !error.is_instance_of::<PyStopIteration>(py)
        {
            exchange.app_failed();
            self.reporter.error(py, format!("Error handling request {}", request_line(exchange)), error);
        }
    }

    /// The application let an exception out: a 500 (a 504, if it was told to end) if nothing was sent yet, else a closed
    /// connection.
    #[cold]
    fn failed(&self, py: Python<'_>, exchange: &mut Exchange, error: PyErr) {
        if let Some((status, message)) = super::body::client_fault(py, &error) {
            exchange.give_up(status, &message); // the log was told when it was raised: it is no error of the application
            return;
        }
        let is_late = is_request_timeout(py, &error);
        self.reporter.failed(py, exchange, error, is_late);
    }

    #[inline]
    fn log(&self, py: Python<'_>, exchange: &Exchange, environ: Option<&Bound<'_, PyDict>>) {
        if self.reporter.tells() {
            self.write_line(py, exchange, environ);
        }
    }

    /// Apart, since a greenlet that waits keeps every byte of the frames above it.
    #[inline(never)]
    fn write_line(&self, py: Python<'_>, exchange: &Exchange, environ: Option<&Bound<'_, PyDict>>) {
        let lookup = |key: &str| -> Option<Vec<u8>> {
            let value = environ?.get_item(key).ok().flatten()?;
            let text = value.cast_into::<PyString>().ok().or_else(|| None)?;
            as_latin1(&text).map(<[u8]>::to_vec)
        };
        let request = &*exchange.request;
        let status = match exchange.is_elsewhere() {
            false => request.reply.status_code(),
            true if request.head.fields.iter().any(|field| field.known == Known::Upgrade) => 101,
            true => return, // what was answered over the socket is not known here
        };
        let remote = exchange.client.attachment.as_ref().and_then(|kept| kept.downcast_ref::<super::peer::Names>());
        let remote = remote.map(|names| names.remote.bind(py));
        let remote = remote.and_then(|text| as_latin1(text)).unwrap_or(b"");
        self.reporter
            .access(exchange, &Line { remote, status, sent: None, called: environ.is_some(), environ: &lookup });
    }

    pub fn reporter(&self) -> &Reporter {
        &self.reporter
    }

    /// A panic has ended an answer; the exchange is lost, and the objects.
    #[cold]
    pub fn panicked(&self, py: Python<'_>, text: String) {
        self.out.set(self.out.get().saturating_sub(1));
        self.reporter.panicked(py, text);
    }

    /// Drops and logs what other threads could not. Apart from what answers requests, as a greenlet's stack is kept while it waits.
    #[inline(never)]
    pub fn do_chores(&self, py: Python<'_>, chores: Chores) {
        self.reporter.do_chores(py, chores);
    }
}
