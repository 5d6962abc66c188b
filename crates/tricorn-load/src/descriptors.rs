//! Room for connections: each needs a descriptor.
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of this process where it is too low, the hard one too if that is permitted.
///
/// # Errors
/// A sentence: what the limit is, and what it has to be.
pub fn make_room(connections: usize) -> Result<(), String> {
    let needed = connections as u64 + SPARE;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let maximum = limit.maximum.map(|maximum| maximum.max(needed));
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).map_err(|_| {
        let most = limit.maximum.unwrap_or_default();
        format!(
            "{connections} connections need {needed} open files, and this process may have {most} at most: raise the limit \
             (ulimit -Hn {needed}), or ask for fewer connections"
        )
    })
}

/// Standard streams, listeners, logs, what Python has open.
const SPARE: u64 = 64;
