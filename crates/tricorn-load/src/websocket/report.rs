//! What was seen, as a line of JSON.
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Default)]
pub struct Report {
    /// Nanoseconds from a message to the end of its echo.
    pub latencies: Vec<u64>,
    pub elapsed: Duration,
    /// What went wrong, and how often.
    pub errors: BTreeMap<String, usize>,
    pub deflate: Option<String>,
    /// CPU time of this process.
    pub cpu: Duration,
}

impl Report {
    pub fn note(&mut self, error: String) {
        *self.errors.entry(error).or_default() += 1;
    }

    pub fn into_json(mut self) -> String {
        self.latencies.sort_unstable();
        let micros = |share: f64| self.percentile(share) as f64 / 1e3;
        let errors: Vec<String> =
            self.errors.iter().map(|(what, count)| format!("{}: {count}", quoted(what))).collect();
        let seconds = self.elapsed.as_secs_f64();
        format!(
            "{{\"messages\": {}, \"seconds\": {seconds:.6}, \"per_second\": {:.1}, \"p50_us\": {:.1}, \"p90_us\": {:.1}, \
             \"p99_us\": {:.1}, \"max_us\": {:.1}, \"errors\": {{{}}}, \"deflate\": {}, \"cpu_seconds\": {:.6}}}",
            self.latencies.len(),
            if seconds > 0.0 { self.latencies.len() as f64 / seconds } else { 0.0 },
            micros(0.5),
            micros(0.9),
            micros(0.99),
            micros(1.0),
            errors.join(", "),
            self.deflate.as_deref().map_or("null".into(), quoted),
            self.cpu.as_secs_f64(),
        )
    }

    /// The smallest latency that so great a share of all is not above.
    fn percentile(&self, share: f64) -> u64 {
        let rank = (share * self.latencies.len() as f64).ceil() as usize;
        self.latencies.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}

pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => out.push_str(&format!("\\u{:04x}", letter as u32)),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// CPU time that this process has used so far.
pub fn cpu() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_latencies_that_occurred() {
        let report = Report { latencies: (1..=100).collect(), ..Report::default() };
        let seen: Vec<u64> = [0.5, 0.9, 0.99, 1.0].map(|share| report.percentile(share)).into();
        assert_eq!(seen, [50, 90, 99, 100]);
        assert_eq!(Report::default().percentile(0.5), 0);
    }

    #[test]
    fn text_in_json() {
        assert_eq!(quoted("a \"b\"\\\n"), "\"a \\\"b\\\"\\\\\\u000a\"");
    }
}
