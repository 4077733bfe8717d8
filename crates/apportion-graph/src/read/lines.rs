//! The lines of a text file, plain or packed by gzip, and the numbers in them.

use apportion::error::{Error, Result};
use apportion::files::{contents, open_regular};
use apportion::input::quoted;
use apportion::process_memory::{available_memory, require_memory};
use flate2::read::MultiGzDecoder;
use std::io::{BufRead, BufReader, Read, Seek};
use std::ops::{Range, RangeInclusive};
use std::path::Path;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 20;

/// The longest line that is read, in bytes: it may hold the list of a vertex with 30 million neighbours.
const LONGEST_LINE: u64 = 1 << 28;

/// A packed byte holds at most so many bytes of text (deflate, RFC 1951).
const MOST_PACKED: u64 = 1032;

/// The lines of a file one by one, with a place in the current line.
pub(crate) struct Lines<'a> {
    path: &'a Path,
    reader: BufReader<Box<dyn Read>>,
    packed: bool,
    /// Most bytes of text that the file can hold.
    most: u64,
    /// Lines that begin with one of these are skipped.
    pub(crate) comments: &'static [u8],
    number: u64,
    line: Vec<u8>,
    at: usize,
}

impl<'a> Lines<'a> {
    /// Opens a file, whose first bytes say whether it is packed.
    pub(crate) fn open(path: &'a Path, comments: &'static [u8]) -> Result<Self> {
        let failed = |e| Error::file(path, "read", e);
        let mut file = match contents(path, available_memory().unwrap_or(u64::MAX))? {
            Some(file) => file,
            None => open_regular(path)?,
        };
        let length = file.metadata().map_err(failed)?.len();
        let mut first = Vec::new();
        file.by_ref().take(2).read_to_end(&mut first).map_err(failed)?;
        file.rewind().map_err(failed)?;
        let packed = first == *b"\x1f\x8b";
        let (source, most): (Box<dyn Read>, u64) = match packed {
            true => (Box::new(MultiGzDecoder::new(file)), length.saturating_mul(MOST_PACKED)),
            false => (Box::new(file), length),
        };
        let reader = BufReader::with_capacity(BUFFER, source);
        Ok(Self { path, reader, packed, most, comments, number: 0, line: Vec::new(), at: 0 })
    }

    /// Reads the next line that is no comment; false at the end.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        loop {
            self.line.clear();
            self.at = 0;
            let read = self.reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut self.line);
            let read = read.map_err(|e| match self.packed {
                true => {
                    let what = format!("cannot be unpacked beyond line {}: {e}", self.number);
                    Error::input(self.path.display().to_string(), what, "copy the file again")
                }
                false => Error::file(self.path, "read", e),
            })?;
            if read == 0 {
                return Ok(false);
            }
            self.number += 1;
            if read as u64 == LONGEST_LINE {
                return Err(self.refuse("is too long a line", "check that this is the intended file"));
            }
            let first = self.line.iter().find(|byte| !byte.is_ascii_whitespace());
            if !first.is_some_and(|byte| self.comments.contains(byte)) {
                return Ok(true);
            }
        }
    }

    /// Reads the next line that is neither a comment nor blank; false at the end.
    pub(crate) fn advance_to_data(&mut self) -> Result<bool> {
        while self.advance()? {
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The current line.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.line).into_owned()
    }

    /// The file and the number of the current line.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.path.display(), self.number.max(1))
    }

    /// An error at the current line.
    pub(crate) fn refuse(&self, what: impl Into<String>, remedy: &str) -> Error {
        Error::input(self.place(), what, remedy)
    }

    /// Where the next word of the line is; empty at the end of the line.
    fn word(&mut self) -> Range<usize> {
        let rest = &self.line[self.at..];
        let blanks = rest.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(rest.len());
        let length = rest[blanks..].iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len() - blanks);
        let from = self.at + blanks;
        self.at = from + length;
        from..self.at
    }

    fn quoted(&self, word: Range<usize>) -> String {
        quoted(&String::from_utf8_lossy(&self.line[word]))
    }

    /// The next number of the line, if there is one.
    pub(crate) fn number(&mut self, range: RangeInclusive<u32>) -> Result<Option<u32>> {
        let word = self.word();
        if word.is_empty() {
            return Ok(None);
        }
        let end = u64::from(*range.end());
        let mut value = 0;
        for byte in &self.line[word.clone()] {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 || value > end {
                value = u64::MAX;
                break;
            }
            value = 10 * value + u64::from(digit);
        }
        if value <= end && value >= u64::from(*range.start()) {
            return Ok(Some(value as u32));
        }
        let what = format!("{} is not a whole number from {} to {end}", self.quoted(word), range.start());
        let remedy = if value == 0 { "count from 1, as the format does" } else { "fix the entry" };
        Err(self.refuse(what, remedy))
    }

    /// The next number of the line, which is `what`.
    pub(crate) fn need(&mut self, range: RangeInclusive<u32>, what: &str) -> Result<u32> {
        self.number(range)?.ok_or_else(|| self.refuse(format!("{what} is missing"), "complete the line"))
    }

    /// The next number of this line or a later one.
    pub(crate) fn next(&mut self, range: RangeInclusive<u32>, what: &str) -> Result<u32> {
        loop {
            if let Some(number) = self.number(range.clone())? {
                return Ok(number);
            }
            if !self.advance()? {
                let what = format!("ends before {what}");
                return Err(self.refuse(what, "copy the file again, or fix the header"));
            }
        }
    }

    /// The next word of the line as a finite number, if there is one.
    pub(crate) fn real(&mut self) -> Result<Option<f64>> {
        let word = self.word();
        if word.is_empty() {
            return Ok(None);
        }
        let value = std::str::from_utf8(&self.line[word.clone()]).ok().and_then(|text| text.parse().ok());
        match value.filter(|value: &f64| value.is_finite()) {
            Some(value) => Ok(Some(value)),
            None => {
                Err(self.refuse(format!("{} is not a finite number", self.quoted(word)), "fix the entry"))
            }
        }
    }

    /// Refuses what else is on the line.
    pub(crate) fn end(&mut self) -> Result<()> {
        let word = self.word();
        if word.is_empty() {
            return Ok(());
        }
        Err(self.refuse(format!("{} is one entry too many", self.quoted(word)), "remove it"))
    }

    /// Refuses any further line that is not blank.
    pub(crate) fn end_of_file(&mut self, what: &str) -> Result<()> {
        match self.advance_to_data()? {
            true => Err(self.refuse(format!("is a line after {what}"), "remove it, or fix the header")),
            false => Ok(()),
        }
    }

    /// Refuses counts in a header that take more bytes of text than the file has, or more memory than is free.
    pub(crate) fn require(&self, text: u64, memory: u64) -> Result<()> {
        if text > self.most.saturating_add(1) {
            let what = format!("declares more than the file can hold, which is {} bytes at most", self.most);
            return Err(self.refuse(what, "copy the file again, or fix the header"));
        }
        require_memory(&self.place(), "what is declared", memory.into(), "use a machine with more memory")
    }
}
