//! What pieces have printed, in the order in which it is to come out, and the joblog, which follows it.
//!
//! A piece whose text waits for that of others is written to the joblog together with its text: whoever continues
//! a run that was killed has the text of exactly the pieces that the joblog calls done.

use crate::error::Result;
use crate::measure::joblog::{EndedPiece, JobLog};
use std::collections::BTreeMap;
use std::ops::Range;

/// Where the text of pieces goes.
pub(super) type Print<'a> = dyn Fn(&[u8]) -> Result<()> + 'a;

/// The texts that wait, and the joblog.
pub(super) struct Ledger {
    log: Option<JobLog>,
    in_order: bool,
    /// The first unit whose text has not come out.
    next: u64,
    /// By their first unit, pieces whose turn has not come.
    waiting: BTreeMap<u64, Waiting>,
}

struct Waiting {
    end: u64,
    /// `None` if there is nothing to print or to write.
    piece: Option<(EndedPiece, Vec<u8>)>,
}

impl Ledger {
    /// A ledger for all units but those that the joblog calls done. `in_order`: texts come out in the order of the
    /// units, and otherwise when their pieces end.
    pub(crate) fn new(log: Option<JobLog>, in_order: bool) -> Self {
        let mut ledger = Self { log, in_order, next: 0, waiting: BTreeMap::new() };
        for units in ledger.log.as_ref().map_or_else(Vec::new, |log| log.done().to_vec()) {
            ledger.waiting.insert(units.start, Waiting { end: units.end, piece: None });
        }
        ledger
    }

    /// Takes a piece that has ended well.
    pub(crate) fn keep(&mut self, piece: EndedPiece, text: Vec<u8>, print: &Print<'_>) -> Result<()> {
        if !self.in_order {
            return self.put(&piece, &text, print);
        }
        let (units, mut piece) = (piece.units.clone(), Some((piece, text)));
        if let Some((silent, _)) = piece.take_if(|(_, text)| text.is_empty()) {
            self.write(&silent)?;
        }
        self.waiting.insert(units.start, Waiting { end: units.end, piece });
        self.advance(print)
    }

    /// Goes on without the text of units that are given up.
    pub(crate) fn skip(&mut self, units: &Range<u64>, print: &Print<'_>) -> Result<()> {
        self.waiting.insert(units.start, Waiting { end: units.end, piece: None });
        self.advance(print)
    }

    /// Writes a piece without a text to the joblog.
    pub(crate) fn write(&mut self, piece: &EndedPiece) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), |log| log.append(piece))
    }

    /// Whatever waits comes out: units in front of it stay undone.
    pub(crate) fn flush(&mut self, print: &Print<'_>) -> Result<()> {
        while let Some((_, waiting)) = self.waiting.pop_first() {
            if let Some((piece, text)) = waiting.piece {
                self.put(&piece, &text, print)?;
            }
        }
        Ok(())
    }

    fn advance(&mut self, print: &Print<'_>) -> Result<()> {
        while let Some(waiting) = self.waiting.remove(&self.next) {
            self.next = waiting.end;
            if let Some((piece, text)) = waiting.piece {
                self.put(&piece, &text, print)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, piece: &EndedPiece, text: &[u8], print: &Print<'_>) -> Result<()> {
        if !text.is_empty() {
            print(text)?;
        }
        self.write(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn piece(number: u64, units: Range<u64>) -> EndedPiece {
        let processor = "p".to_owned();
        EndedPiece { piece: number, units, processor, start: 0.0, seconds: 1.0, exit: 0, signal: 0 }
    }

    /// Texts come out in the order of the units, and a piece is done in the joblog only once its text is out.
    #[test]
    fn the_joblog_follows_the_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let logged = || std::fs::read_to_string(&path).unwrap().lines().count() - 1;
        let printed = RefCell::new(String::new());
        let print = |text: &[u8]| {
            printed.borrow_mut().push_str(std::str::from_utf8(text).unwrap());
            Ok(())
        };
        let mut ledger = Ledger::new(Some(JobLog::create(&path).unwrap()), true);
        ledger.keep(piece(1, 4..6), b"b".to_vec(), &print).unwrap();
        ledger.keep(piece(2, 6..7), Vec::new(), &print).unwrap();
        assert_eq!((printed.borrow().as_str(), logged()), ("", 1), "a text waits, no text need not");
        ledger.keep(piece(0, 0..4), b"a".to_vec(), &print).unwrap();
        assert_eq!((printed.borrow().as_str(), logged()), ("ab", 3));
        ledger.keep(piece(4, 9..10), b"d".to_vec(), &print).unwrap();
        ledger.skip(&(7..9), &print).unwrap();
        assert_eq!((printed.borrow().as_str(), logged()), ("abd", 4));
        ledger.keep(piece(6, 12..14), b"f".to_vec(), &print).unwrap();
        ledger.flush(&print).unwrap();
        assert_eq!((printed.borrow().as_str(), logged()), ("abdf", 5));
        // What was done before prints nothing again.
        let mut ledger = Ledger::new(Some(JobLog::resume(&path, 20).unwrap()), true);
        ledger.keep(piece(7, 7..9), b"c".to_vec(), &print).unwrap();
        ledger.keep(piece(8, 10..12), b"e".to_vec(), &print).unwrap();
        ledger.keep(piece(9, 14..15), b"g".to_vec(), &print).unwrap();
        assert_eq!(printed.borrow().as_str(), "abdfceg");
        let mut ledger = Ledger::new(None, false);
        ledger.keep(piece(0, 5..6), b"z".to_vec(), &print).unwrap();
        assert!(printed.borrow().ends_with('z'), "as pieces end");
    }
}
