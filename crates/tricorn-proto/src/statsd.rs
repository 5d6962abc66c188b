//! Metrics of a request as statsd's lines, byte for byte gunicorn's (`gunicorn.instrument.statsd.Statsd.access`).
//!
//! ```text
//!   PREFIXgunicorn.request.duration:0.518|ms|#TAGS
//!   PREFIXgunicorn.requests:1|c|@1.0|#TAGS
//!   PREFIXgunicorn.request.status.200:1|c|@1.0|#TAGS
//! ```

/// What the lines of all requests have in common, made once.
#[derive(Debug, Clone)]
pub struct Metrics {
    duration: Vec<u8>,
    milliseconds: Vec<u8>,
    requests: Vec<u8>,
    status: Vec<u8>,
    one: Vec<u8>,
    /// `gunicorn.queue.duration`, which gunicorn does not have (`statsd_extended`).
    queue: Option<Vec<u8>>,
}

impl Metrics {
    /// The prefix with its point, as gunicorn makes it of `statsd_prefix`; tags without `|#`, empty: none.
    pub fn new(prefix: &str, tags: &str, extended: bool) -> Metrics {
        let tail = if tags.is_empty() { String::new() } else { format!("|#{tags}") };
        let named = |name: &str| format!("{prefix}gunicorn.{name}").into_bytes();
        Metrics {
            duration: named("request.duration:"),
            milliseconds: format!("|ms{tail}\n").into_bytes(),
            requests: named(&format!("requests:1|c|@1.0{tail}\n")),
            status: named("request.status."),
            one: format!(":1|c|@1.0{tail}\n").into_bytes(),
            queue: extended.then(|| named("queue.duration:")),
        }
    }

    /// Appends the lines of a request. `queued`: microseconds until the application was called, if it was.
    pub fn render(&self, micros: u64, status: u16, queued: Option<u64>, out: &mut Vec<u8>) {
        self.timer(&self.duration, micros, out);
        out.extend_from_slice(&self.requests);
        out.extend_from_slice(&self.status);
        push_integer(u64::from(status), out);
        out.extend_from_slice(&self.one);
        if let (Some(queue), Some(micros)) = (&self.queue, queued) {
            self.timer(queue, micros, out);
        }
    }

    fn timer(&self, name: &[u8], micros: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(name);
        push_milliseconds(micros, out);
        out.extend_from_slice(&self.milliseconds);
    }
}

/// `timedelta.seconds * 1000 + float(timedelta.microseconds) / 10 ** 3` as Python prints it. Days are not counted there.
fn push_milliseconds(micros: u64, out: &mut Vec<u8>) {
    let (seconds, rest) = (micros / 1_000_000 % DAY, micros % 1_000_000);
    if seconds > 0 {
        // The sum is rounded a second time: 1.001001 s may have more than three decimals, there and here.
        let sum = (seconds * 1000) as f64 + rest as f64 / 1000.0;
        out.extend_from_slice(format!("{sum:?}").as_bytes()); // a request of more than a second may allocate
        return;
    }
    push_integer(rest / 1000, out);
    out.push(b'.');
    let digits = [rest / 100 % 10, rest / 10 % 10, rest % 10].map(|digit| b'0' + digit as u8);
    let kept = digits.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
    out.extend_from_slice(&digits[..kept]);
}

const DAY: u64 = 86_400;

fn push_integer(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut left = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(metrics: &Metrics, micros: u64, status: u16) -> String {
        let mut out = Vec::new();
        metrics.render(micros, status, Some(250), &mut out);
        String::from_utf8(out).expect("text")
    }

    fn milliseconds(micros: u64) -> String {
        let mut out = Vec::new();
        push_milliseconds(micros, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_lines_and_their_order_are_gunicorns() {
        assert_eq!(
            lines(&Metrics::new("", "", false), 518, 200),
            "gunicorn.request.duration:0.518|ms\ngunicorn.requests:1|c|@1.0\ngunicorn.request.status.200:1|c|@1.0\n"
        );
    }

    #[test]
    fn prefix_and_tags_are_on_each_line_and_the_extended_one_is_the_last() {
        assert_eq!(
            lines(&Metrics::new("shop.", "env:prod,x:1", true), 1_500, 404),
            "shop.gunicorn.request.duration:1.5|ms|#env:prod,x:1\nshop.gunicorn.requests:1|c|@1.0|#env:prod,x:1\n\
             shop.gunicorn.request.status.404:1|c|@1.0|#env:prod,x:1\nshop.gunicorn.queue.duration:0.25|ms|#env:prod,x:1\n"
        );
    }

    #[test]
    fn milliseconds_are_as_python_prints_the_float() {
        // >>> seconds * 1000 + float(microseconds) / 10 ** 3
        let rows = [
            (0, "0.0"),
            (1, "0.001"),
            (10, "0.01"),
            (100, "0.1"),
            (1_000, "1.0"),
            (1_010, "1.01"),
            (999_999, "999.999"),
            (1_000_000, "1000.0"),
            (1_000_001, "1000.001"),
            (61_234_567, "61234.567"),
            (86_399_999_999, "86399999.999"),
            (86_400_000_000, "0.0"),
        ];
        for (micros, text) in rows {
            assert_eq!(milliseconds(micros), text, "{micros}");
        }
    }
}
