//! The first bytes of a client by TLS: however they are cut, they come to the same, what is answered is bounded, and there is no
//! plaintext before the handshake is over.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use tricorn_io::tls::{AHEAD, Bundle, Identity, Link, Opened, Page, Reason, Scratch, Source, publish};

const PEM: &[u8] = include_bytes!("../seeds/pem/server.pem");

static SOURCE: LazyLock<Source> = LazyLock::new(|| {
    let identity = Identity { label: "server".into(), chain: PEM.to_vec(), key: PEM.to_vec(), ocsp: None };
    let page = Page::private();
    publish(&page, &Bundle { certificates: vec![identity], ..Bundle::default() }).expect("it is right");
    Source::new(page).expect("it is there")
});

/// What became of bytes that came in pieces of this length.
fn come(data: &[u8], length: usize) -> Result<Opened, Reason> {
    let mut link: Link = SOURCE.session().expect("a session");
    let mut scratch = Scratch::default();
    for piece in data.chunks(length) {
        let held = link.begin_reading(&mut scratch.wire);
        scratch.wire[held..held + piece.len()].copy_from_slice(piece);
        let absorbed = link.absorb(&mut scratch.wire[..held + piece.len()], &mut |_| panic!("plaintext"));
        assert!(link.owed().len() <= AHEAD);
        absorbed.map_err(|failure| failure.reason)?;
    }
    Ok(link.opened())
}

fuzz_target!(|data: &[u8]| {
    let whole = come(data, data.len().max(1));
    assert_ne!(whole, Ok(Opened::Yes), "without our answer there is no handshake");
    for length in [1, 7, 100] {
        assert_eq!(come(data, length), whole, "pieces of {length} bytes");
    }
});
