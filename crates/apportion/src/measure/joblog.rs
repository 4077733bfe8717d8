//! The joblog: a table of the pieces of a run that have ended, from which an interrupted run continues.
//!
//! A line is written in one piece when its piece has ended, so that a run that is killed at any time leaves a
//! table of whole lines, but perhaps for the last one, which is then ignored.

use crate::error::{Error, Result};
use crate::input::read_text;
use crate::output::is_stream;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The first line.
const HEADER: &str = "piece\tfrom\tto\tprocessor\tstart\tseconds\texit\tsignal";

/// A piece that has ended: a line of a joblog.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndedPiece {
    /// Its number, from 0.
    pub piece: u64,
    /// Its units.
    pub units: Range<u64>,
    /// The processor that ran it.
    pub processor: String,
    /// When it began, in seconds since 1970.
    pub start: f64,
    /// Seconds from its start to its end.
    pub seconds: f64,
    /// The program's exit code; that of a program which a signal has ended is 128 plus the signal's number.
    pub exit: i32,
    /// The signal that has ended it, or 0.
    pub signal: i32,
}

impl EndedPiece {
    fn line(&self) -> String {
        let Self { piece, units: Range { start: from, end: to }, processor, start, seconds, exit, signal } =
            self;
        format!("{piece}\t{from}\t{to}\t{processor}\t{start:.3}\t{seconds:.6}\t{exit}\t{signal}\n")
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let mut next = || fields.next();
        let ended = Self {
            piece: next()?.parse().ok()?,
            units: next()?.parse().ok()?..next()?.parse().ok()?,
            processor: next()?.to_owned(),
            start: next()?.parse().ok()?,
            seconds: next()?.parse().ok()?,
            exit: next()?.parse().ok()?,
            signal: next()?.parse().ok()?,
        };
        (next().is_none() && ended.units.start < ended.units.end).then_some(ended)
    }

    /// Whether its units are done.
    pub(super) fn is_done(&self) -> bool {
        self.exit == 0 && self.signal == 0
    }
}

/// A joblog that is open for further lines.
#[derive(Debug)]
pub struct JobLog {
    path: PathBuf,
    file: File,
    done: Vec<Range<u64>>,
    next_piece: u64,
}

impl JobLog {
    /// Begins a joblog.
    ///
    /// # Errors
    /// The file holds something already (exit code 2), or cannot be written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = open(path)?;
        let length = file.metadata().map_err(|error| Error::file(path, "read", error))?.len();
        if length > 0 {
            let remedy = "continue it with `resume`, or remove it";
            return Err(Error::input(path.display().to_string(), "holds a joblog already", remedy));
        }
        Self { path: path.to_path_buf(), file, done: Vec::new(), next_piece: 0 }.with_header()
    }

    /// Continues the joblog of a run of this many units, or begins one if there is no such file.
    ///
    /// # Errors
    /// The file is no joblog, or one of more units (exit code 2), or cannot be read or written.
    pub fn resume(path: impl AsRef<Path>, units: u64) -> Result<Self> {
        let path = path.as_ref();
        if is_stream(path) {
            return Self::create(path);
        }
        let text = match read_text(path) {
            Ok(text) => text,
            Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        // What follows the last line break was torn off by the end of the process that wrote it.
        let whole = text.rfind('\n').map_or(0, |last| last + 1);
        let refuse = |line: usize, what: String| {
            let remedy = "name the joblog of this job, or remove `resume`";
            Err(Error::input(format!("{}:{line}", path.display()), what, remedy))
        };
        let mut lines = text[..whole].lines();
        if lines.next().unwrap_or(HEADER) != HEADER || (whole == 0 && !HEADER.starts_with(&text)) {
            return refuse(1, "is not the first line of a joblog".into());
        }
        let (mut done, mut next_piece) = (Vec::new(), 0);
        for (number, line) in lines.enumerate() {
            let Some(ended) = EndedPiece::parse(line) else {
                return refuse(number + 2, "is not the line of a piece".into());
            };
            if ended.units.end > units {
                let what = format!("has units up to {}, of a job of more than {units}", ended.units.end);
                return refuse(number + 2, what);
            }
            next_piece = next_piece.max(ended.piece.saturating_add(1));
            if ended.is_done() {
                done.push(ended.units);
            }
        }
        let file = open(path)?;
        file.set_len(whole as u64).map_err(|error| Error::file(path, "write", error))?;
        let log = Self { path: path.to_path_buf(), file, done: merged(done), next_piece };
        if whole == 0 { log.with_header() } else { Ok(log) }
    }

    fn with_header(mut self) -> Result<Self> {
        self.put(&format!("{HEADER}\n"))?;
        Ok(self)
    }

    fn put(&mut self, line: &str) -> Result<()> {
        let Self { path, file, .. } = self;
        file.write_all(line.as_bytes()).map_err(|error| Error::file(path, "write", error))
    }

    /// Appends a line.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn append(&mut self, ended: &EndedPiece) -> Result<()> {
        self.put(&ended.line())
    }

    /// The units that are done, in ascending order.
    pub(super) fn done(&self) -> &[Range<u64>] {
        &self.done
    }

    /// The number of the next piece.
    pub(super) fn next_piece(&self) -> u64 {
        self.next_piece
    }
}

