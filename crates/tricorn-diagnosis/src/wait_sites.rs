//! Where libraries wait for room in a pool: pairs of functions, as the table in Python has them (`workers/pools.py`).
use tricorn_doctor::{PyFrame, application};

/// A frame of a pool that is full, and what it has called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitSite {
    /// The pool's name in the table.
    pub pool: String,
    pub outer: Place,
    /// The next frame further in, where there is one: queues of gevent's are in C. `None`: whichever it is.
    pub inner: Option<Place>,
}

/// A function of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The end of its path: `sqlalchemy/pool/impl.py`.
    pub file: String,
    pub function: String,
}

/// One that waits for room in a pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolWait {
    pub pool: String,
    /// What the pool says of its size; may be empty.
    pub size: String,
    /// The frame of the library.
    pub site: PyFrame,
    /// The innermost frame of the application.
    pub line: Option<PyFrame>,
}

impl Place {
    fn is(&self, frame: &PyFrame) -> bool {
        let plain = frame.function.rsplit('.').next().unwrap_or_default();
        let before = frame.file.strip_suffix(self.file.as_str());
        plain == self.function && before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    }
}

/// Whether these frames, the innermost first, wait for room in a pool.
pub fn waits_in(sites: &[WaitSite], frames: &[PyFrame]) -> Option<PoolWait> {
    frames.iter().enumerate().find_map(|(index, frame)| {
        let inner = index.checked_sub(1).and_then(|inner| frames.get(inner));
        let is_there = |site: &&WaitSite| {
            site.outer.is(frame) && site.inner.as_ref().zip(inner).is_none_or(|(place, inner)| place.is(inner))
        };
        let site = sites.iter().find(is_there)?;
        let line = application(&frames[index..]).cloned();
        Some(PoolWait { pool: site.pool.clone(), size: String::new(), site: frame.clone(), line })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(file: &str, function: &str) -> PyFrame {
        PyFrame { file: file.into(), function: function.into(), line: 3 }
    }

    fn place(file: &str, function: &str) -> Place {
        Place { file: file.into(), function: function.into() }
    }

    fn sites() -> Vec<WaitSite> {
        let (outer, inner) = (place("alchemy/pool/impl.py", "_do_get"), place("alchemy/util/queue.py", "get"));
        let limiter = place("anyio/_asyncio.py", "acquire");
        vec![
            WaitSite { pool: "alchemy".into(), outer, inner: Some(inner) },
            WaitSite { pool: "anyio".into(), outer: limiter, inner: None },
        ]
    }

    #[test]
    fn a_wait_is_known_by_two_functions_one_in_the_other() {
        let waits = [
            frame("/lib/python3.12/threading.py", "Condition.wait"),
            frame("/lib/python3.12/site-packages/alchemy/util/queue.py", "Queue.get"),
            frame("/lib/python3.12/site-packages/alchemy/pool/impl.py", "QueuePool._do_get"),
            frame("/lib/python3.12/site-packages/alchemy/base.py", "connect"),
            frame("/srv/app.py", "show"),
        ];
        let found = waits_in(&sites(), &waits).expect("a pool");
        assert_eq!((found.pool.as_str(), found.site.function.as_str()), ("alchemy", "QueuePool._do_get"));
        assert_eq!(found.line, Some(frame("/srv/app.py", "show")));
        let connects =
            [frame("/lib/python3.12/site-packages/alchemy/engine.py", "connect"), waits[2].clone(), waits[4].clone()];
        assert_eq!(waits_in(&sites(), &connects), None, "it makes a connection");
        assert_eq!(waits_in(&sites(), &[frame("/my_alchemy/pool/impl.py", "_do_get")]), None);
        assert!(waits_in(&sites(), &waits[2..]).is_some(), "what it has called is in C");
    }

    #[test]
    fn one_function_may_be_enough_and_a_file_of_a_similar_name_is_none() {
        let found = waits_in(&sites(), &[frame("/s/anyio/_asyncio.py", "acquire")]).expect("a pool");
        assert_eq!((found.pool.as_str(), found.line), ("anyio", Some(frame("/s/anyio/_asyncio.py", "acquire"))));
        assert_eq!(waits_in(&sites(), &[frame("/s/xanyio/_asyncio.py", "acquire")]), None);
    }
}
