//! Describes system calls: their names, descriptors, peers and timeouts, read from their arguments.
use crate::descriptors::Descriptors;
use crate::memory::Memory;
use crate::procfs::Entered;
use serde::Serialize;

/// A system call in words.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    pub name: String,
    pub descriptors: Vec<Descriptor>,
    /// Further details, as `for 30.0 s`; may be empty.
    pub detail: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Descriptor {
    pub fd: i32,
    /// Kind of the descriptor, as `TCP to 10.0.0.5:5432`, a path or `pipe`.
    pub what: String,
}

pub fn describe(call: &Entered, memory: &Memory, descriptors: &mut Descriptors) -> Described {
    let name = name(call.number);
    let [first, second, third, ..] = call.arguments;
    let mut detail = String::new();
    let mut list: Vec<i32> = Vec::new();
    match name {
        "poll" | "ppoll" => {
            list = polled(memory, first, second);
            detail = match (name, third as i32) {
                ("poll", limit) if limit < 0 => "without a limit".to_owned(),
                ("poll", limit) => format!("for {}", seconds(f64::from(limit) / 1e3)),
                _ if third == 0 => "without a limit".to_owned(),
                _ => time(memory, third, 1e9),
            };
        }
        "select" | "pselect6" => {
            list = selected(memory, first, &call.arguments[1..4]);
            let limit = call.arguments[4];
            detail = if limit == 0 {
                "without a limit".to_owned()
            } else {
                time(memory, limit, if name == "select" { 1e6 } else { 1e9 })
            };
        }
        "nanosleep" => detail = time(memory, first, 1e9),
        // The second argument says whether the time is one of the clock, which is told, too.
        "clock_nanosleep" if second == 0 => detail = time(memory, third, 1e9),
        "clock_nanosleep" => detail = until(memory, first, third),
        "connect" => {
            list.push(first as i32);
            detail = address(memory, second, third).map(|to| format!("to {to}")).unwrap_or_default();
        }
        "flock" | "fcntl" => {
            list.push(first as i32);
            let waits = name == "flock" || matches!(second as i32, libc::F_SETLKW | libc::F_OFD_SETLKW);
            detail = if waits { "for a lock of the file".to_owned() } else { String::new() };
        }
        "openat" => detail = format!("of {}", path(memory, second)),
        "open" => detail = format!("of {}", path(memory, first)),
        "wait4" | "waitid" => detail = child(name, first, second),
        _ if takes_descriptor(name) => list.push(first as i32),
        _ => {}
    }
    let descriptors = list.into_iter().map(|fd| Descriptor { fd, what: descriptors.describe(fd) }).collect();
    Described { name: name_or_number(call.number), descriptors, detail }
}

fn name_or_number(number: i64) -> String {
    match name(number) {
        "" => format!("system call {number}"),
        name => name.to_owned(),
    }
}

/// `struct pollfd`: an int and two shorts. Negative descriptors are none.
fn polled(memory: &Memory, address: u64, count: u64) -> Vec<i32> {
    let bytes = memory.up_to(address, 8 * usize::try_from(count).unwrap_or(0).min(MOST_DESCRIPTORS));
    let fds = bytes.chunks_exact(8).map(|entry| i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]));
    fds.filter(|&fd| fd >= 0).collect()
}

fn selected(memory: &Memory, count: u64, sets: &[u64]) -> Vec<i32> {
    let count = usize::try_from(count).unwrap_or(0).min(MOST_SELECTED);
    let mut list: Vec<i32> = Vec::new();
    for &set in sets.iter().filter(|&&set| set != 0) {
        let bytes = memory.up_to(set, count.div_ceil(64) * 8);
        let is_set = |fd: &usize| bytes.get(fd / 8).is_some_and(|byte| byte >> (fd % 8) & 1 == 1);
        list.extend((0..count).filter(is_set).filter_map(|fd| i32::try_from(fd).ok()));
    }
    list.sort_unstable();
    list.dedup();
    list.truncate(MOST_DESCRIPTORS);
    list
}

/// Whole seconds, and parts of one: a timespec has 1e9, a timeval 1e6.
fn duration(memory: &Memory, address: u64, parts: f64) -> Option<f64> {
    let bytes = memory.bytes::<16>(address)?;
    let (whole, part) = bytes.split_at(8);
    let word = |bytes: &[u8]| bytes.try_into().map(i64::from_ne_bytes).ok();
    Some(word(whole)? as f64 + word(part)? as f64 / parts)
}

fn time(memory: &Memory, address: u64, parts: f64) -> String {
    duration(memory, address, parts).map(|time| format!("for {}", seconds(time))).unwrap_or_default()
}

/// How much is left of a sleep until a time of a clock.
fn until(memory: &Memory, clock: u64, address: u64) -> String {
    let Some(end) = duration(memory, address, 1e9) else { return String::new() };
    let clock = match clock {
        0 => rustix::time::ClockId::Realtime,
        1 => rustix::time::ClockId::Monotonic,
        _ => return String::new(),
    };
    let now = rustix::time::clock_gettime(clock);
    let left = end - (now.tv_sec as f64 + now.tv_nsec as f64 / 1e9);
    format!("for another {}", seconds(left.max(0.0)))
}

fn seconds(time: f64) -> String {
    if time < 0.001 {
        format!("{:.0} µs", time * 1e6)
    } else if time < 1.0 {
        format!("{:.0} ms", time * 1e3)
    } else {
        format!("{time:.1} s")
    }
}

