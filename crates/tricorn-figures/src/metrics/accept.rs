//! Which of the two formats a client wants (RFC 9110 section 12.5.1).

use super::exposition::Exposition;

/// OpenMetrics if the client asks for it by name, and does not like plain text better. `fields`: the values of Accept.
pub fn negotiated<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Exposition {
    let (mut open, mut plain) = (0, 0);
    for range in fields.flat_map(|field| field.split(|byte| *byte == b',')) {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let media = parts.next().unwrap_or_default();
        let weight = parts.find_map(weight).unwrap_or(1000);
        if media.eq_ignore_ascii_case(b"application/openmetrics-text") {
            open = open.max(weight);
        } else if media.eq_ignore_ascii_case(b"text/plain") {
            plain = plain.max(weight);
        }
    }
    if open > 0 && open >= plain { Exposition::OpenMetrics } else { Exposition::Text }
}

/// `q=0.123` as 123; what is no weight is `None`, and a weight that is none says nothing.
fn weight(parameter: &[u8]) -> Option<u32> {
    let value = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q="))?;
    let value: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    (0.0..=1.0).contains(&value).then_some((value * 1000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(accept: &[&str]) -> Exposition {
        negotiated(accept.iter().map(|field| field.as_bytes()))
    }

    #[test]
    fn openmetrics_is_what_a_client_asks_for_by_name() {
        use Exposition::{OpenMetrics, Text};
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;\
            q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert_eq!(chosen(&[prometheus]), OpenMetrics);
        assert_eq!(chosen(&["text/plain", "Application/OpenMetrics-Text"]), OpenMetrics);
        for plain in ["", "*/*", "text/plain;version=0.0.4", "application/openmetrics-text;q=0"] {
            assert_eq!(chosen(&[plain]), Text, "{plain}");
        }
        assert_eq!(chosen(&[]), Text);
        assert_eq!(chosen(&["application/openmetrics-text; q=0.3, text/plain; q=0.8"]), Text);
        assert_eq!(chosen(&["application/openmetrics-text;q=x, \u{ff};q=7"]), OpenMetrics);
    }
}