fn open(path: &Path) -> Result<File> {
    if is_stream(path) {
        let remedy = "name a file, which a later run can continue";
        return Err(Error::input(path.display().to_string(), "is a stream", remedy));
    }
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| Error::file(path, "write", error))
}

/// The same units as ranges that neither meet nor overlap, in ascending order.
fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(piece: u64, units: Range<u64>, exit: i32) -> EndedPiece {
        let processor = "a b".to_owned();
        EndedPiece { piece, units, processor, start: 1.5, seconds: 0.25, exit, signal: 0 }
    }

    /// Wherever the file is cut, as by the end of the process that writes it, the whole lines count and the log
    /// goes on behind them.
    #[test]
    fn a_torn_log_is_continued() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = JobLog::create(&path).unwrap();
        assert_eq!(JobLog::create(&path).unwrap_err().exit_code(), 2, "not replaced");
        for (number, (units, exit)) in [(5..9, 0), (0..5, 3), (9..12, 0), (0..2, 0)].into_iter().enumerate() {
            log.append(&piece(number as u64, units, exit)).unwrap();
        }
        let whole = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        let (first, both) = (5..9, 5..12);
        assert_eq!(lines[1], "0\t5\t9\ta b\t1.500\t0.250000\t0\t0");
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let mut log = JobLog::resume(&path, 12).unwrap();
            let kept = whole[..length].matches('\n').count().saturating_sub(1);
            let all =
                [vec![], vec![first.clone()], vec![first.clone()], vec![both.clone()], vec![0..2, 5..12]];
            assert_eq!((log.done(), log.next_piece()), (&all[kept][..], kept as u64), "{length}");
            log.append(&piece(9, 2..5, 0)).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.lines().count(), kept + 2);
            assert!(text.starts_with(HEADER) && text.ends_with("9\t2\t5\ta b\t1.500\t0.250000\t0\t0\n"));
        }
    }

    #[test]
    fn other_files_and_jobs_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let refused = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let error = JobLog::resume(&path, 10).unwrap_err();
            assert_eq!((error.exit_code(), std::fs::read_to_string(&path).unwrap().as_str()), (2, text));
            error.to_string()
        };
        for text in ["#!/bin/sh", "Seq\tHost\n", "\n"] {
            assert!(refused(text).contains("log:1: is not the first line of a joblog"));
        }
        for line in ["0\t0\t5", "0\t5\t5\ta\t1\t1\t0\t0", "0\t0\t5\ta\t1\t1\t0\t0\t0", ""] {
            assert!(refused(&format!("{HEADER}\n{line}\n")).contains("log:2: is not the line of a piece"));
        }
        assert!(refused(&format!("{HEADER}\n{}", piece(0, 4..11, 1).line())).contains("up to 11, of a job"));
        assert_eq!(JobLog::resume(directory.path().join("new"), 10).unwrap().done(), []);
    }
}
