//! The values of all files of a directory, by metric: what prometheus_client's `MultiProcessCollector` makes of them.
//!
//! | Type | Of all processes |
//! |---|---|
//! | counter, summary | the sum |
//! | histogram | the sums by bucket, cumulated |
//! | gauge | as its mode says: each process's, or the least, the greatest, the sum, the most recent |

use super::values::{Entries, Entry};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry::{Occupied, Vacant};

/// By name.
pub type Labels = BTreeMap<String, String>;

/// What the application counts.
#[derive(Debug, Default)]
pub struct Merged {
    pub families: BTreeMap<String, Family>,
    /// Files that were read to their end, and that were not.
    pub merged: u64,
    pub broken: u64,
    /// Values that belong to no metric that could be told: a name, a label or a type is none.
    pub left_out: u64,
}

#[derive(Debug)]
pub struct Family {
    pub help: String,
    pub values: Values,
}

/// The values of a metric, by labels.
#[derive(Debug)]
pub enum Values {
    Counter(BTreeMap<Labels, f64>),
    /// Value and timestamp.
    Gauge(Mode, BTreeMap<Labels, (f64, f64)>),
    Histogram(BTreeMap<Labels, Histogram>),
    Summary(BTreeMap<Labels, Summary>),
}

#[derive(Debug, Default)]
pub struct Histogram {
    /// By upper edge, each for itself.
    pub buckets: BTreeMap<Edge, f64>,
    pub sum: Option<f64>,
}

#[derive(Debug, Default)]
pub struct Summary {
    pub count: Option<f64>,
    pub sum: Option<f64>,
}

/// The upper edge of a bucket; no NaN.
#[derive(Debug, Clone, Copy)]
pub struct Edge(pub f64);

impl Ord for Edge {
    fn cmp(&self, other: &Edge) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Edge {
    fn partial_cmp(&self, other: &Edge) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Edge {
    fn eq(&self, other: &Edge) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Edge {}

/// What is told of a gauge. Those with `live` in their names are the same: files of processes that are gone are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    All,
    Least,
    Greatest,
    Sum,
    MostRecent,
}

/// What the name of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin<'n> {
    Counter,
    Histogram,
    Summary,
    /// And the process.
    Gauge(Mode, &'n str),
}

impl Merged {
    /// Adds the file of this name. A name that is none of the library's counts for nothing.
    pub fn add(&mut self, name: &str, bytes: &[u8]) {
        let Some(origin) = origin(name) else { return };
        let mut entries = Entries::of(bytes);
        for entry in entries.by_ref() {
            if self.take(origin, &entry).is_none() {
                self.left_out += 1;
            }
        }
        if entries.is_broken() { self.broken += 1 } else { self.merged += 1 }
    }

    /// `None`: the value is of no metric.
    fn take(&mut self, origin: Origin<'_>, entry: &Entry<'_>) -> Option<()> {
        let (metric, name, mut labels, help): (String, String, Labels, String) =
            serde_json::from_str(entry.key).ok()?;
        let suffix = name.strip_prefix(metric.as_str())?;
        if !is_name(&metric) || metric.starts_with(OURS) || !labels.keys().all(|label| is_label(label)) {
            return None;
        }
        // Only the first metric of a name is told: a later one of another type is left out.
        let family = self.families.entry(metric).or_insert_with(|| Family { help, values: Values::of(origin) });
        match (&mut family.values, origin, suffix) {
            (Values::Counter(values), Origin::Counter, "_total") => {
                *values.entry(labels).or_default() += entry.value;
            }
            (Values::Gauge(mode, values), Origin::Gauge(of, process), "") if *mode == of => {
                match of {
                    Mode::All => labels.insert(PROCESS.into(), process.into()),
                    _ => labels.remove(PROCESS),
                };
                of.take(values, labels, entry);
            }
            (Values::Histogram(values), Origin::Histogram, "_bucket") => {
                let edge: f64 = go_float(&labels.remove("le")?)?;
                let bucket = values.entry(labels).or_default().buckets.entry(Edge(edge + 0.0)).or_default();
                *bucket += entry.value;
            }
            (Values::Histogram(values), Origin::Histogram, "_sum") if !labels.contains_key("le") => {
                *values.entry(labels).or_default().sum.get_or_insert(0.0) += entry.value;
            }
            (Values::Summary(values), Origin::Summary, "_sum") => {
                *values.entry(labels).or_default().sum.get_or_insert(0.0) += entry.value;
            }
            (Values::Summary(values), Origin::Summary, "_count") => {
                *values.entry(labels).or_default().count.get_or_insert(0.0) += entry.value;
            }
            _ => return None,
        }
        Some(())
    }
}

impl Values {
    fn of(origin: Origin<'_>) -> Values {
        match origin {
            Origin::Counter => Values::Counter(BTreeMap::new()),
            Origin::Histogram => Values::Histogram(BTreeMap::new()),
            Origin::Summary => Values::Summary(BTreeMap::new()),
            Origin::Gauge(mode, _) => Values::Gauge(mode, BTreeMap::new()),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Values::Counter(values) => values.is_empty(),
            Values::Gauge(_, values) => values.is_empty(),
            Values::Histogram(values) => values.is_empty(),
            Values::Summary(values) => values.is_empty(),
        }
    }
}

impl Mode {
    fn take(self, values: &mut BTreeMap<Labels, (f64, f64)>, labels: Labels, entry: &Entry<'_>) {
        let Entry { value, timestamp, .. } = *entry;
        match values.entry(labels) {
            // As long as no process has set it, there is no most recent value.
            Vacant(_) if self == Mode::MostRecent && (timestamp.is_nan() || timestamp <= 0.0) => {}
            Vacant(place) => {
                place.insert((value, timestamp));
            }
            Occupied(mut place) => {
                let (known, at) = place.get_mut();
                let replaces = match self {
                    Mode::All => true,
                    Mode::Least => value < *known,
                    Mode::Greatest => value > *known,
                    Mode::MostRecent => timestamp > *at,
                    Mode::Sum => {
                        *known += value;
                        false
                    }
                };
                if replaces {
                    (*known, *at) = (value, timestamp);
                }
            }
        }
    }
}

/// `counter_7.db`, `gauge_livesum_7.db`: the type, of a gauge the mode, and the process.
fn origin(name: &str) -> Option<Origin<'_>> {
    let (kind, rest) = name.strip_suffix(".db")?.split_once('_')?;
    Some(match kind {
        "counter" => Origin::Counter,
        "histogram" => Origin::Histogram,
        "summary" => Origin::Summary,
        "gauge" => {
            let (mode, process) = rest.split_once('_')?;
            let mode = match mode.strip_prefix("live").unwrap_or(mode) {
                "all" => Mode::All,
                "min" => Mode::Least,
                "max" => Mode::Greatest,
                "sum" => Mode::Sum,
                "mostrecent" => Mode::MostRecent,
                _ => return None,
            };
            Origin::Gauge(mode, process)
        }
        _ => return None,
    })
}

/// As Python's `float` reads what the library writes: `+Inf`, `0.5`, `1e-05`.
fn go_float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| !number.is_nan())
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_' || first == ':')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':')
}

