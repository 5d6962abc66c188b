//! The buckets of the histograms of time: eleven a decade, from a microsecond to a thousand seconds.
//!
//! 1 1.25 1.5 1.75 2 2.5 3 4 5 6 7.5 times a power of ten. Every bucket boundary that OpenTelemetry advises for
//! `http.server.request.duration` is an edge, so that what is exported for it is a count and no estimate. A value that is an
//! edge belongs to the bucket below it, as with the `le` of Prometheus ("less than or equal").

/// Buckets per histogram: those between two edges, what is shorter than the first, what is longer than the last.
pub const BUCKETS: usize = FINITE + 1;

/// How many edges there are.
const FINITE: usize = DECADE.len() * 9 + 1;

/// The edges of a decade, in nanoseconds, for the first one.
const DECADE: [u64; 11] = [1_000, 1_250, 1_500, 1_750, 2_000, 2_500, 3_000, 4_000, 5_000, 6_000, 7_500];

/// Edges between a power of two and the next, at most: five of them span a factor of two or more.
const COMPARED: usize = 4;

/// The upper edges of the buckets in nanoseconds. Behind them stands what no value reaches.
static EDGES: [u64; FINITE + COMPARED] = edges();

/// By the length of a value in bits: how many edges are not above every value of that length.
static START: [u8; 65] = starts();

const fn edges() -> [u64; FINITE + COMPARED] {
    let mut edges = [u64::MAX; FINITE + COMPARED];
    let (mut index, mut scale) = (0, 1);
    while index < FINITE {
        edges[index] = DECADE[index % DECADE.len()] * scale;
        index += 1;
        if index.is_multiple_of(DECADE.len()) {
            scale *= 10;
        }
    }
    edges
}

const fn starts() -> [u8; 65] {
    let edges = edges();
    let mut starts = [0; 65];
    let mut bits = 1;
    while bits < starts.len() {
        let mut below = 0;
        while below < FINITE && edges[below] <= 1 << (bits - 1) {
            below += 1;
        }
        starts[bits] = below as u8;
        bits += 1;
    }
    starts
}

/// The index of the bucket of a time.
#[inline]
pub fn bucket(nanos: u64) -> usize {
    let value = nanos.saturating_sub(1); // an edge is in the bucket below it
    let start = usize::from(START[64 - value.leading_zeros() as usize]);
    let above = EDGES[start..start + COMPARED].iter().map(|edge| usize::from(value >= *edge));
    start + above.sum::<usize>()
}

/// The lower edge of a bucket in nanoseconds. The last bucket has no upper edge; its length is taken to be that of all others.
pub fn bucket_floor(index: usize) -> u64 {
    match index {
        0 => 0,
        BUCKETS.. => 2 * EDGES[FINITE - 1],
        index => EDGES[index - 1],
    }
}

/// The boundaries that are exported: those of OpenTelemetry's `http.server.request.duration`, and three below them. In
/// nanoseconds, with the text that stands for them.
pub const EXPORTED: [(u64, &str); 17] = [
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (75_000_000, "0.075"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (750_000_000, "0.75"),
    (1_000_000_000, "1.0"),
    (2_500_000_000, "2.5"),
    (5_000_000_000, "5.0"),
    (7_500_000_000, "7.5"),
    (10_000_000_000, "10.0"),
];

/// Buckets of a histogram that has the exported boundaries alone.
pub const COARSE: usize = EXPORTED.len() + 1;

/// By bucket: how many exported boundaries are below all that is in it.
static COARSER: [u8; BUCKETS] = coarser();

const fn coarser() -> [u8; BUCKETS] {
    let edges = edges();
    let mut coarser = [0; BUCKETS];
    let mut index = 1;
    while index < BUCKETS {
        let mut below = 0;
        while below < EXPORTED.len() && EXPORTED[below].0 <= edges[index - 1] {
            below += 1;
        }
        coarser[index] = below as u8;
        index += 1;
    }
    coarser
}

/// The exported bucket to which a bucket belongs.
#[inline]
pub fn coarse(bucket: usize) -> usize {
    usize::from(COARSER[bucket])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `bucket` must find, looked for one edge after another.
    fn searched(nanos: u64) -> usize {
        EDGES[..FINITE].iter().filter(|edge| nanos > **edge).count()
    }

    #[test]
    fn a_bucket_is_found_for_every_length_of_a_value() {
        for bits in 0..64 {
            for step in 0..1024 {
                let nanos = (1u64 << bits).saturating_add((1u64 << bits) / 1024 * step);
                assert_eq!(bucket(nanos), searched(nanos), "{nanos} ns");
            }
        }
        assert_eq!((bucket(0), bucket(1), bucket(u64::MAX)), (0, 0, BUCKETS - 1));
    }

    #[test]
    fn an_edge_is_in_the_bucket_below_it_and_the_next_nanosecond_is_not() {
        for (index, edge) in EDGES[..FINITE].iter().enumerate() {
            assert_eq!((bucket(*edge), bucket(edge + 1)), (index, index + 1), "{edge} ns");
            assert_eq!(bucket_floor(index + 1), *edge);
        }
        assert_eq!((EDGES[0], EDGES[FINITE - 1], BUCKETS), (1_000, 1_000_000_000_000, 101));
        assert!(bucket_floor(BUCKETS) > bucket_floor(BUCKETS - 1), "the last bucket has a width");
    }

    #[test]
    fn neighbouring_edges_are_a_third_apart_at_most() {
        for pair in EDGES[..FINITE].windows(2) {
            assert!(pair[0] < pair[1] && pair[1] * 3 <= pair[0] * 4, "{pair:?}");
        }
    }

    #[test]
    fn every_boundary_of_opentelemetry_is_an_edge() {
        // https://opentelemetry.io/docs/specs/semconv/http/http-metrics/: http.server.request.duration
        let advised = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
        let exported: Vec<f64> = EXPORTED.iter().map(|(_, text)| text.parse().expect("a number")).collect();
        assert_eq!(exported[3..], advised);
        for (index, (nanos, text)) in EXPORTED.iter().enumerate() {
            assert_eq!(*nanos as f64 / 1e9, exported[index], "{text}");
            assert!(EDGES.contains(nanos), "{text}");
            assert_eq!((coarse(bucket(*nanos)), coarse(bucket(nanos + 1))), (index, index + 1), "{text}");
        }
        assert_eq!((coarse(0), coarse(BUCKETS - 1)), (0, COARSE - 1));
    }
}