fn path(memory: &Memory, address: u64) -> String {
    let bytes = memory.up_to(address, MOST_PATH);
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn child(name: &str, first: u64, second: u64) -> String {
    let pid = if name == "wait4" { first as i32 } else { second as i32 };
    let any = if name == "wait4" { pid <= 0 } else { first != 1 };
    if any { "for any child".to_owned() } else { format!("for child {pid}") }
}

/// A sockaddr of the Internet, or of a unix socket.
fn address(memory: &Memory, address: u64, length: u64) -> Option<String> {
    let bytes = memory.up_to(address, usize::try_from(length).ok()?.min(128));
    crate::descriptors::socket_address(&bytes)
}

fn takes_descriptor(name: &str) -> bool {
    !matches!(
        name,
        "" | "open"
            | "futex"
            | "pause"
            | "rt_sigtimedwait"
            | "rt_sigsuspend"
            | "restart_syscall"
            | "sched_yield"
            | "openat"
            | "madvise"
            | "mmap"
            | "munmap"
            | "msync"
            | "sync"
            | "execve"
            | "exit"
            | "exit_group"
            | "brk"
            | "mprotect"
            | "clone"
            | "clone3"
            | "kill"
            | "tgkill"
            | "unlinkat"
            | "renameat2"
            | "msgrcv"
            | "semtimedop"
            | "io_getevents"
            | "process_vm_readv"
            | "getrandom"
    )
}

macro_rules! names {
    ($($name:ident $constant:ident)*) => {
        pub fn name(number: i64) -> &'static str {
            $(if number == libc::$constant { return stringify!($name); })*
            only_here(number)
        }
    };
}

// Those that may take time; all others are told by their number.
names! {
    read SYS_read  write SYS_write  readv SYS_readv  writev SYS_writev  pread64 SYS_pread64  pwrite64 SYS_pwrite64
    preadv SYS_preadv  pwritev SYS_pwritev  sendfile SYS_sendfile  splice SYS_splice  copy_file_range SYS_copy_file_range
    recvfrom SYS_recvfrom  recvmsg SYS_recvmsg  recvmmsg SYS_recvmmsg  sendto SYS_sendto  sendmsg SYS_sendmsg
    sendmmsg SYS_sendmmsg  accept SYS_accept  accept4 SYS_accept4  connect SYS_connect  shutdown SYS_shutdown
    ppoll SYS_ppoll  pselect6 SYS_pselect6  epoll_pwait SYS_epoll_pwait  epoll_pwait2 SYS_epoll_pwait2
    futex SYS_futex  nanosleep SYS_nanosleep  clock_nanosleep SYS_clock_nanosleep  restart_syscall SYS_restart_syscall
    flock SYS_flock  fcntl SYS_fcntl  fsync SYS_fsync  fdatasync SYS_fdatasync  sync SYS_sync  msync SYS_msync
    syncfs SYS_syncfs  sync_file_range SYS_sync_file_range  ftruncate SYS_ftruncate  fallocate SYS_fallocate  ioctl SYS_ioctl  openat SYS_openat  close SYS_close
    getdents64 SYS_getdents64  unlinkat SYS_unlinkat  renameat2 SYS_renameat2  wait4 SYS_wait4  waitid SYS_waitid
    rt_sigtimedwait SYS_rt_sigtimedwait  rt_sigsuspend SYS_rt_sigsuspend  sched_yield SYS_sched_yield  msgrcv SYS_msgrcv
    semtimedop SYS_semtimedop  io_getevents SYS_io_getevents  io_uring_enter SYS_io_uring_enter  getrandom SYS_getrandom
    madvise SYS_madvise  mmap SYS_mmap  munmap SYS_munmap  mprotect SYS_mprotect  brk SYS_brk  clone SYS_clone
    clone3 SYS_clone3  execve SYS_execve  exit SYS_exit  exit_group SYS_exit_group  kill SYS_kill  tgkill SYS_tgkill
    process_vm_readv SYS_process_vm_readv
}

/// Calls of before, which newer processors do not have.
#[cfg(target_arch = "x86_64")]
fn only_here(number: i64) -> &'static str {
    match number {
        libc::SYS_poll => "poll",
        libc::SYS_select => "select",
        libc::SYS_epoll_wait => "epoll_wait",
        libc::SYS_pause => "pause",
        libc::SYS_open => "open",
        libc::SYS_fork => "fork",
        libc::SYS_vfork => "vfork",
        _ => "",
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn only_here(_: i64) -> &'static str {
    ""
}

const MOST_PATH: usize = 256;
const MOST_DESCRIPTORS: usize = 64;
const MOST_SELECTED: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> (Memory, Descriptors) {
        let byte = 0_u8;
        let pid = std::process::id();
        (Memory::open(pid, &raw const byte as u64).expect("our own memory"), Descriptors::new(pid))
    }

    #[test]
    fn a_poll_names_its_descriptors_and_its_limit() {
        let (memory, mut descriptors) = here();
        let array = [[5_i32, 1], [-1, 1], [7, 1]];
        let arguments = [array.as_ptr() as u64, 3, u64::from(u32::MAX), 0, 0, 0];
        let number = libc::SYS_ppoll;
        let told = describe(&Entered { number, arguments, stack: 0, program: 0 }, &memory, &mut descriptors);
        assert_eq!(told.name, "ppoll");
        assert_eq!(told.descriptors.iter().map(|each| each.fd).collect::<Vec<_>>(), [5, 7]);
    }

    #[test]
    fn a_select_tells_the_bits_of_its_sets() {
        let (memory, _) = here();
        let set = [0b1000_u64, 1 << 6];
        let list = selected(&memory, 128, &[set.as_ptr() as u64, 0, set.as_ptr() as u64]);
        assert_eq!(list, [3, 70]);
        assert!(selected(&memory, 1024, &[16]).is_empty(), "a set that is not mapped");
    }

    #[test]
    fn an_array_that_is_not_mapped_is_empty() {
        let (memory, _) = here();
        assert!(polled(&memory, 8, u64::MAX).is_empty());
    }
}