fn is_label(name: &str) -> bool {
    is_name(name) && !name.contains(':') && !name.starts_with("__")
}

/// The label that says which process a gauge is of.
const PROCESS: &str = "pid";
/// Names that begin so are the server's.
const OURS: &str = "tricorn_";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::application::values::tests::file;
    use crate::metrics::exposition::Exposition;

    /// Key, value, timestamp.
    type Written = (String, f64, f64);

    fn key(metric: &str, suffix: &str, labels: &[(&str, &str)]) -> String {
        let labels: Labels = labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        serde_json::to_string(&(metric, format!("{metric}{suffix}"), labels, "Of a test.")).expect("JSON")
    }

    fn merged(files: &[(&str, &[Written])]) -> Merged {
        let mut merged = Merged::default();
        for (name, values) in files {
            let values: Vec<_> = values.iter().map(|(key, value, time)| (key.as_str(), *value, *time)).collect();
            merged.add(name, &file(&values));
        }
        merged
    }

    fn text(merged: &Merged) -> Vec<String> {
        let text = merged.render(Exposition::Text);
        text.lines().filter(|line| !line.starts_with('#')).map(String::from).collect()
    }

    #[test]
    fn counters_of_all_processes_are_added() {
        let by = |kind: &str| key("orders", "_total", &[("kind", kind)]);
        let merged = merged(&[
            ("counter_1.db", &[(by("a"), 1.0, 0.0), (by("b"), 2.0, 0.0)]),
            ("counter_2.db", &[(by("a"), 10.0, 0.0)]),
        ]);
        assert_eq!(text(&merged), ["orders_total{kind=\"a\"} 11.0", "orders_total{kind=\"b\"} 2.0"]);
        assert_eq!((merged.merged, merged.broken, merged.left_out), (2, 0, 0));
    }

    #[test]
    fn a_gauge_is_told_as_its_mode_says() {
        let told = |mode: &str| {
            let names = [format!("gauge_{mode}_1.db"), format!("gauge_{mode}_2.db")];
            let values = [[(key("g", "", &[]), 3.0, 2.0)], [(key("g", "", &[]), 4.0, 1.0)]];
            text(&merged(&[(&names[0], &values[0]), (&names[1], &values[1])]))
        };
        assert_eq!(told("all"), ["g{pid=\"1\"} 3.0", "g{pid=\"2\"} 4.0"]);
        assert_eq!(told("liveall"), told("all"));
        for (mode, value) in [("min", "3.0"), ("livemax", "4.0"), ("sum", "7.0"), ("mostrecent", "3.0")] {
            assert_eq!(told(mode), [format!("g {value}")]);
        }
        assert_eq!(told("average"), [""; 0]);
    }

    #[test]
    fn buckets_are_cumulated() {
        let bucket = |edge: &str| key("t", "_bucket", &[("le", edge)]);
        let first = [(bucket("+Inf"), 1.0, 0.0), (bucket("0.5"), 2.0, 0.0), (bucket("10.0"), 3.0, 0.0)];
        let second = [(bucket("0.5"), 1.0, 0.0), (key("t", "_sum", &[]), 2.5, 0.0)];
        assert_eq!(
            text(&merged(&[("histogram_1.db", &first), ("histogram_2.db", &second)])),
            [
                "t_sum 2.5",
                "t_bucket{le=\"0.5\"} 3.0",
                "t_bucket{le=\"10.0\"} 6.0",
                "t_bucket{le=\"+Inf\"} 7.0",
                "t_count 7.0"
            ]
        );
    }

    #[test]
    fn what_is_no_metric_is_left_out_and_counted() {
        let values = |key: String| vec![(key, 1.0, 0.0)];
        for wrong in [
            "no JSON".into(),
            "[\"a\", \"a_total\", {}]".into(),
            key("tricorn_requests", "_total", &[]),
            key("a b", "_total", &[]),
            key("a", "_total", &[("x\"} 1\n", "y")]),
            key("a", "_total} 1\n", &[]),
            key("a", "_bucket", &[("le", "1.0")]),
        ] {
            let merged = merged(&[("counter_1.db", &values(wrong.clone()))]);
            assert_eq!((text(&merged).len(), merged.left_out), (0, 1), "{wrong}");
        }
        let two = [(key("a", "_total", &[]), 1.0, 0.0)];
        let merged = merged(&[("counter_1.db", &two), ("gauge_sum_1.db", &[(key("a", "", &[]), 5.0, 0.0)])]);
        assert_eq!((text(&merged), merged.left_out), (vec!["a_total 1.0".to_string()], 1));
    }

    #[test]
    fn what_the_application_names_is_escaped() {
        let key = serde_json::to_string(&("a", "a_total", Labels::from([("l".into(), "\"\\\n".into())]), "h\\\"\n"));
        let merged = merged(&[("counter_1.db", &[(key.expect("JSON"), 1.0, 0.0)])]);
        assert_eq!(
            merged.render(Exposition::Text),
            "# HELP a_total h\\\\\"\\n\n# TYPE a_total counter\na_total{l=\"\\\"\\\\\\n\"} 1.0\n"
        );
        assert_eq!(
            merged.render(Exposition::OpenMetrics),
            "# HELP a h\\\\\\\"\\n\n# TYPE a counter\na_total{l=\"\\\"\\\\\\n\"} 1.0\n"
        );
    }

    /// Bytes from a seed: files with single bytes changed, and files of nothing else.
    #[test]
    fn no_file_makes_it_fail() {
        let bucket = key("t", "_bucket", &[("le", "0.5")]);
        let whole = file(&[(&bucket, 1.0, 0.0), (&key("t", "_sum", &[]), 2.5, 0.0), (&bucket, 3.0, 0.0)]);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for round in 0..if cfg!(miri) { 20 } else { 20_000 } {
            let mut bytes = if round % 4 == 0 { vec![0; random() as usize % 300] } else { whole[..300].to_vec() };
            for _ in 0..if round % 4 == 0 { bytes.len() } else { 1 + random() as usize % 4 } {
                let at = random() as usize % bytes.len().max(1);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random() as u8;
                }
            }
            let mut merged = Merged::default();
            for name in ["histogram_1.db", "gauge_all_1.db", "counter_1.db", "summary_1.db"] {
                merged.add(name, &bytes);
            }
            assert_eq!(merged.merged + merged.broken, 4);
            for exposition in [Exposition::Text, Exposition::OpenMetrics] {
                let text = merged.render(exposition);
                assert!(text.is_empty() || text.ends_with('\n'));
                assert!(text.lines().all(|line| line.starts_with("# ") || line.contains(' ')));
            }
        }
    }
}
