//! What front ends are believed in, and what of theirs is taken out.
use super::*;
use crate::http1::{HeadPolicy, Receiver};

/// The head's fields as the application sees them, and what is claimed.
fn read(policy: &ProxyPolicy, trusted: bool, fields: &str) -> Result<(String, RequestHead, Claims), Box<Refusal>> {
    let mut input = format!("GET / HTTP/1.1\r\nHost: inner\r\n{fields}\r\n").into_bytes();
    let mut head = RequestHead::default();
    let progress = Receiver::default().advance(&mut input, &HeadPolicy::default(), trusted, &mut head)?;
    let claims = believe(&mut head, &input, policy, trusted)?;
    if let Some(host) = &claims.host {
        let at = progress.consumed as u32;
        input.splice(progress.consumed.., [NAME, host].concat());
        set_host(&mut head, at, host.len());
    }
    let text = |span: Span| String::from_utf8_lossy(span.of(&input)).into_owned();
    let seen = head.fields.iter().map(|field| format!("{}={} ", text(field.name), text(field.value))).collect();
    Ok((seen, head, claims))
}

fn policy(names: &str, hops: usize) -> ProxyPolicy {
    let names: Vec<String> = names.split(' ').map(|name| format!("x-forwarded-{name}")).collect();
    ProxyPolicy::new(&names, hops, true).expect("their names")
}

fn forwarded(hops: usize) -> ProxyPolicy {
    ProxyPolicy::new(&["forwarded".into()], hops, true).expect("its name")
}

fn client(policy: &ProxyPolicy, fields: &str) -> Option<(String, u16)> {
    read(policy, true, fields).expect("good fields").2.client.map(|node| (node.name, node.port))
}

const ALL: &str = "for proto host port by";

#[test]
fn of_a_list_as_many_hops_count_as_there_are_front_ends() {
    let three = "X-Forwarded-For: 203.0.113.9, 198.51.100.7\r\nx-forwarded-for: 10.0.0.2:80\r\n";
    for (hops, name, port) in
        [(1, "10.0.0.2", 80), (2, "198.51.100.7", 0), (3, "203.0.113.9", 0), (9, "203.0.113.9", 0)]
    {
        assert_eq!(client(&policy(ALL, hops), three), Some((name.into(), port)), "{hops}");
    }
    assert_eq!(client(&policy(ALL, 1), ""), None);
    assert_eq!(client(&policy("proto", 1), three), None, "it is not chosen");
}

#[test]
fn scheme_host_and_port_are_put_together() {
    for (fields, host, name, port, scheme) in [
        ("X-Forwarded-Proto: https\r\n", "inner", None, Some(443), Scheme::Https),
        ("X-Forwarded-Proto: HTTP\r\n", "inner", None, Some(80), Scheme::Http),
        ("X-Forwarded-Host: a.example\r\n", "a.example", Some("a.example"), Some(80), Scheme::Http),
        ("X-Forwarded-Host: a.example:80\r\n", "a.example", Some("a.example"), Some(80), Scheme::Http),
        ("X-Forwarded-Host: [::1]:81\r\n", "[::1]:81", Some("[::1]"), Some(81), Scheme::Http),
        ("X-Forwarded-Port: 8443\r\n", "inner", None, Some(8443), Scheme::Http),
        (
            "X-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example\r\nX-Forwarded-Port: 8443\r\n",
            "a.example:8443",
            Some("a.example"),
            Some(8443),
            Scheme::Https,
        ),
        ("X-Forwarded-Host: a:82\r\nX-Forwarded-Port: 8443\r\n", "a:82", Some("a"), Some(82), Scheme::Http),
    ] {
        let (seen, head, claims) = read(&policy(ALL, 1), true, fields).expect("good fields");
        assert!(seen.starts_with(&format!("Host={host} ")), "{fields}: {seen}");
        assert_eq!(claims.server_name, name.map(|name: &str| name.as_bytes().to_vec()), "{fields}");
        assert_eq!((claims.server_port, head.scheme), (port, scheme), "{fields}");
    }
}

#[test]
fn what_is_not_chosen_and_what_strangers_say_is_taken_out() {
    let fields = "X-Forwarded-For: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\nX-Forwarded-Host: a\r\nX-Other: yes\r\n";
    let (seen, _, claims) = read(&policy("for", 1), true, fields).expect("good fields");
    assert_eq!((seen.as_str(), claims.removed.len()), ("Host=inner X-Forwarded-For=1.2.3.4 X-Other=yes ", 2));
    let (seen, head, claims) = read(&policy(ALL, 1), false, fields).expect("whatever they say");
    assert_eq!((seen.as_str(), claims.removed.len()), ("Host=inner X-Other=yes ", 3));
    assert_eq!((claims.client, head.scheme), (None, Scheme::Http));
    let keeps = ProxyPolicy::new(&["x-forwarded-for".into()], 1, false).expect("its name");
    let (seen, _, claims) = read(&keeps, false, fields).expect("whatever they say");
    assert_eq!((seen.matches('=').count(), claims.removed.len(), claims.client), (6, 0, None));
}

#[test]
fn the_field_of_the_rfc_is_read_instead() {
    let fields =
        "Forwarded: for=6.6.6.6;proto=http\r\nForwarded: for=203.0.113.9;host=\"a:81\", for=10.0.0.2;proto=https\r\n";
    assert_eq!(client(&forwarded(1), fields), Some(("10.0.0.2".into(), 0)));
    assert_eq!(client(&forwarded(2), fields), Some(("203.0.113.9".into(), 0)));
    let (seen, head, claims) = read(&forwarded(2), true, fields).expect("good fields");
    assert!(seen.starts_with("Host=a:81 Forwarded="), "{seen}");
    assert_eq!((claims.server_port, head.scheme), (Some(81), Scheme::Https));
    assert_eq!(client(&forwarded(1), "Forwarded: proto=http\r\n"), None);
}

#[test]
fn what_nobody_can_mean_is_refused() {
    for fields in [
        "X-Forwarded-For: example.com",
        "X-Forwarded-For: 1.2.3.4:x",
        "X-Forwarded-Proto: ftp",
        "X-Forwarded-Host: a b",
        "X-Forwarded-Host: a:0",
        "X-Forwarded-Host: :80",
        "X-Forwarded-Host: a:65536",
        "X-Forwarded-Port: 0",
        "X-Forwarded-Port: +80",
    ] {
        let refusal = read(&policy(ALL, 1), true, &format!("{fields}\r\n")).expect_err(fields);
        assert_eq!((refusal.kind, refusal.detail.as_str()), (RefusalKind::Forwarded, fields));
        read(&policy(ALL, 1), false, &format!("{fields}\r\n")).expect("a stranger's is not read");
    }
    let refusal = read(&forwarded(1), true, "Forwarded: for=1.2.3.4; for=x\r\n").expect_err("a space");
    assert_eq!(refusal.log_text(), "Invalid forwarded header: 'Forwarded: for=1.2.3.4; for=x'");
    read(&forwarded(1), true, "Forwarded: proto=gopher\r\n").expect_err("no scheme of ours");
    read(&forwarded(1), true, "Forwarded: host=\"\"\r\n").expect_err("no host");
    assert!(ProxyPolicy::new(&["x-real-ip".into()], 1, true).is_err());
}
