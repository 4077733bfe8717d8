//! Reports as text, JSON and Markdown pages.

use crate::catalogue;
use crate::experiment::{About, Check, Report, Table, Verdict};
use crate::index::DOCUMENTS;
use crate::record::{FILE, Record, Statement};
use apportion::error::{Error, Result};
use apportion::output::write_whole;
use apportion_report::table;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Most characters in a line of a page, and in a row of a table.
pub const WIDTH: usize = 110;

/// A finished experiment.
pub struct Done {
    pub about: About,
    pub report: Report,
    pub seconds: f64,
}

impl Done {
    /// The worst of its checks.
    pub fn verdict(&self) -> Verdict {
        self.report.checks.iter().map(Check::verdict).max().unwrap_or(Verdict::Met)
    }

    pub fn text(&self) -> String {
        let mut text = format!("{}\n", heading(&self.about));
        for own in &self.report.tables {
            let header: Vec<&str> = own.header.iter().map(String::as_str).collect();
            let _ = write!(text, "\n{}\n\n{}", own.title, table(&header, own.rows.clone()));
        }
        text += "\n";
        for check in &self.report.checks {
            let verdict = check.verdict();
            let _ = writeln!(
                text,
                "{}: {} (published {}, here {}{}, tolerance {})",
                verdict.name(),
                check.what,
                check.published,
                check.here,
                check.difference_after(", difference "),
                check.tolerance
            );
            if let Some(reason) = check.reason() {
                let _ = writeln!(text, "  {reason}");
            }
        }
        for note in &self.report.notes {
            let _ = writeln!(text, "{note}");
        }
        let _ = writeln!(text, "{:.1} s", self.seconds);
        text
    }

    pub fn json(&self) -> Value {
        let tables = self.report.tables.iter().map(|own| {
            let rows: Vec<Vec<Value>> =
                own.rows.iter().map(|row| row.iter().map(|text| cell(text)).collect()).collect();
            json!({"title": own.title, "header": own.header, "rows": rows})
        });
        let checks = self.report.checks.iter().map(|check| {
            json!({"what": check.what, "published": check.published, "here": check.here,
                "difference": check.difference, "tolerance": check.tolerance, "verdict": check.verdict().name(),
                "reason": check.reason()})
        });
        json!({"ids": self.about.ids, "source": self.about.source, "shows": self.about.shows,
            "kind": self.about.kind.name(), "seconds": self.seconds, "verdict": self.verdict().name(),
            "tables": tables.collect::<Vec<_>>(), "checks": checks.collect::<Vec<_>>(),
            "notes": self.report.notes})
    }

    /// Writes its page, pictures and other files.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        for picture in &self.report.pictures {
            write_whole(directory.join(format!("{}.svg", picture.name)), picture.svg.as_bytes())?;
        }
        for (name, text) in &self.report.files {
            write_whole(directory.join(name), text.as_bytes())?;
        }
        write_whole(directory.join(format!("{}.md", self.about.id())), self.page().as_bytes())
    }

    fn page(&self) -> String {
        let mut page = format!("# {}\n\n", self.about.ids.join(", "));
        let kind = self.about.kind.name();
        page += &wrapped(&format!("{}: {}. Numbers are {kind}.", self.about.source, self.about.shows), "");
        let _ =
            write!(page, "\n```sh\ncargo run --release -p literature -- run {}\n```\n\n", self.about.id());
        for check in self.report.checks.iter().filter(|check| check.verdict() != Verdict::Met) {
            let text = format!(
                "**{}**: {}. Published: {}; here: {}{}; tolerance: {}. {}",
                capitalised(check.verdict().name()),
                check.what,
                check.published,
                check.here,
                check.difference_after("; difference: "),
                check.tolerance,
                check.reason().unwrap_or("The reason is not known.")
            );
            page += &wrapped(&text, "");
            page += "\n";
        }
        let met: Vec<&Check> =
            self.report.checks.iter().filter(|check| check.verdict() == Verdict::Met).collect();
        if !met.is_empty() {
            page += "Met:\n\n";
            for check in met {
                let text = format!(
                    "- {}: published {}, here {}{} (tolerance {}).",
                    check.what,
                    check.published,
                    check.here,
                    check.difference_after(", difference "),
                    check.tolerance
                );
                page += &wrapped(&text, "  ");
            }
            page += "\n";
        }
        for note in &self.report.notes {
            page += &wrapped(note, "");
            page += "\n";
        }
        for picture in &self.report.pictures {
            let _ = write!(page, "![{0}]({0}.svg)\n\n", picture.name);
        }
        for own in &self.report.tables {
            page += &markdown(own);
        }
        format!("{}\n", page.trim_end())
    }
}

