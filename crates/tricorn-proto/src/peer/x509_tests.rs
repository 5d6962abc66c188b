//! Certificates that openssl(1) has made.
use super::*;
use std::net::{Ipv4Addr, Ipv6Addr};

fn der(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("digits");
    (0..text.len()).step_by(2).map(digit).collect()
}

#[test]
fn names_keys_and_dates_are_told_as_openssl_tells_them() {
    let der = der(MANY);
    let certificate = Certificate::parse(&der).expect("a certificate");
    assert_eq!(
        certificate.subject.text(),
        "emailAddress=a@b.example,CN=caf\u{e9}\\ ,UID=u1+OU=\\#1,O=Acme\\, Inc.,C=DE"
    );
    assert_eq!(certificate.issuer, certificate.subject);
    assert_eq!(certificate.subject.common_name().as_deref(), Some("caf\u{e9} "));
    assert_eq!((certificate.serial_text().as_str(), certificate.key), ("FF12", Key::Ec("P-256")));
    assert_eq!(certificate.not_before, MANY_BEGINS);
    assert_eq!(certificate.not_after - certificate.not_before, 3650 * 24 * 3600);
    assert_eq!(
        certificate.names,
        [
            AltName::Dns("*.Example.com"),
            AltName::Email("me@example.com"),
            AltName::Address(Ipv4Addr::new(10, 0, 0, 1).into()),
            AltName::Address(Ipv6Addr::LOCALHOST.into()),
        ]
    );
    assert_eq!(certificate.hosts(), ["*.example.com", "10.0.0.1", "::1"]);
}

#[test]
fn without_alternative_names_the_common_name_is_the_host() {
    let der = der(ONLY);
    let certificate = Certificate::parse(&der).expect("a certificate");
    assert_eq!(
        (certificate.hosts(), certificate.key.to_string()),
        (vec!["only.example".to_owned()], "RSA 2048".into())
    );
    assert_eq!((certificate.serial_text().as_str(), certificate.not_after), ("01", ONLY_ENDS), "beyond 2049");
}

#[test]
fn what_is_cut_off_or_changed_is_refused_or_read_and_never_a_panic() {
    let whole = der(MANY);
    for length in 0..whole.len() {
        assert_eq!(Certificate::parse(&whole[..length]), None);
    }
    for at in 0..whole.len() {
        for bits in [1, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] ^= bits;
            if let Some(certificate) = Certificate::parse(&changed) {
                let _ = (certificate.subject.text(), certificate.hosts());
            }
        }
    }
}

#[test]
fn attributes_without_a_name_or_a_text_are_told_in_digits() {
    let name = |attribute: &[u8]| Name(attribute).text();
    assert_eq!(name(b"\x31\x0a\x30\x08\x06\x03\x2a\x03\x04\x0c\x01x"), "1.2.3.4=#0C0178");
    assert_eq!(name(b"\x31\x0a\x30\x08\x06\x03\x55\x04\x03\x02\x01x"), "CN=#020178");
    assert_eq!(name(b"\x31\x0b\x30\x09\x06\x03\x55\x04\x03\x1e\x02\x20\xac"), "CN=\u{20ac}");
}

#[test]
fn a_certificate_is_told_as_pem() {
    for (bytes, text) in [("", ""), ("f", "Zg==\n"), ("fo", "Zm8=\n"), ("foo", "Zm9v\n"), ("foob", "Zm9vYg==\n")] {
        let whole = format!("-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n");
        assert_eq!(pem(bytes.as_bytes()), whole, "RFC 4648 section 10");
    }
    assert!(pem(&[0xff; 49]).contains(&format!("\n{}\n/w==\n", "/".repeat(64))), "64 to a line");
}

#[test]
fn days_are_counted_as_the_calendar_does() {
    for ((year, month, day), days) in
        [((1970, 1, 1), 0), ((1969, 12, 31), -1), ((2000, 2, 29), 11_016), ((2100, 3, 1), 47_541)]
    {
        assert_eq!(days_of(year, month, day), Some(days), "{year}-{month}-{day}");
    }
    assert_eq!(days_of(2026, 13, 1), None);
}

