//! How a WebSocket begins: the application is called for a handshake that is right.
use super::bound;
use super::ground::Ground;
use super::websocket::Socket;
use crate::functions::call_with;
use crate::loops::Told;
use crate::report::Level;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;
use tricorn_io::Exchange;
use tricorn_proto::websocket::handshake::{Asked, Wrong};

/// Calls the application for a handshake, and lets its task run as far as it comes.
pub fn start(py: Python<'_>, ground: &Arc<Ground>, mut exchange: Box<Exchange>, asked: Asked) -> PyResult<()> {
    let names = PyList::new(py, &asked.wanted.protocols)?;
    let scope = match ground.maker().websocket(py, &ground.shared.engine, &mut exchange, names) {
        Ok(scope) => scope,
        Err(error) => return ground.refuse(py, exchange, error, None),
    };
    let token = match &ground.shared.before {
        None => None,
        Some(before) => match before.bind(py).call1((&scope,)) {
            Ok(token) => Some(token.unbind()),
            Err(error) => return ground.refuse(py, exchange, error, Some(&scope)),
        },
    };
    let told = Told { scope: ground.kept(&scope), token };
    let socket = Bound::new(py, Socket::new(ground.clone(), exchange, asked, told))?;
    let (receive, send) = bound::functions(py, socket.as_unbound())?;
    let begun = call_with(py, &ground.application, &[scope.as_ptr(), receive.as_ptr(), send.as_ptr()])
        .and_then(|coroutine| ground.tasks.begin(&coroutine));
    drop((receive, send));
    match begun {
        Ok(begun) if begun.is_done()? => begun.inside(|| Socket::finish(&socket, &begun.task, Some(&scope))),
        Ok(begun) => Socket::goes_on(&socket, &begun, scope),
        Err(error) => {
            let exchange = socket.get().take();
            exchange.map_or(Ok(()), |exchange| ground.refuse(py, exchange, error, Some(&scope)))
        }
    }
}

/// A handshake that is wrong: told, and logged.
#[cold]
pub fn refuse(py: Python<'_>, ground: &Ground, mut exchange: Box<Exchange>, wrong: Wrong) {
    exchange.answer_error_with(wrong.status(), wrong.message(), wrong.fields());
    let text = format!("Invalid request from ip={}: {}", exchange.client.peer, wrong.message());
    ground.shared.reporter.notify(py, Level::Warning, text);
    ground.end(py, exchange, Told::default(), Some(wrong.status()), None);
}
