//! Errors of the library as exceptions, in the terms of the Python interface.

use apportion::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};

/// Parameters of the library that have another name in Python.
const RENAMED: [(&str, &str); 5] = [
    ("export", "format"),
    ("granularity", "multiple_of"),
    ("predecessors", "predecessors=True"),
    ("unit_memory", "memory"),
    ("vector", "x"),
];

/// The exception for an error: wrong input is a `ValueError`, work that failed a `RuntimeError`, a file an
/// `OSError` of the operating system's kind.
pub fn exception(error: Error) -> PyErr {
    let line = error_line(&error);
    match error {
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::File { path, source, .. } => match source.raw_os_error() {
            Some(number) => {
                let text = source.to_string();
                let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
                PyOSError::new_err((number, reason, path.display().to_string()))
            }
            None => PyOSError::new_err(line),
        },
        error if error.exit_code() == 2 => PyValueError::new_err(line),
        _ => PyRuntimeError::new_err(line),
    }
}

/// A `ValueError` in the form of the library's errors: what is wrong, where, and how to fix it.
pub fn refuse(place: &str, what: impl Into<String>, remedy: &str) -> Error {
    Error::input(place, what, remedy)
}

/// The error's line, with the names of this interface: `` `flow = ring` `` becomes `flow="ring"`.
fn error_line(error: &Error) -> String {
    let text = error.to_string();
    let mut pieces = text.split('`');
    let mut line = pieces.next().unwrap_or_default().to_owned();
    // Pieces alternate: quoted, not quoted. A last one without its closing quote stays as it is.
    while let Some(quoted) = pieces.next() {
        match pieces.next() {
            Some(rest) => {
                line += &parameter(quoted);
                line += rest;
            }
            None => {
                line.push('`');
                line += quoted;
            }
        }
    }
    line
}

/// The Python form of `name` or `name = value`.
fn parameter(quoted: &str) -> String {
    let (name, value) = quoted.split_once(" = ").map_or((quoted, None), |(name, value)| (name, Some(value)));
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return format!("`{quoted}`");
    }
    let name = RENAMED.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours);
    match value {
        None => name.to_owned(),
        Some(number) if number.parse::<f64>().is_ok() || number == "N" => format!("{name}={number}"),
        Some(text) => format!("{name}=\"{text}\""),
    }
}