const MANY_BEGINS: i64 = 1795662581;
const ONLY_ENDS: i64 = 3523662562;
const MANY: &str = "\
    3082026e30820214a003020102020300ff12300a06082a8648ce3d040302306e310b30090603550406130244453113301106\
    0355040a0c0a41636d652c20496e632e311d3009060355040b0c0223313010060a0992268993f22c6401010c027531310f30\
    0d06035504030c06636166c3a920311a301806092a864886f70d010901160b6140622e6578616d706c65301e170d32363131\
    32363033303934315a170d3336313132333033303934315a306e310b300906035504061302444531133011060355040a0c0a\
    41636d652c20496e632e311d3009060355040b0c0223313010060a0992268993f22c6401010c027531310f300d0603550403\
    0c06636166c3a920311a301806092a864886f70d010901160b6140622e6578616d706c653059301306072a8648ce3d020106\
    082a8648ce3d03010703420004d70ba8d96204576c4e6fe654c8ef47d9ccf7515700769c91848bda3c1bb39abe676c5b638e\
    2c859c08952efb6c9039bdfb9e5d4a75c5c2a6a6977e23e1073082a381a030819d301d0603551d0e041604149b184cff7704\
    d04aa931a171259b191e64934e53301f0603551d230418301680149b184cff7704d04aa931a171259b191e64934e53300f06\
    03551d130101ff040530030101ff304a0603551d1104433041820d2a2e4578616d706c652e636f6d810e6d65406578616d70\
    6c652e636f6d87040a0000018710000000000000000000000000000000018608687474703a2f2f78300a06082a8648ce3d04\
    030203480030450220285c3c2d998e3a2d3ea854aa874a7f4d46159766d87042ca2d07a13c0e4c720c022100afb3b91ba397\
    f97077ccdc98045db1c7c2a03c3e5e9dca598a8a485bdb7be025\
";
const ONLY: &str = "\
    308202fe308201e6a003020102020101300d06092a864886f70d01010b050030173115301306035504030c0c4f6e6c792e45\
    78616d706c653020170d3236313132363033303932325a180f32303831303832393033303932325a30173115301306035504\
    030c0c4f6e6c792e4578616d706c6530820122300d06092a864886f70d01010105000382010f003082010a0282010100c0a5\
    1ac9814baf9c2b692133ac2ee759e2f8076f94a6c416a53fd150b6e48cf7884694b8035fe3fada0fc1ce578f546849a8211a\
    773769a13182d7bd3a5ad5ede37d459cf255525a04feaed3b1ebe7c5a22f8d0a66f3d256e0078cb156c69928892e19f3bb47\
    5c7f4e6cd01b55dd57675bb71cf26101c0c9fe5ef8d4a4efb08d99061d55370c1834107a887ea5b822a86b93c76670d7352d\
    932706c277bc9cdf63d63b57a7e984070ba52417ed57c0cb13dbdf7b2e7f8621152e5e7a1fdbeb87024d42faf047169077b6\
    ad2ad2379c74a954fc03af5c4e745caf17fc7b9e4a24b1003d3266b2f959275426da62bc56149faa6abc4d8a26dfcf0d2c59\
    e1856cd10203010001a3533051301d0603551d0e041604148ada3350478b0ee165b613feaf2ecdae2ada5e12301f0603551d\
    230418301680148ada3350478b0ee165b613feaf2ecdae2ada5e12300f0603551d130101ff040530030101ff300d06092a86\
    4886f70d01010b0500038201010039d0bddc5bf0f66f2f204c34b9744d14f381433b1cac7781402405e3a24328141376c43f\
    13576e988167107478ef87bddf98387f5c35280a1e030190e13b947073c5e6d3179a57be0a38e05a7b552ac615f9de3f5637\
    64659bf0f0fc6aedb50ef439c91f50ceed5917e9f142ff65a8af061749b5d55eebbd6e8032acb2edbc2aa4bf3737a9117a1f\
    e29a11786141b8bc50479853ecfa7268e9cc044da3bcadf104182da837d2f0f60464edd6c772eb90c258c9388f0001c5cb42\
    d605c60f411792ca7e51ea9eff0d1b05565a5a61795291273ea86924ff549d5fb90f6840c44861f56ce6634b71606d5d2f58\
    89f10973d82b9e5f7d7afcc33272220686a3988c\
";
