//! The source documents item by item, in their own order: what shows each item, and its verdict.

use crate::experiment::Verdict;
use crate::output::wrapped;
use crate::record::{Record, Statement};
use apportion::error::{Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::LazyLock;

/// A source document: a file of `items/`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Its name on the command line, and that of its page.
    pub id: String,
    pub title: String,
    pub chapters: Vec<Chapter>,
}

/// A chapter or section of a document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chapter {
    pub title: String,
    pub items: Vec<Item>,
}

/// A numbered item of a document, or a claim of its text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Its number, such as `Figure 5.3`; the section for a claim.
    pub place: String,
    /// What it shows or says.
    pub says: String,
    /// What shows it.
    #[serde(default)]
    by: Vec<Selection>,
    /// Why there is nothing to compare.
    nothing: Option<String>,
}

/// The statements of an experiment whose text has some words; all of them for no words.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Selection {
    experiment: String,
    #[serde(default)]
    words: Vec<String>,
}

impl Item {
    /// The experiments that show it.
    fn experiments(&self) -> Vec<&str> {
        self.by.iter().map(|selection| &selection.experiment[..]).collect()
    }

    /// The statements that show it.
    fn statements<'a>(&self, record: &'a Record) -> Vec<&'a Statement> {
        let selected = self.by.iter().flat_map(|selection| {
            record.statements(&selection.experiment).iter().filter(move |s| selection.takes(&s.what))
        });
        selected.collect()
    }

    /// Its verdict, the worst of its statements' verdicts; `None` where there is nothing to compare.
    fn verdict(&self, record: &Record) -> Option<Verdict> {
        self.statements(record).iter().map(|s| s.verdict).max()
    }

    /// The verdict in words: the numbers of statements, with the tolerances of those that are met, and the
    /// reason where there is nothing to compare.
    fn outcome(&self, record: &Record) -> String {
        if let Some(reason) = &self.nothing {
            return format!("nothing to compare: {reason}");
        }
        let statements = self.statements(record);
        let mut parts = Vec::new();
        for verdict in Verdict::ALL.into_iter().rev() {
            let these: Vec<_> = statements.iter().filter(|s| s.verdict == verdict).collect();
            let within: BTreeSet<&str> = these.iter().map(|s| s.tolerance.as_str()).collect();
            let within = within.into_iter().collect::<Vec<_>>().join("; ");
            match (these.len(), verdict) {
                (0, _) => {}
                (count, Verdict::Met) => parts.push(format!("met ({count}; tolerance: {within})")),
                (count, _) => parts.push(format!("{} ({count})", verdict.name())),
            }
        }
        parts.join("; ")
    }
}

impl Selection {
    fn takes(&self, statement: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|words| contains(statement, words))
    }
}

/// True if the words are in a text, and a number at either end of them does not go on there.
fn contains(text: &str, words: &str) -> bool {
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let goes_on = |rest: &str| {
        let mut chars = rest.chars();
        let first = chars.next();
        digit(first) || (first == Some('.') && digit(chars.next()))
    };
    let number = |c: char| c.is_ascii_digit() || c == '.';
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + words.len()..]);
        let begins = words.starts_with(|c: char| c.is_ascii_digit()) && before.ends_with(number);
        let ends = words.ends_with(|c: char| c.is_ascii_digit()) && goes_on(after);
        !begins && !ends
    })
}

/// All documents.
pub static DOCUMENTS: LazyLock<Vec<Document>> = LazyLock::new(|| {
    let texts = [
        include_str!("../items/becker.toml"),
        include_str!("../items/fpm.toml"),
        include_str!("../items/slides.toml"),
        include_str!("../items/malik.toml"),
        include_str!("../items/tinetti.toml"),
    ];
    texts.map(|text| toml::from_str(text).expect("the tests read them")).into()
});

/// The documents of these names; all for no names.
///
/// # Errors
/// A name that no document has: exit code 2.
pub fn find(ids: &[String]) -> Result<Vec<&'static Document>> {
    if let Some(unknown) = ids.iter().find(|id| DOCUMENTS.iter().all(|d| d.id != **id)) {
        let names: Vec<&str> = DOCUMENTS.iter().map(|d| &d.id[..]).collect();
        let remedy = format!("use one of {}", names.join(", "));
        return Err(Error::input("`DOCUMENT`", format!("unknown document '{unknown}'"), remedy));
    }
    Ok(DOCUMENTS.iter().filter(|d| ids.is_empty() || ids.contains(&d.id)).collect())
}

