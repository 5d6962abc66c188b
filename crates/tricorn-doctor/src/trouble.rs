//! Errors of a look, and the sentences that explain what is missing and how to get it.
use std::fmt;
use std::io;

/// Error of a look at a process.
#[derive(Debug)]
pub enum Trouble {
    /// No such process.
    Gone(u32),
    /// Permission denied: a sentence with the step, the reason and the remedy.
    Forbidden(String),
    /// The process has no CPython interpreter.
    NotPython(u32),
}

impl Trouble {
    pub(crate) fn of_file(pid: u32, path: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Gone(pid),
            _ if error.raw_os_error() == Some(libc::ESRCH) => Self::Gone(pid),
            _ => Self::Forbidden(format!("Cannot read {path} ({error}): {}", advice(pid))),
        }
    }

    pub(crate) fn memory(pid: u32, by_call: &io::Error, by_file: &io::Error) -> Self {
        if by_call.raw_os_error() == Some(libc::ESRCH) && by_file.kind() == io::ErrorKind::NotFound {
            return Self::Forbidden(format!("Cannot read the memory of process {pid}: no such process"));
        }
        Self::Forbidden(format!(
            "Cannot read the memory of process {pid} (process_vm_readv: {by_call}; /proc/{pid}/mem: {by_file}): {}",
            advice(pid)
        ))
    }
}

/// Explains why system calls, and all that depends on them, are missing.
pub(crate) fn without_calls(pid: u32) -> String {
    let why = if pid == std::process::id() {
        "this process is not dumpable (prctl(2), PR_SET_DUMPABLE), because it has changed its user or was made so"
            .to_owned()
    } else {
        advice(pid)
    };
    format!(
        "System calls, their peers and native stacks are missing, because /proc/PID/task/TID/syscall cannot be read: {why}"
    )
}

fn advice(pid: u32) -> String {
    // SAFETY: it has no arguments and cannot fail.
    let us = unsafe { libc::geteuid() };
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    remedy(owner_of(pid), us, scope.trim())
}

/// Explains the most likely obstacle, and how to remove it.
fn remedy(owner: Option<u32>, us: u32, scope: &str) -> String {
    if let Some(owner) = owner.filter(|&owner| owner != us && us != 0) {
        return format!(
            "the process belongs to user {owner}, this command runs as user {us}. Run it as that user or as root."
        );
    }
    match scope {
        "1" if us != 0 => "/proc/sys/kernel/yama/ptrace_scope is 1, so only parents may inspect their children. \
                Run the command as root, give it CAP_SYS_PTRACE, or set ptrace_scope to 0."
            .to_owned(),
        "2" if us != 0 => {
            "/proc/sys/kernel/yama/ptrace_scope is 2. Run the command as root, or give it CAP_SYS_PTRACE.".to_owned()
        }
        "3" => {
            "/proc/sys/kernel/yama/ptrace_scope is 3, which denies access to everyone until the next boot.".to_owned()
        }
        _ => "run the command as the same user or as root. In a container it needs CAP_SYS_PTRACE \
              (docker run --cap-add=SYS_PTRACE) and a seccomp profile that allows process_vm_readv. \
              A process that has changed its user is not dumpable: only root may inspect it."
            .to_owned(),
    }
}

fn owner_of(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(pid) => write!(f, "No such process: {pid}."),
            Self::Forbidden(why) => f.write_str(why.trim()),
            Self::NotPython(pid) => {
                write!(f, "Process {pid} is not a Python process: it has no CPython interpreter.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_remedy() {
        let rows = [
            (Some(1000), 1001, "1", "belongs to user 1000, this command runs as user 1001"),
            (Some(1000), 1000, "1", "ptrace_scope is 1"),
            (Some(1000), 1000, "2", "CAP_SYS_PTRACE"),
            (Some(0), 0, "3", "until the next boot"),
            (Some(0), 0, "1", "--cap-add=SYS_PTRACE"),
            (Some(1000), 1000, "", "not dumpable"),
            (None, 1000, "0", "as the same user"),
        ];
        for (owner, us, scope, words) in rows {
            let told = remedy(owner, us, scope);
            assert!(told.contains(words), "{owner:?} {us} {scope}: {told}");
        }
    }
}
