//! Files that a worker may have written anything into: whatever they say, the text is lines of an exposition.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_fuzz::Choices;
use tricorn_io::metrics::{Exposition, Merged, is_whole};

const NAMES: [&str; 6] = [
    "counter_1.db",
    "gauge_all_1.db",
    "gauge_livemax_1.db",
    "gauge_mostrecent_1.db",
    "histogram_1.db",
    "summary_1.db",
];

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    let mut merged = Merged::default();
    let mut files = 0;
    let mut broken = 0;
    while !choices.0.is_empty() {
        let name = NAMES[usize::from(choices.byte()) % NAMES.len()];
        let raw = choices.flag();
        let bytes = choices.bytes();
        let bytes = if raw { bytes.to_vec() } else { file(bytes) };
        files += 1;
        broken += u64::from(!is_whole(&bytes));
        merged.add(name, &bytes);
    }
    assert_eq!((merged.merged + merged.broken, merged.broken), (files, broken));
    for exposition in [Exposition::Text, Exposition::OpenMetrics] {
        let text = merged.render(exposition);
        assert!(text.is_empty() || text.ends_with('\n'));
        let mut described = std::collections::BTreeSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let name = rest.split(' ').next().expect("a name").to_string();
                assert!(!name.starts_with("tricorn_") && described.insert(name), "{line}");
            } else if !line.starts_with("# HELP ") {
                let (sample, value) = line.rsplit_once(' ').expect("a value");
                assert!(value.parse::<f64>().is_ok() || value == "NaN", "{line}");
                assert!(sample.starts_with(|first: char| first.is_ascii_alphabetic() || "_:".contains(first)), "{line}");
            }
        }
    }
});

/// One value under this key, in the form of the library.
fn file(key: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    bytes.extend((key.len() as i32).to_ne_bytes());
    bytes.extend(key);
    bytes.resize(bytes.len() + 8 - (key.len() + 4) % 8, b' ');
    bytes.extend(f64::from(key.len() as u8).to_ne_bytes());
    bytes.extend(1.5f64.to_ne_bytes());
    let used = (bytes.len() as i32).to_ne_bytes();
    bytes[..4].copy_from_slice(&used);
    bytes
}