/// The experiments that show a figure, table or slide, by the name that `run` takes, such as `becker-6.8` or
/// `becker-table-c.1`.
///
/// # Errors
/// A name that no document has, and a figure with nothing to compare: exit code 2.
pub fn experiments_of(id: &str) -> Result<Vec<&'static str>> {
    let named = |document: &'static Document| {
        let number = id.strip_prefix(&document.id)?.strip_prefix('-')?;
        let (kinds, number) = match number.strip_prefix("table-") {
            Some(number) => (&["Table"][..], number),
            None => (&["Figure", "Slide"][..], number),
        };
        let is_named = |item: &&Item| {
            kinds.iter().any(|kind| item.place.starts_with(kind))
                && contains(&item.place.to_lowercase(), &number.to_lowercase())
        };
        let has_digit = number.contains(|c: char| c.is_ascii_digit());
        Some(document.items().filter(move |_| has_digit).filter(is_named).collect::<Vec<_>>())
    };
    let items: Vec<&Item> = DOCUMENTS.iter().filter_map(named).flatten().collect();
    let found: Vec<&str> = items.iter().flat_map(|item| item.experiments()).collect();
    match (found.is_empty(), items.first().and_then(|item| item.nothing.as_ref())) {
        (true, Some(reason)) => {
            Err(Error::input("`ID`", format!("nothing to compare in '{id}': {reason}"), "see `list`"))
        }
        (true, _) => Err(Error::input("`ID`", format!("unknown experiment '{id}'"), "see `list`")),
        (false, _) => Ok(found),
    }
}

impl Document {
    fn items(&self) -> impl Iterator<Item = &Item> {
        self.chapters.iter().flat_map(|chapter| &chapter.items)
    }

    /// How many items have which verdict, in a sentence.
    pub fn counts(&self, record: &Record) -> String {
        let count = |verdict| self.items().filter(|item| item.verdict(record) == verdict).count();
        let mut parts: Vec<String> = Verdict::ALL
            .into_iter()
            .map(|verdict| (verdict.name(), count(Some(verdict))))
            .chain([("nothing to compare", count(None))])
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        parts.insert(0, format!("{} items", self.items().count()));
        format!("{}: {}", parts[0], parts[1..].join("; "))
    }

    /// The items as text, chapter by chapter.
    pub fn text(&self, record: &Record) -> String {
        let mut text = format!("{}\n\n{}\n", self.title, wrapped(&format!("{}.", self.counts(record)), ""));
        for chapter in &self.chapters {
            let _ = writeln!(text, "{}\n", chapter.title);
            for item in &chapter.items {
                let by = item.experiments();
                let by = if by.is_empty() { String::new() } else { format!(" [{}]", by.join(", ")) };
                let line = format!("  {}: {}{by}: {}", item.place, item.says, item.outcome(record));
                text += &wrapped(&line, "    ");
            }
            text += "\n";
        }
        text
    }

    pub fn json(&self, record: &Record) -> Value {
        let items = self.chapters.iter().flat_map(|chapter| {
            chapter.items.iter().map(|item| {
                let by = item.experiments();
                json!({"chapter": chapter.title, "item": item.place, "says": item.says, "experiments": by,
                    "verdict": item.verdict(record).map(Verdict::name), "outcome": item.outcome(record),
                    "statements": item.statements(record).len()})
            })
        });
        json!({"document": self.id, "title": self.title, "counts": self.counts(record),
            "items": items.collect::<Vec<_>>()})
    }

