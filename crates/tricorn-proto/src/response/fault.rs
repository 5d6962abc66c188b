//! What the application did wrong with its response, in words.
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    Status(String),
    FieldName(String),
    FieldValue(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Status(text) => write!(f, "Invalid status from the application: {text}"),
            Fault::FieldName(text) => {
                write!(f, "Invalid response header name from the application: {text}")
            }
            Fault::FieldValue(text) => {
                write!(f, "Invalid response header from the application: {text}")
            }
        }
    }
}

impl std::error::Error for Fault {}

#[cold]
pub(super) fn bad_status(line: &[u8]) -> Fault {
    Fault::Status(format!("{}; expected three digits and a phrase", shown(line)))
}

#[cold]
pub(super) fn bad_name(name: &[u8]) -> Fault {
    Fault::FieldName(format!("{}; expected a token (RFC 9110 section 5.6.2)", shown(name)))
}

#[cold]
pub(super) fn bad_value(name: &[u8], value: &[u8], expected: &str) -> Fault {
    Fault::FieldValue(format!("{} is {}; {expected}", shown(name), shown(value)))
}

fn shown(bytes: &[u8]) -> String {
    format!("'{}'", bytes.escape_ascii())
}
