//! What a WebSocket handshake asks for: whatever it is, the answer is a field value, and no more than was offered.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_fuzz::Choices;
use tricorn_proto::message::grammar::{is_field_value, is_token};
use tricorn_proto::websocket::deflate::Policy;
use tricorn_proto::websocket::handshake::{Key, Wanted, accept};

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    let (server, client) = (choices.byte(), choices.byte());
    let policy = Policy { server_max_window_bits: server, client_max_window_bits: client, ..Policy::default() };
    let (key, protocols) = (choices.bytes(), choices.bytes());
    if let Some(key) = Key::read(key) {
        assert!(is_field_value(&accept(&key)));
    }
    let mut wanted = Wanted::default();
    let _ = wanted.note(b"Sec-WebSocket-Protocol", protocols);
    assert!(wanted.protocols.iter().all(|protocol| is_token(protocol.as_bytes())));
    if wanted.note(b"Sec-WebSocket-Extensions", choices.0).is_err() {
        return;
    }
    for offer in wanted.offers {
        let Some(agreed) = policy.choose([offer]) else { continue };
        assert!((9..=15).contains(&agreed.server_bits) && (8..=15).contains(&agreed.client_bits));
        assert!(offer.server_max_window_bits.is_none_or(|most| agreed.server_bits <= most));
        assert!(!(offer.server_no_context_takeover && agreed.server_context_takeover));
        if offer.client_max_window_bits.is_none() {
            assert_eq!(agreed.client_bits, 15);
        }
        let text = agreed.to_string();
        assert!(is_field_value(text.as_bytes()));
        // What we answer is itself an offer that would be accepted.
        let mut again = Wanted::default();
        assert!(again.note(b"sec-websocket-extensions", text.as_bytes()).is_ok());
        assert_eq!(again.offers.len(), 1);
    }
});