    /// The page: counts, then a table for each chapter.
    pub fn page(&self, record: &Record) -> String {
        let mut page = format!("# {}\n\n", self.title);
        page += &wrapped(&format!("{}.", self.counts(record)), "");
        page += "\n";
        page += &wrapped(
            "In the document's own order: every numbered figure, table, equation, algorithm, definition and \
             theorem, and the claims of the text. An item's verdict is the worst of those of the statements \
             that show it, whose number is in brackets, with the tolerances of those that are met; the page \
             of the experiment has published and computed values, and differences. \
             [Results: literature](../literature.md) explains the verdicts.",
            "",
        );
        let _ = write!(
            page,
            "\n```sh\n\
             cargo run --release -p literature -- run EXPERIMENT\n\
             cargo run --release -p literature -- list {}\n\
             ```\n",
            self.id
        );
        for chapter in &self.chapters {
            let _ = write!(page, "\n## {}\n\n", chapter.title);
            page += "| item | what it shows or says | experiment | verdict (statements) |\n";
            page += "| --- | --- | --- | --- |\n";
            for item in &chapter.items {
                let by: Vec<String> =
                    item.experiments().iter().map(|by| format!("[{by}]({by}.md)")).collect();
                let _ = writeln!(
                    page,
                    "| {} | {} | {} | {} |",
                    item.place,
                    item.says,
                    by.join(", "),
                    item.outcome(record)
                );
            }
        }
        page
    }
}

/// A line for each document: its name, its title and its counts.
pub fn summary(record: &Record) -> String {
    let line = |document: &Document| {
        let text = format!("{:8} {}. {}", document.id, document.title, document.counts(record));
        wrapped(&text, "         ")
    };
    DOCUMENTS.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn numbers_match_whole() {
        assert!(contains("figure 5.1: x", "figure 5.1") && contains("Table 5.2, side", "Table 5.2"));
        assert!(!contains("figure 5.10: x", "figure 5.1") && !contains("figure 5.1.2", "figure 5.1"));
        assert!(!contains("15.3", "5.3") && contains("at 5.3", "5.3") && contains("p = 3.", "p = 3"));
    }

    #[test]
    fn every_item_is_once_in_its_document() {
        for document in &*DOCUMENTS {
            let places: Vec<[&str; 2]> = document.items().map(|item| [&item.place[..], &item.says]).collect();
            let distinct: BTreeSet<&[&str; 2]> = places.iter().collect();
            assert_eq!(places.len(), distinct.len(), "{}", document.id);
        }
    }

    /// Every figure and table is a name that `run` takes: it has an experiment, or a reason why it has none.
    #[test]
    fn every_figure_and_table_has_an_answer() {
        for document in &*DOCUMENTS {
            for item in document.items() {
                let Some((kind, numbers)) = item.place.split_once(' ') else { continue };
                let table = match kind {
                    "Figure" | "Figures" => "",
                    "Table" | "Tables" => "table-",
                    _ => continue,
                };
                for number in numbers.split([' ', ',']).filter(|n| n.contains(|c: char| c.is_ascii_digit())) {
                    let id = format!("{}-{table}{number}", document.id);
                    let error = catalogue::find(&[id]).err().map(|error| error.to_string());
                    assert!(error.is_none_or(|e| e.contains("nothing to compare in")), "{}", item.place);
                }
            }
        }
    }

    /// The tolerance of what is met stands beside it.
    #[test]
    fn what_is_met_has_its_tolerance_beside_it() {
        let record = Record::of_repository().unwrap();
        let table_2 = DOCUMENTS[1].items().find(|item| item.place == "Table 2").unwrap();
        assert_eq!(table_2.outcome(&record), "fitted (3); met (1; tolerance: exact)");
    }

    /// Every item that names statements has some, and every statement shows an item.
    #[test]
    fn items_and_statements_cover_each_other() {
        let record = Record::of_repository().unwrap();
        let items = || DOCUMENTS.iter().flat_map(Document::items);
        for item in items() {
            assert_eq!(item.by.is_empty(), item.nothing.is_some(), "{}", item.place);
            for selection in &item.by {
                let mut statements = record.statements(&selection.experiment).iter();
                assert!(
                    statements.any(|s| selection.takes(&s.what)),
                    "{} ({}): no statement of {} has {:?}",
                    item.place,
                    item.says,
                    selection.experiment,
                    selection.words
                );
                for words in &selection.words {
                    let mut statements = record.statements(&selection.experiment).iter();
                    assert!(statements.any(|s| contains(&s.what, words)), "{}: {words:?}", item.place);
                }
            }
        }
        for one in record.experiments() {
            for statement in &one.statements {
                let shows =
                    |item: &Item| item.by.iter().any(|s| s.experiment == one.id && s.takes(&statement.what));
                assert!(items().any(shows), "{}: \"{}\" shows no item", one.id, statement.what);
            }
        }
    }
}
