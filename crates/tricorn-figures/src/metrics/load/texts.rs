//! The report as balancers and scalers read it.
use super::figures::{Figures, Report};

/// What a balancer should know besides figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    Ready,
    /// The server leaves: requests should be sent elsewhere.
    Draining,
    Overloaded,
}

impl Balance {
    pub fn of(report: &Report, is_leaving: bool) -> Balance {
        match (is_leaving, report.overloaded) {
            (true, _) => Balance::Draining,
            (false, true) => Balance::Overloaded,
            (false, false) => Balance::Ready,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Balance::Ready => "ready",
            Balance::Draining => "draining",
            Balance::Overloaded => "overloaded",
        }
    }
}

/// What HAProxy's `agent-check` sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The weight, and how many requests can be here at once.
    Agent,
    /// The weight alone: HAProxy would wait for a slow client while it holds one of those places.
    Weight,
}

impl Asked {
    /// `None`: these bytes are something else.
    pub fn of(bytes: &[u8]) -> Option<Asked> {
        match bytes {
            b"agent\n" | b"agent\r\n" => Some(Asked::Agent),
            b"weight\n" | b"weight\r\n" => Some(Asked::Weight),
            _ => None,
        }
    }
}

/// A line for HAProxy's `agent-check`.
///
/// A server that leaves is said by a weight of nothing: `drain` would have to be taken back by `ready`, which also undoes
/// what an operator has told HAProxy (`set server … state maint`).
pub fn agent(asked: Asked, report: &Report, balance: Balance) -> String {
    match (balance, asked, report.concurrency) {
        (Balance::Draining, ..) => "up 0%\n".to_string(),
        // `maxconn:0` would be no limit.
        (_, Asked::Weight, _) | (_, _, 0) => format!("up {}%\n", report.weight),
        (_, Asked::Agent, most) => format!("up {}% maxconn:{most}\n", report.weight),
    }
}

pub fn json(report: &Report, balance: Balance) -> String {
    let Report { capacity, concurrency, running, waiting, weight, figures, .. } = report;
    let Figures { window, utilisation, rps, speed, demand, .. } = figures;
    format!(
        "{{\"version\":1,\"state\":\"{}\",\"weight\":{weight},\"capacity\":{capacity},\"concurrency\":{concurrency},\
         \"running\":{running},\"waiting\":{waiting},\"utilisation\":{utilisation:.4},\"demand\":{demand:.4},\
         \"rps\":{rps:.3},\"speed\":{speed:.3},\"window\":{window:.3}}}\n",
        balance.name()
    )
}

/// The value of `endpoint-load-metrics` in the text form of an OrcaLoadReport; `None`: there is nothing to tell.
///
/// Envoy makes a weight of it only if both are more than nothing.
pub fn orca(report: &Report) -> Option<String> {
    let Figures { utilisation, rps, .. } = report.figures;
    let is_told = utilisation >= 0.0001 && rps >= 0.01;
    is_told.then(|| format!("TEXT application_utilization={utilisation:.4},rps_fractional={rps:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let figures =
            Figures { window: 3.0, utilisation: 0.54321, rps: 146.5, speed: 269.7, demand: 1.25, calls: 439.0 };
        Report {
            capacity: 16,
            concurrency: 16,
            running: 9,
            waiting: 2,
            figures,
            weight: 73,
            overloaded: false,
            arrived: 1,
            busy: 1,
        }
    }

    #[test]
    fn the_agents_line_is_one_of_haproxys_words() {
        let report = report();
        let all = |report, balance| agent(Asked::Agent, report, balance);
        assert_eq!(all(&report, Balance::Ready), "up 73% maxconn:16\n");
        assert_eq!(all(&report, Balance::Overloaded), "up 73% maxconn:16\n");
        assert_eq!(all(&report, Balance::Draining), "up 0%\n");
        assert_eq!(all(&Report { concurrency: 0, ..report }, Balance::Ready), "up 73%\n");
        assert_eq!(agent(Asked::Weight, &report, Balance::Overloaded), "up 73%\n");
        assert_eq!(agent(Asked::Weight, &report, Balance::Draining), "up 0%\n");
    }

    #[test]
    fn what_is_asked_is_a_word_and_the_end_of_its_line() {
        assert_eq!(Asked::of(b"agent\r\n"), Some(Asked::Agent));
        assert_eq!(Asked::of(b"weight\n"), Some(Asked::Weight));
        for bytes in [&b"weight"[..], b"weight \n", b"Weight\n", b"agent weight\n", b"weight\nweight\n", b"\n"] {
            assert_eq!(Asked::of(bytes), None);
        }
    }

    #[test]
    fn json_is_json() {
        let value: serde_json::Value = serde_json::from_str(&json(&report(), Balance::Ready)).expect("JSON");
        assert_eq!((&value["state"], &value["weight"], &value["waiting"]), (&"ready".into(), &73.into(), &2.into()));
        assert_eq!((value["utilisation"].as_f64(), value["demand"].as_f64()), (Some(0.5432), Some(1.25)));
        let state = |balance| json(&report(), balance).contains(&format!("\"state\":\"{}\"", balance.name()));
        assert!(state(Balance::Draining) && state(Balance::Overloaded));
    }

    #[test]
    fn envoy_is_told_what_it_takes() {
        let mut report = report();
        let text = "TEXT application_utilization=0.5432,rps_fractional=146.50";
        assert_eq!(orca(&report).as_deref(), Some(text));
        report.figures.rps = 0.001;
        assert_eq!(orca(&report), None);
        report.figures = Figures { utilisation: 0.00001, ..Figures { rps: 5.0, ..report.figures } };
        assert_eq!(orca(&report), None);
    }

    #[test]
    fn who_leaves_is_nothing_else() {
        let overloaded = Report { overloaded: true, ..report() };
        assert_eq!(Balance::of(&overloaded, true), Balance::Draining);
        assert_eq!(Balance::of(&overloaded, false), Balance::Overloaded);
        assert_eq!(Balance::of(&report(), false), Balance::Ready);
    }
}
