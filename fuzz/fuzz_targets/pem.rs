//! Files of certificates, keys, CAs and lists: whatever is in them is right, or a sentence says what is wrong, and in which.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_io::tls::{Bundle, ClientCertificates, Identity, check};

const PEM: &[u8] = include_bytes!("../seeds/pem/server.pem");

fuzz_target!(|data: &[u8]| {
    let identity = |chain: &[u8], key: &[u8]| Identity { label: "the file".into(), chain: chain.into(), key: key.into(), ocsp: None };
    let with = |identity| Bundle { certificates: vec![identity], ..Bundle::default() };
    for identity in [identity(data, data), identity(PEM, data), identity(data, PEM)] {
        match check(&with(identity)) {
            Ok(reports) => assert!(reports.len() == 1 && reports[0].label == "the file"),
            Err(error) => assert!(error.starts_with("the file: "), "{error}"),
        }
    }
    let clients = Bundle {
        client_certificates: ClientCertificates::Optional,
        ca: Some(PEM.to_vec()),
        ..with(identity(PEM, PEM))
    };
    if let Err(error) = check(&Bundle { ca: Some(data.to_vec()), ..clients.clone() }) {
        assert!(error.starts_with("ca_certs: "), "{error}");
    }
    if let Err(error) = check(&Bundle { crls: vec![data.to_vec()], ..clients.clone() }) {
        assert!(error.starts_with("tls_crl_file: "), "{error}");
    }
    if let Some(bundle) = Bundle::decode(data) {
        assert!(Bundle::decode(&bundle.encode()) == Some(bundle));
    }
});
