//! The order in which several targets take turns, so that each gets its share.

/// Places of `weights`, to be gone through again and again: as often as the weights say, evenly spread.
///
/// This is smooth weighted round robin: all gain their weight in each turn, the one that has most is chosen and pays
/// for all. Shares are exact for whole weights, and to a thousandth otherwise.
pub fn cycle(weights: &[f64]) -> Vec<u32> {
    let total: f64 = weights.iter().sum();
    let are_whole = weights.iter().all(|weight| weight.fract() == 0.0) && total <= LONGEST;
    let length = if weights.len() == 1 { 1.0 } else { total };
    let turns = if are_whole { length as usize } else { LONGEST as usize };
    let mut gained = vec![0.0; weights.len()];
    let turn = |_| {
        gained.iter_mut().zip(weights).for_each(|(gained, weight)| *gained += weight);
        let best =
            (0..weights.len()).max_by(|&one, &other| gained[one].total_cmp(&gained[other]).then(other.cmp(&one)));
        let best = best.unwrap_or_default();
        gained[best] -= total;
        best as u32
    };
    (0..turns.max(1)).map(turn).collect()
}

const LONGEST: f64 = 10_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_weights_are_kept_exactly_and_spread() {
        assert_eq!(cycle(&[1.0]), [0]);
        assert_eq!(cycle(&[7.0]), [0]);
        assert_eq!(cycle(&[1.0, 1.0]), [0, 1]);
        assert_eq!(cycle(&[5.0, 1.0, 1.0]), [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn other_weights_are_kept_to_a_thousandth() {
        let cycle = cycle(&[0.9, 0.1]);
        let share = cycle.iter().filter(|&&place| place == 0).count() as f64 / cycle.len() as f64;
        assert!((share - 0.9).abs() < 1e-3, "{share}");
    }
}
