//! All tests of the crate but those that count what is allocated, in one program: each costs as much to compile as
//! several of them.
#[path = "../support/http2.rs"]
mod h2;
#[path = "../support/websocket.rs"]
mod peer;
#[path = "../support/response.rs"]
mod response;
#[path = "../support/mod.rs"]
mod support;

mod access_log;
mod bodies;
mod cgi;
mod cuts;
mod fields;
mod http2;
mod http2_attacks;
mod http2_fixes;
mod http2_hpack;
mod http2_parts;
mod http2_rules;
mod reply;
mod request_line;
mod response_parser;
mod smuggling;
mod splits;
mod websocket;
mod websocket_deflate;
mod websocket_handshake;
mod websocket_round_trips;
mod websocket_session;
