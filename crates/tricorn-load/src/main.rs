//! The generator as a program, for the benchmarks of this repository.
//!
//! ```text
//!   tricorn-load --plan FILE                                       a plan in JSON; -: from stdin
//!   tricorn-load PORT --connections 64 --size 125 --seconds 3      an echo server, in a closed loop
//!   tricorn-load PORT --idle 10000                                 WebSockets that are only held
//! ```
//!
//! Results are a line of JSON each.
use std::io::Read;
use std::process::ExitCode;
use tricorn_load::websocket::{echo, idle, options};
use tricorn_load::{Plan, run};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.as_slice() {
        [flag, path] if flag == "--plan" => planned(path),
        _ => match options::parse(words.into_iter()) {
            Ok(options) if options.idle > 0 => idle::run(&options),
            Ok(options) => echo::run(&options),
            Err(reason) => {
                eprintln!("{reason}\n\n{}", options::USAGE);
                return ExitCode::from(2);
            }
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn planned(path: &str) -> Result<(), String> {
    let mut text = Vec::new();
    let read = match path {
        "-" => std::io::stdin().lock().read_to_end(&mut text).map(drop),
        path => std::fs::read(path).map(|bytes| text = bytes),
    };
    read.map_err(|error| format!("{path}: {error}"))?;
    println!("{}", run(&Plan::from_json(&text)?, &mut ())?.to_json());
    Ok(())
}
