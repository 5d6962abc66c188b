//! Groups whose connections stay with their workers: by TLS, or by HTTP/2.
#![allow(clippy::expect_used)] // A test may panic, in its helpers too.
use super::NEVER;
use super::group::{Plan, Workers, plan};
use super::tls::{TlsClient, World, over, shake};
use std::net::TcpStream;
use std::sync::Arc;
use tricorn_io::{Config, Http2};
use tricorn_proto::http2::Settings;

pub fn speaking_http2(workers: usize) -> Plan {
    let http2 = Http2 { cleartext: true, idle_timeout: NEVER, settings: Settings::default() };
    let plan = plan(workers);
    Plan { config: Config { http2: Some(Box::new(http2)), ..plan.config }, ..plan }
}

/// TLS where all listen; each worker's own listener is a plain one.
pub fn secured(world: &World, workers: usize) -> Plan {
    let plan = plan(workers);
    let mut config = world.secure(plan.config);
    let plain = tricorn_io::Door { tls: false, proxy_protocol: None, front_end: None };
    config.doors.extend([plain.clone(), plain]);
    Plan { config, ..plan }
}

/// A client of TLS that this worker serves, since the others are busy while it comes.
pub fn connect_by_tls(workers: &Workers, world: &World, index: usize) -> TlsClient {
    (0..workers.servers.len()).filter(|other| *other != index).for_each(|other| workers.block(other));
    let socket = TcpStream::connect(workers.address).expect("a connection");
    let mut client = over(socket, Arc::new(world.client()), "localhost");
    shake(&mut client).expect("a handshake");
    assert_eq!(client.get("/first").answer().worker, Some(index));
    (0..workers.servers.len()).filter(|other| *other != index).for_each(|other| workers.unblock(other));
    client
}
