//! Bundles that are right, and what is said of others.
use super::*;
use rcgen::{CertificateParams, Issuer, KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256, SignatureAlgorithm};

fn identity(label: &str, names: &[&str], algorithm: &'static SignatureAlgorithm) -> Identity {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate_for(algorithm).expect("a key");
    let certificate = CertificateParams::new(names).expect("names").self_signed(&key).expect("a certificate");
    Identity { label: label.into(), chain: certificate.pem().into(), key: key.serialize_pem().into(), ocsp: None }
}

fn bundle() -> Bundle {
    Bundle {
        certificates: vec![identity("a.pem", &["a.example", "*.b.example"], &PKCS_ECDSA_P384_SHA384)],
        ..Bundle::default()
    }
}

fn said(change: impl FnOnce(&mut Bundle)) -> String {
    let mut bundle = bundle();
    change(&mut bundle);
    check(&bundle).expect_err("it is wrong")
}

#[test]
fn what_is_right_is_told_of() {
    let [report] = &check(&bundle()).expect("it is right")[..] else { panic!("one certificate, one report") };
    assert_eq!((report.label.as_str(), report.key.as_str()), ("a.pem", "ECDSA P-384"));
    assert_eq!(report.names, ["a.example", "*.b.example"]);
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
}

#[test]
fn what_is_wrong_is_told_with_the_file() {
    let other = identity("b.pem", &["b"], &PKCS_ECDSA_P384_SHA384);
    let other_key = other.key.clone();
    for (change, words) in [
        (
            Box::new(|bundle: &mut Bundle| bundle.certificates[0].key = other_key) as Box<dyn FnOnce(&mut Bundle)>,
            "a.pem: the private key is not that of the certificate",
        ),
        (Box::new(|bundle| bundle.certificates[0].key.clear()), "a.pem: there is no private key that can be read"),
        (
            Box::new(|bundle| bundle.certificates[0].key = b"-----BEGIN ENCRYPTED PRIVATE KEY-----".to_vec()),
            "a.pem: its private key is encrypted; write one that is not by: openssl pkey",
        ),
        (Box::new(|bundle| bundle.certificates[0].chain = b"nothing".to_vec()), "a.pem: there is no certificate in it"),
        (
            Box::new(|bundle| {
                bundle.certificates[0].chain =
                    b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec()
            }),
            "a.pem: its first certificate cannot be read",
        ),
        (Box::new(|bundle| bundle.certificates.clear()), "there is no certificate"),
        (Box::new(|bundle| bundle.client_certificates = ClientCertificates::Required), "no CA is named (ca_certs)"),
        (Box::new(|bundle| bundle.min_version = Version::Tls13), ""),
        (
            Box::new(|bundle| bundle.suites = Some(vec!["RC4".into()])),
            "ciphers: RC4 is none of TLS_AES_256_GCM_SHA384, ",
        ),
        (Box::new(|bundle| bundle.suites = Some(Vec::new())), "ciphers: none of"),
        (Box::new(|bundle| bundle.key_log = Some("/nowhere/keys".into())), "tls_key_log: /nowhere/keys: "),
    ] {
        if words.is_empty() {
            assert!(
                said(|bundle| (bundle.min_version, bundle.max_version) = (Version::Tls13, Version::Tls12))
                    .contains("higher")
            );
            continue;
        }
        let said = said(change);
        assert!(said.contains(words), "{said:?}, not {words:?}");
    }
}

#[test]
fn certificates_of_clients_need_an_authority_that_can_be_read() {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("a certificate");
    let asked = |ca: &[u8], crls: Vec<Vec<u8>>| Bundle {
        client_certificates: ClientCertificates::Optional,
        ca: Some(ca.to_vec()),
        crls,
        ..bundle()
    };
    let pem = authority.pem();
    assert!(check(&asked(pem.as_bytes(), Vec::new())).is_ok());
    let said = |ca: &[u8], crl: &[u8]| check(&asked(ca, vec![crl.to_vec()])).expect_err("it is wrong");
    assert!(said(b"", b"x").contains("ca_certs: there is no certificate in it"));
    assert!(said(pem.as_bytes(), b"x").contains("tls_crl_file: a file has no list in it"));
    assert!(said(pem.as_bytes(), &[0x30, 0]).contains("tls_crl_file: a list cannot be used"));
    let list = rcgen::CertificateRevocationListParams {
        this_update: rcgen::date_time_ymd(2020, 1, 1),
        next_update: rcgen::date_time_ymd(2090, 1, 1),
        crl_number: 1.into(),
        issuing_distribution_point: None,
        revoked_certs: Vec::new(),
        key_identifier_method: rcgen::KeyIdMethod::Sha256,
    };
    let list = list.signed_by(&Issuer::new(params, key)).expect("a list");
    for list in [list.pem().expect("PEM").into_bytes(), list.der().to_vec()] {
        assert!(check(&asked(pem.as_bytes(), vec![list])).is_ok(), "PEM or DER");
    }
}

#[test]
fn a_long_rsa_key_and_a_certificate_without_names_are_warned_of() {
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, rcgen::RsaKeySize::_4096).expect("a key");
    let certificate = CertificateParams::new(Vec::new()).expect("none").self_signed(&key).expect("a certificate");
    let identity =
        Identity { label: "r".into(), chain: certificate.pem().into(), key: key.serialize_pem().into(), ocsp: None };
    let reports = check(&Bundle { certificates: vec![identity], ..Bundle::default() }).expect("it is right");
    assert_eq!(reports[0].key, "RSA 4096");
    assert!(reports[0].warnings.iter().any(|warning| warning.contains("RSA key of 4096 bits")));
    assert!(reports[0].warnings.iter().any(|warning| warning.contains("no alternative names")));
}

#[test]
fn a_wrong_bundle_is_not_published_and_a_new_one_is_built_once() {
    let page = Page::private();
    assert!(Source::new(page).is_err_and(|error| error.contains("no certificates were published")));
    publish(&page, &bundle()).expect("it is right");
    let source = Source::new(page).expect("it is there");
    let first = source.config();
    assert!(std::sync::Arc::ptr_eq(&first, &source.config()));
    assert!(publish(&page, &Bundle::default()).is_err());
    assert!(std::sync::Arc::ptr_eq(&first, &source.config()), "the page is as before");
    publish(&page, &bundle()).expect("it is right");
    let second = source.config();
    assert!(!std::sync::Arc::ptr_eq(&first, &second));
    page.publish(b"of another version").expect("there is room");
    assert!(std::sync::Arc::ptr_eq(&second, &source.config()), "what was there before stays");
    assert!(source.take_complaint().is_some_and(|text| text.contains("another version")));
    assert_eq!(source.take_complaint(), None);
}

#[test]
fn there_are_nine_suites() {
    let names = suite_names();
    assert_eq!(names.len(), 9);
    assert!(
        names.contains(&"TLS_AES_128_GCM_SHA256".to_owned())
            && names.contains(&"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".to_owned())
    );
    let bundle = Bundle { suites: Some(names), ..bundle() };
    assert!(check(&bundle).is_ok());
}