/// A number where the text is one.
fn cell(text: &str) -> Value {
    text.parse::<f64>().ok().filter(|x| x.is_finite()).map_or_else(|| json!(text), |x| json!(x))
}

/// A table in a code block, which stays readable as text.
fn markdown(own: &Table) -> String {
    let header: Vec<&str> = own.header.iter().map(String::as_str).collect();
    format!(
        "{}\n```text\n{}```\n\n",
        wrapped(&format!("{}:", own.title), ""),
        table(&header, own.rows.clone())
    )
}

/// What an experiment is, in a line.
fn heading(about: &About) -> String {
    format!("{}: {} ({})", about.ids.join(", "), about.shows, about.source)
}

/// Breaks a paragraph into lines; all but the first begin with `indent`.
pub fn wrapped(text: &str, indent: &str) -> String {
    let (mut out, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if !line.trim().is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out += &line;
            out += "\n";
            line = format!("{indent}{word}");
        } else if line.is_empty() {
            line = word.to_owned();
        } else {
            line = format!("{line} {word}");
        }
    }
    format!("{out}{line}\n")
}

/// Writes the record of the directory with what these experiments found, and the pages that follow from it:
/// an index of the experiments, and one of each document.
///
/// # Errors
/// A file that cannot be written, or a record that cannot be read.
pub fn write_record(all: &[Done], directory: &Path) -> Result<()> {
    let mut record = Record::of_directory(directory)?;
    for done in all {
        record.replace(done.about.id(), done.report.checks.iter().map(Statement::of).collect());
    }
    write_whole(directory.join(FILE), record.to_json().as_bytes())?;
    for document in &*DOCUMENTS {
        let name = format!("{}.md", document.id);
        write_whole(directory.join(name), document.page(&record).as_bytes())?;
    }
    write_whole(directory.join("README.md"), index_page(&record).as_bytes())
}

/// The page that lists all others, what is not met first.
fn index_page(record: &Record) -> String {
    let mut page = "# Reproductions of the source documents\n\n".to_owned();
    page += &wrapped(
        "Written by `cargo run --release -p literature -- run ID … --dir DIR`. What the experiments are, and \
         how to read them, is in [Results: literature](../literature.md).",
        "",
    );
    page += "\nEach document has a page in its own order:\n\n";
    for document in &*DOCUMENTS {
        let text = format!("- [{}]({}.md): {}.", document.title, document.id, document.counts(record));
        page += &wrapped(&text, "  ");
    }
    let statements = || record.experiments().iter().flat_map(|one| &one.statements);
    let count = |verdict| statements().filter(|s| s.verdict == verdict).count();
    let counts: Vec<String> = Verdict::ALL
        .into_iter()
        .filter(|verdict| count(*verdict) > 0)
        .map(|verdict| format!("{} {}", count(verdict), verdict.name()))
        .collect();
    page += "\n";
    page += &wrapped(
        &format!(
            "{} experiments compare {} statements of the documents: {}.",
            record.experiments().len(),
            statements().count(),
            counts.join("; ")
        ),
        "",
    );
    for verdict in Verdict::ALL.into_iter().skip(1).filter(|verdict| count(*verdict) > 0) {
        let _ = write!(page, "\n{}:\n\n", capitalised(verdict.name()));
        for one in record.experiments() {
            for Statement { what, published, here, .. } in
                one.statements.iter().filter(|s| s.verdict == verdict)
            {
                let text = format!("- [{0}]({0}.md): {what}. Published {published}, here {here}.", one.id);
                page += &wrapped(&text, "  ");
            }
        }
    }
    page += "\n| experiment | kind | met | about |\n| --- | --- | --- | --- |\n";
    for about in catalogue::all().map(|experiment| experiment.about()) {
        let (id, statements) = (about.id(), record.statements(about.id()));
        let met = statements.iter().filter(|s| s.verdict == Verdict::Met).count();
        let (kind, seconds) = (about.kind.name(), about.seconds);
        let _ = writeln!(page, "| [{id}]({id}.md) | {kind} | {met} of {} | {seconds} s |", statements.len());
    }
    page += "\n";
    for about in catalogue::all().map(|experiment| experiment.about()) {
        page += &wrapped(&format!("- {}.", heading(&about)), "  ");
    }
    page
}

/// With a capital letter in front.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Creates a directory for the pages.
///
/// # Errors
/// It cannot be created.
pub fn directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|e| Error::file(path, "create", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_the_width() {
        let text = "word ".repeat(100);
        let lines = wrapped(&text, "  ");
        assert!(lines.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(lines.lines().skip(1).all(|line| line.starts_with("  word")));
        assert_eq!(lines.split_whitespace().count(), 100);
    }
}
