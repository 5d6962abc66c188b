//! What is told of a certificate, of whatever bytes: names without what ends a line, and PEM that is one.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_proto::peer::x509::{AltName, Certificate, pem};

fuzz_target!(|data: &[u8]| {
    let text = pem(data);
    assert!(text.starts_with("-----BEGIN") && text.lines().all(|line| line.len() <= 64));
    let Some(certificate) = Certificate::parse(data) else { return };
    for name in [certificate.subject, certificate.issuer] {
        let text = name.text();
        assert!(!text.contains(|letter: char| letter < ' ' || letter == '\x7f'), "{text:?}");
        let _ = name.common_name();
    }
    assert!(certificate.serial_text().len() == certificate.serial.len() * 2);
    for name in &certificate.names {
        if let AltName::Dns(name) | AltName::Email(name) = name {
            assert!(name.is_ascii());
        }
    }
    assert!(certificate.hosts().len() <= certificate.names.len().max(1));
});
