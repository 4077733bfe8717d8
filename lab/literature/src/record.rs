//! The statements of the experiments as they were found last, kept beside the pages in `statements.json`.
//!
//! What is emulated takes minutes and differs a little from run to run: lists and indexes read the record
//! instead. A run replaces the statements of its experiments.

use crate::catalogue;
use crate::experiment::{Check, Verdict};
use apportion::error::{Error, Result};
use serde_json::{Value, json};
use std::path::Path;

/// The file's name.
pub const FILE: &str = "statements.json";

/// The record that the repository keeps.
const REPOSITORY: &str = include_str!("../../results/literature/statements.json");

/// A statement of the source and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub what: String,
    pub published: String,
    pub here: String,
    /// How far from the published value counts as met.
    pub tolerance: String,
    pub verdict: Verdict,
}

impl Statement {
    pub fn of(check: &Check) -> Self {
        let Check { what, published, here, tolerance, .. } = check.clone();
        Self { what, published, here, tolerance, verdict: check.verdict() }
    }

    fn to_value(&self) -> Value {
        json!([self.verdict.name(), self.what, self.published, self.here, self.tolerance])
    }

    fn parse(value: &Value) -> Option<Self> {
        let text = |i: usize| value.get(i)?.as_str().map(str::to_owned);
        let verdict = Verdict::ALL.into_iter().find(|v| text(0).as_deref() == Some(v.name()))?;
        Some(Self { what: text(1)?, published: text(2)?, here: text(3)?, tolerance: text(4)?, verdict })
    }
}

/// The statements of every experiment.
pub struct Record(Vec<Experimented>);

/// The statements of one experiment.
pub struct Experimented {
    pub id: String,
    pub statements: Vec<Statement>,
}

impl Record {
    /// The record in a directory; that of the repository where there is none.
    ///
    /// # Errors
    /// A file that is no record.
    pub fn of_directory(directory: &Path) -> Result<Self> {
        match std::fs::read_to_string(directory.join(FILE)) {
            Ok(text) => Self::parse(&text),
            Err(_) => Self::of_repository(),
        }
    }

    /// The record that the repository keeps.
    ///
    /// # Errors
    /// As [`Record::of_directory`].
    pub fn of_repository() -> Result<Self> {
        Self::parse(REPOSITORY)
    }

    fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::input(FILE, "is no record of statements", "delete it, and run all experiments");
        let value: Value = serde_json::from_str(text).map_err(|_| wrong())?;
        let experiments = value.as_object().ok_or_else(wrong)?.iter().map(|(id, statements)| {
            let statements = statements.as_array().ok_or_else(wrong)?.iter();
            let statements = statements.map(|one| Statement::parse(one).ok_or_else(wrong));
            Ok(Experimented { id: id.clone(), statements: statements.collect::<Result<_>>()? })
        });
        let mut record = Self(experiments.collect::<Result<_>>()?);
        record.sort();
        Ok(record)
    }

    /// Puts the statements of an experiment in the place of those that it had.
    pub fn replace(&mut self, id: &str, statements: Vec<Statement>) {
        self.0.retain(|one| one.id != id);
        self.0.push(Experimented { id: id.to_owned(), statements });
        self.sort();
    }

    /// The order of the catalogue, without experiments that there are no more.
    fn sort(&mut self) {
        let place = |id: &str| catalogue::all().position(|e| e.about().id() == id);
        self.0.retain(|one| place(&one.id).is_some());
        self.0.sort_by_key(|one| place(&one.id));
    }

    pub fn experiments(&self) -> &[Experimented] {
        &self.0
    }

    /// The statements of an experiment.
    pub fn statements(&self, id: &str) -> &[Statement] {
        self.0.iter().find(|one| one.id == id).map_or(&[], |one| &one.statements)
    }

    /// The text of the file: a line for each statement.
    pub fn to_json(&self) -> String {
        let mut text = "{\n".to_owned();
        for (i, one) in self.0.iter().enumerate() {
            let lines: Vec<String> = one.statements.iter().map(|s| s.to_value().to_string()).collect();
            let end = if i + 1 < self.0.len() { "," } else { "" };
            text += &format!("{}: [\n{}\n]{end}\n", Value::from(one.id.as_str()), lines.join(",\n"));
        }
        text + "}\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_record_is_written_as_it_is_read() {
        let record = Record::of_repository().unwrap();
        assert_eq!(record.to_json(), REPOSITORY);
    }

    #[test]
    fn every_experiment_has_statements_and_none_is_missed() {
        let record = Record::of_repository().unwrap();
        for about in catalogue::all().map(|e| e.about()) {
            let statements = record.statements(about.id());
            assert!(!statements.is_empty(), "{}", about.id());
            assert!(statements.iter().all(|s| s.verdict != Verdict::Missed), "{}", about.id());
        }
    }
}
