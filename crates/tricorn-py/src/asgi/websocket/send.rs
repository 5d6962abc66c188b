//! `send`: accept, messages, close. What can be done at once is done in the call itself.
use super::super::event::{bytes_of, copied_headers, fault, integer, wrong};
use super::super::ground::Ground;
use super::room::ForRoom;
use super::socket::{Link, NORMAL, Phase, Socket};
use super::{deny, events};
use crate::loops::{AfterTurn, Done};
use crate::pieces::{self, Piece};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tricorn_io::{Exchange, Sent, WebSocketIo};
use tricorn_proto::response::HeadInputs;
use tricorn_proto::websocket::deflate::Agreed;
use tricorn_proto::websocket::handshake::{Answer, Asked, answer};
use tricorn_proto::websocket::session::Settings;
use tricorn_proto::websocket::{Kind, Role, Unsendable};

/// Bytes of messages that wait for an application; over it nothing more is read.
const INBOX: usize = 256 * 1024;
/// How long a peer may take to answer our Close frame, in nanoseconds.
const CLOSE_TIMEOUT: u64 = 5_000_000_000;

/// What `send(event)` returns.
pub fn send(socket: &Bound<'_, Socket>, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = socket.py();
    let event = event.cast::<PyDict>().map_err(|_| wrong(event, "an event", "a dict"))?;
    let kind = event.get_item(intern!(py, "type"))?.ok_or_else(|| PyValueError::new_err("an event without a type"))?;
    let kind = kind.cast_into::<PyString>().map_err(|_| PyTypeError::new_err("an event's type must be a str"))?;
    let kind = kind.to_str()?;
    match verdict(socket, kind)? {
        Verdict::Go => {}
        Verdict::Gone if kind == "websocket.close" => return Done::get(py),
        Verdict::Gone => return socket.get().disconnected(py),
    }
    match kind {
        "websocket.send" => message(socket, event),
        "websocket.accept" => accept(socket, event),
        "websocket.close" => close(socket, event),
        "websocket.http.response.start" => deny::start(socket, event),
        _ => deny::body(socket, event),
    }
}

/// What becomes of an event.
enum Verdict {
    Go,
    /// The client is gone.
    Gone,
}

/// Events come in the order of the specification; others are told what was expected.
fn verdict(socket: &Bound<'_, Socket>, kind: &str) -> PyResult<Verdict> {
    let state = socket.get().state();
    let phase = state.phase;
    let fits = match kind {
        "websocket.send" => phase == Phase::Open,
        "websocket.close" => matches!(phase, Phase::Open | Phase::Asked),
        "websocket.accept" | "websocket.http.response.start" => phase == Phase::Asked,
        "websocket.http.response.body" => phase == Phase::Denying,
        _ => false,
    };
    // A client that is gone is told of before the application's mistakes: it could not know.
    let is_gone = state.has_left || state.active.is_away() && !state.is_closed_by_application;
    // Nobody is there to be accepted, though the event that tells it waits for its turn.
    let is_gone = is_gone || kind == "websocket.accept" && state.active.exchange().is_some_and(Exchange::has_hung_up);
    drop(state);
    if is_gone {
        return Ok(Verdict::Gone);
    }
    if fits {
        return Ok(Verdict::Go);
    }
    let expected = match phase {
        Phase::Asked => "expected 'websocket.accept', 'websocket.close' or 'websocket.http.response.start'",
        Phase::Open => "expected 'websocket.send' or 'websocket.close'",
        Phase::Denying => "expected 'websocket.http.response.body'",
        Phase::Closed => "the WebSocket is closed",
    };
    Err(PyRuntimeError::new_err(format!("Unexpected ASGI message {kind:?}: {expected}")))
}

fn message(socket: &Bound<'_, Socket>, event: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
    let py = socket.py();
    let text = event.get_item(intern!(py, "text"))?.filter(|text| !text.is_none());
    let bytes = event.get_item(intern!(py, "bytes"))?.filter(|bytes| !bytes.is_none());
    let (outcome, length) = match (text, bytes) {
        (Some(text), None) => {
            let text = text
                .cast_into::<PyString>()
                .map_err(|error| wrong(&error.into_inner(), "the 'text' of 'websocket.send'", "a str"))?;
            let data = text.to_str()?.as_bytes();
            let keep = || pieces::kept_text(&text);
            (Socket::with(socket, |desk, link| link.send(desk, Kind::Text, data, keep))?, data.len())
        }
        (None, Some(bytes)) => {
            let bytes = bytes_of(&bytes)?;
            let keep = || Piece::all(&bytes).kept();
            let data = bytes.as_bytes();
            (Socket::with(socket, |desk, link| link.send(desk, Kind::Binary, data, keep))?, data.len())
        }
        (None, None) => return Err(PyValueError::new_err("'websocket.send' has neither 'text' nor 'bytes'")),
        (Some(_), Some(_)) => return Err(PyValueError::new_err("'websocket.send' has both 'text' and 'bytes'")),
    };
    match outcome {
        Some(Ok(Sent::Accepted)) => {
            Socket::see_to_held(socket)?;
            let shared = &socket.get().ground.shared;
            if shared.goes_on(length) && shared.gives_way() { AfterTurn::nothing(py) } else { Done::get(py) }
        }
        Some(Ok(Sent::OverMark)) => ForRoom::wait(socket),
        Some(Ok(Sent::Gone) | Err(Unsendable::Closing)) | None => socket.get().disconnected(py),
        Some(Err(other)) => Err(PyValueError::new_err(other.to_string())),
    }
}

