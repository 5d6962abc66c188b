//! Files that a worker may have written anything into: whatever they say, the text is lines of an exposition.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_fuzz::Choices;
use tricorn_figures::metrics::{Exposition, Merged, is_whole};

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
        let bytes = match choices.byte() % 4 {
            0 => choices.bytes().to_vec(),
            1 => file(&[choices.bytes()]),
            2 => file(&[choices.bytes(), choices.bytes(), choices.bytes()]),
            _ => damaged(&mut choices),
        };
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

/// A value under each key, in the form of the library.
fn file(keys: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    for key in keys {
        bytes.extend((key.len() as i32).to_ne_bytes());
        bytes.extend(*key);
        bytes.resize(bytes.len() + 8 - (key.len() + 4) % 8, b' ');
        bytes.extend(f64::from(key.len() as u8).to_ne_bytes());
        bytes.extend(1.5f64.to_ne_bytes());
    }
    let used = (bytes.len() as i32).to_ne_bytes();
    bytes[..4].copy_from_slice(&used);
    bytes
}

/// Two values, then four bytes that say something else (a length, a number, a key), and perhaps an end that is missing.
fn damaged(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = file(&[choices.bytes(), choices.bytes()]);
    let at = usize::from(choices.byte()) % (bytes.len() - 3);
    let word = [choices.byte(), choices.byte(), choices.byte(), choices.byte()];
    bytes[at..at + 4].copy_from_slice(&word);
    bytes.truncate(bytes.len() - usize::from(choices.byte()) % 32 % bytes.len());
    bytes
}
