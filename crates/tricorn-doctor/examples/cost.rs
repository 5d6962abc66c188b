//! What a look costs: `cargo run --release -p tricorn-doctor --example cost -- PID`. Without a PID: itself, which is no Python.
use std::time::{Duration, Instant};
use tricorn_doctor::Doctor;

fn main() {
    let pid = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or_else(std::process::id);
    let begin = Instant::now();
    let mut doctor = match Doctor::open(pid) {
        Ok(doctor) => doctor,
        Err(trouble) => return eprintln!("{trouble}"),
    };
    println!("open, with the interpreter's symbols: {:?}", begin.elapsed());
    for what in ["first look, with symbols and unwind tables", "second look", "third look"] {
        let begin = Instant::now();
        match doctor.look(Duration::ZERO) {
            Ok(look) => println!("{what}, {} threads: {:?}", look.threads.len(), begin.elapsed()),
            Err(trouble) => return eprintln!("{trouble}"),
        }
    }
    let threads = doctor.python_threads();
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        for thread in &threads {
            doctor.frames_of(thread);
        }
    }
    let walks = ROUNDS * u32::try_from(threads.len()).unwrap_or(1).max(1);
    println!("frames of one thread of {}: {:?}", threads.len(), begin.elapsed() / walks);
}

const ROUNDS: u32 = 1000;