fn accept(socket: &Bound<'_, Socket>, event: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
    let (this, py) = (socket.get(), socket.py());
    let protocol = match event.get_item(intern!(py, "subprotocol"))?.filter(|protocol| !protocol.is_none()) {
        Some(protocol) => Some(protocol.extract::<String>()?),
        None => None,
    };
    // Here they may be None, too (ASGI WebSocket specification, "Accept").
    let has_headers = event.get_item(intern!(py, "headers"))?.is_some_and(|headers| !headers.is_none());
    let fields = if has_headers { copied_headers(event)? } else { Vec::new() };
    let (mut exchange, asked) = {
        let mut state = this.state();
        match (state.active.take(), state.asked.take()) {
            (Some(exchange), Some(asked)) => (exchange, asked),
            (None, _) => {
                drop(state);
                return this.disconnected(py);
            }
            // Headers are the application's objects: one of them may have accepted it, or denied it, meanwhile.
            (Some(exchange), None) => {
                state.active.put(exchange);
                return Err(PyRuntimeError::new_err("the WebSocket was answered while its answer's headers were read"));
            }
        }
    };
    let agreed = this.ground.limits.deflate.choose(asked.wanted.offers.iter().copied());
    if let Err(error) = set_answer(&mut exchange, &asked, protocol.as_deref(), agreed.as_ref(), &fields) {
        let mut state = this.state();
        state.active.put(exchange);
        state.asked = Some(asked);
        return Err(error);
    }
    this.ground.shared.engine.conclude_call(exchange.slot());
    let mut buffers = this.ground.take_shelf();
    let mut desk = WebSocketIo { engine: &this.ground.shared.engine, exchange: &mut exchange, buffers: &mut buffers };
    let link = begin(py, &this.ground, &mut desk, agreed.as_ref());
    this.ground.give_shelf(buffers);
    {
        let mut state = this.state();
        state.phase = Phase::Open;
        state.link = Some(Box::new(link));
        state.active.put(exchange);
    }
    this.attend(socket);
    let leaving = this.ground.leaving();
    Socket::with(socket, |desk, link| {
        if leaving > 0 {
            link.leave(desk, leaving);
        }
        link.read(desk, |kind, data| events::event(py, kind, data));
    })?;
    Done::get(py)
}

fn begin(py: Python<'_>, ground: &Ground, desk: &mut WebSocketIo<'_>, agreed: Option<&Agreed>) -> Link {
    let limits = &ground.limits;
    let settings = Settings {
        role: Role::Server,
        max_message_size: limits.message,
        deflate: agreed,
        inbox: INBOX,
        ping_interval: limits.ping_interval,
        ping_timeout: limits.ping_timeout,
        close_timeout: CLOSE_TIMEOUT,
        seed: 0,
    };
    let (wall, load) = (desk.exchange.wall.clone(), ground.shared.engine.told_load(desk.exchange));
    let inputs = HeadInputs { close: false, ..ground.shared.engine.head_inputs(&wall, load.as_deref(), None) };
    Link::begin(desk, &settings, &inputs, |kind, data| events::event(py, kind, data))
}

fn set_answer(
    exchange: &mut Exchange,
    asked: &Asked,
    protocol: Option<&str>,
    deflate: Option<&Agreed>,
    fields: &[(Vec<u8>, Vec<u8>)],
) -> PyResult<()> {
    if let Some(protocol) = protocol
        && !asked.wanted.protocols.iter().any(|offered| offered == protocol)
    {
        let offered = asked.wanted.protocols.join(", ");
        let text = format!("the subprotocol {protocol:?} is none of those the client offers ({offered})");
        return Err(PyValueError::new_err(text));
    }
    let fields = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
    answer(&mut exchange.request.reply, &Answer { key: asked.key.as_ref(), protocol, deflate }, fields).map_err(fault)
}

fn close(socket: &Bound<'_, Socket>, event: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
    let (this, py) = (socket.get(), socket.py());
    let exchange = {
        let mut state = this.state();
        if state.phase == Phase::Asked { state.active.take() } else { None }
    };
    if let Some(mut exchange) = exchange {
        exchange.answer_error(403, "");
        this.state().is_closed_by_application = true;
        // Neither code nor reason are sent with it, so that what they are does not matter.
        Socket::conclude(socket, exchange, 403)?;
        return Done::get(py);
    }
    let code = match event.get_item(intern!(py, "code"))?.filter(|code| !code.is_none()) {
        Some(code) => integer(&code, "the code of 'websocket.close'", 1000..=4999)?,
        None => NORMAL,
    };
    let reason = match event.get_item(intern!(py, "reason"))?.filter(|reason| !reason.is_none()) {
        Some(reason) => reason.extract().map_err(|_| wrong(&reason, "the reason of 'websocket.close'", "a str"))?,
        None => String::new(),
    };
    if !tricorn_proto::websocket::close::may_be_sent(code) {
        return Err(PyValueError::new_err(Unsendable::CloseCode(code).to_string()));
    }
    this.state().is_closed_by_application = true;
    // If the other side was faster, that is all there is to do.
    Socket::close(socket, Some(code), &reason)?;
    Done::get(py)
}
