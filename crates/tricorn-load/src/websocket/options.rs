//! The command line.
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;
use tricorn_proto::websocket::Kind;

pub const USAGE: &str = "\
tricorn-load PORT [options]

  --connections N   that echo, each with one message on its way (64)
  --size BYTES      of a message (125)
  --seconds S       how long (3)
  --binary          instead of text
  --deflate         permessage-deflate, which the server has to agree to
  --path PATH       (/)
  --idle N          open N, say so, and hold them until stdin ends. For each line that comes there, a message is
                    echoed on every one of them. --deflate is then offered, and need not be agreed to";

#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub address: SocketAddr,
    pub path: String,
    pub connections: usize,
    pub size: usize,
    pub duration: Duration,
    pub kind: Kind,
    pub deflate: bool,
    /// 0: none, echo.
    pub idle: usize,
}

pub fn parse(words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut port: Option<u16> = None;
    let mut options = Options {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        path: "/".into(),
        connections: 64,
        size: 125,
        duration: Duration::from_secs(3),
        kind: Kind::Text,
        deflate: false,
        idle: 0,
    };
    let mut words = words;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--connections" => options.connections = value(&word, words.next())?,
            "--size" => options.size = value(&word, words.next())?,
            "--seconds" => {
                let seconds = value(&word, words.next())?;
                options.duration = Duration::try_from_secs_f64(seconds).map_err(|error| format!("{word}: {error}"))?;
            }
            "--path" => options.path = value(&word, words.next())?,
            "--idle" => options.idle = value(&word, words.next())?,
            "--binary" => options.kind = Kind::Binary,
            "--text" => options.kind = Kind::Text,
            "--deflate" => options.deflate = true,
            _ if port.is_none() && !word.starts_with("--") => port = Some(value("PORT", Some(word))?),
            _ => return Err(format!("no such option: {word}")),
        }
    }
    options.address.set_port(port.ok_or("which port?")?);
    Ok(options)
}

fn value<T: FromStr>(name: &str, word: Option<String>) -> Result<T, String> {
    let word = word.ok_or_else(|| format!("{name} needs a value"))?;
    word.parse().map_err(|_| format!("{name}: not a value for it: {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn a_port_and_what_differs_from_the_defaults() {
        let options = parsed("8000 --size 65536 --deflate --seconds 0.5 --binary").unwrap();
        assert_eq!(options.address.port(), 8000);
        assert_eq!((options.connections, options.size, options.idle), (64, 65536, 0));
        assert_eq!((options.kind, options.deflate), (Kind::Binary, true));
        assert_eq!(options.duration, Duration::from_millis(500));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(parsed("").unwrap_err(), "which port?");
        assert_eq!(parsed("8000 --size").unwrap_err(), "--size needs a value");
        assert_eq!(parsed("8000 --size many").unwrap_err(), "--size: not a value for it: many");
        assert_eq!(parsed("8000 9000").unwrap_err(), "no such option: 9000");
    }
}
