//! All experiments, in the order of `list`.

use crate::experiment::Experiment;
use crate::{becker, index, lastovetsky, malik, tinetti};
use apportion::error::Result;
use serde_json::{Value, json};

/// Every experiment, document by document.
pub fn all() -> impl Iterator<Item = &'static dyn Experiment> {
    [becker::EXPERIMENTS, lastovetsky::EXPERIMENTS, malik::EXPERIMENTS, tinetti::EXPERIMENTS]
        .into_iter()
        .flat_map(|of| of.iter().copied())
}

/// The experiments of these names or of these figures and tables, each once, in the order of the catalogue.
///
/// # Errors
/// A name that no experiment has, and a figure with nothing to compare: exit code 2.
pub fn find(ids: &[String]) -> Result<Vec<&'static dyn Experiment>> {
    let every = ids.iter().any(|id| id == "all");
    let mut names: Vec<&str> = Vec::new();
    for id in ids.iter().filter(|id| *id != "all") {
        match all().any(|e| e.about().ids.contains(&id.as_str())) {
            true => names.push(id),
            false => names.extend(index::experiments_of(id)?),
        }
    }
    let wanted = |e: &&dyn Experiment| every || names.iter().any(|name| e.about().ids.contains(name));
    Ok(all().filter(wanted).collect())
}

/// One line for each experiment: its name and what `list` says of it, then the other figures it covers.
pub fn text() -> String {
    let mut text = format!("{:18} {:8} {:>6}  {:29} shows\n", "experiment", "kind", "about", "source");
    for about in all().map(Experiment::about) {
        let (kind, seconds) = (about.kind.name(), about.seconds);
        text += &format!("{:18} {kind:8} {seconds:>4} s  {:29} {}", about.id(), about.source, about.shows);
        let others = &about.ids[1..];
        text += &if others.is_empty() { "\n".into() } else { format!(" ({})\n", others.join(", ")) };
    }
    let seconds: u32 = all().map(|e| e.about().seconds).sum();
    text + &format!("\nall: about {seconds} s on an idle machine\n")
}

pub fn json() -> Value {
    let list = all().map(|experiment| {
        let about = experiment.about();
        json!({"ids": about.ids, "source": about.source, "shows": about.shows,
            "kind": about.kind.name(), "seconds": about.seconds})
    });
    Value::Array(list.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_figure_has_one_experiment() {
        let ids: Vec<&str> = all().flat_map(|e| e.about().ids.iter().copied()).collect();
        let distinct: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), distinct.len());
        assert!(!ids.contains(&"all"));
    }

    #[test]
    fn names_are_found_by_any_figure() {
        let ids = ["becker-5.16".to_owned(), "becker-5.13".to_owned()];
        assert_eq!(find(&ids).unwrap().len(), 1);
        assert_eq!(find(&["all".to_owned()]).unwrap().len(), all().count());
        let error = |id: &str| find(&[id.to_owned()]).err().unwrap();
        assert_eq!(error("becker-9.9").exit_code(), 2);
        for id in ["becker-", "becker-igure", "becker-table-2.7", "becker-2.3.2"] {
            assert!(error(id).to_string().contains("unknown experiment"), "{id}");
        }
        assert!(error("fpm-7").to_string().contains("a drawing that explains"));
        for (id, name) in [
            ("becker-6.8", "becker-table-6.1"),
            ("becker-6.3", "becker-6.6"),
            ("becker-2.7", "slides-grid"),
            ("becker-table-c.1", "becker-table-3.1"),
        ] {
            assert_eq!(find(&[id.to_owned()]).unwrap()[0].about().id(), name, "{id}");
        }
    }
}
