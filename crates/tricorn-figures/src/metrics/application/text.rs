//! What the application counts, as text.
use super::merge::{Family, Histogram, Labels, Merged, Summary, Values};
use crate::metrics::exposition::Exposition;
use std::fmt::{self, Write};

impl Merged {
    /// All families that have a value; without an end.
    pub fn render(&self, exposition: Exposition) -> String {
        let mut out = String::new();
        for (name, family) in self.families.iter().filter(|(_, family)| !family.values.is_empty()) {
            // A `String` takes everything.
            let _ = render(name, family, exposition, &mut out);
        }
        out
    }
}

fn render(name: &str, family: &Family, exposition: Exposition, out: &mut String) -> fmt::Result {
    let (kind, suffix) = match &family.values {
        // In text 0.0.4 the suffix belongs to the name.
        Values::Counter(_) if exposition == Exposition::Text => ("counter", "_total"),
        Values::Counter(_) => ("counter", ""),
        Values::Gauge(..) => ("gauge", ""),
        Values::Histogram(_) => ("histogram", ""),
        Values::Summary(_) => ("summary", ""),
    };
    let help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
    let help = if exposition == Exposition::Text { help } else { help.replace('"', "\\\"") };
    writeln!(out, "# HELP {name}{suffix} {help}")?;
    writeln!(out, "# TYPE {name}{suffix} {kind}")?;
    let mut put = |suffix: &str, labels: &Labels, edge: Option<f64>, value: f64| {
        write!(out, "{name}{suffix}")?;
        let mut before = '{';
        for (label, text) in labels {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(out, "{before}{label}=\"{text}\"")?;
            before = ',';
        }
        if let Some(edge) = edge {
            write!(out, "{before}le=\"{}\"", Float(edge))?;
            before = ',';
        }
        writeln!(out, "{} {}", if before == ',' { "}" } else { "" }, Float(value))
    };
    match &family.values {
        Values::Counter(values) => values.iter().try_for_each(|(labels, value)| put("_total", labels, None, *value)),
        Values::Gauge(_, values) => values.iter().try_for_each(|(labels, (value, _))| put("", labels, None, *value)),
        Values::Summary(values) => values.iter().try_for_each(|(labels, Summary { count, sum })| {
            count.iter().try_for_each(|count| put("_count", labels, None, *count))?;
            sum.iter().try_for_each(|sum| put("_sum", labels, None, *sum))
        }),
        Values::Histogram(values) => values.iter().try_for_each(|(labels, Histogram { buckets, sum })| {
            sum.iter().try_for_each(|sum| put("_sum", labels, None, *sum))?;
            let mut below = 0.0;
            for (edge, count) in buckets {
                below += count;
                put("_bucket", labels, Some(edge.0), below)?;
            }
            if buckets.is_empty() { Ok(()) } else { put("_count", labels, None, below) }
        }),
    }
}

/// A number as prometheus_client writes it, so that the label `le` is the same from both: Python's shortest form, and an
/// exponent from a million on.
struct Float(f64);

impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0;
        if number.is_nan() {
            return f.write_str("NaN");
        }
        if number.is_infinite() {
            return f.write_str(if number > 0.0 { "+Inf" } else { "-Inf" });
        }
        let text = format!("{number:?}");
        if let Some((mantissa, exponent)) = text.split_once('e') {
            let (sign, digits) = match exponent.strip_prefix('-') {
                Some(digits) => ('-', digits),
                None => ('+', exponent),
            };
            return write!(f, "{}e{sign}{digits:0>2}", mantissa.trim_end_matches(".0"));
        }
        match text.find('.') {
            Some(dot) if number > 0.0 && dot > 6 => {
                let mantissa = format!("{}.{}{}", &text[..1], &text[1..dot], &text[dot + 1..]);
                write!(f, "{}e+{:02}", mantissa.trim_end_matches(['0', '.']), dot - 1)
            }
            _ => f.write_str(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_library_writes_them() {
        for (number, text) in [
            (0.0, "0.0"),
            (0.005, "0.005"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (123456.0, "123456.0"),
            (1e6, "1e+06"),
            (1234567.5, "1.2345675e+06"),
            (2.5e12, "2.5e+12"),
            (-1234567.5, "-1234567.5"),
            (1e16, "1e+16"),
            (2.5e300, "2.5e+300"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(Float(number).to_string(), text);
        }
    }
}
