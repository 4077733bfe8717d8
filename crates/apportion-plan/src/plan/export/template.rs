//! Exports by templates in the language of Jinja: those of the folder `templates`, and those of users.
//!
//! A template sees `processors`, by rank, and `in_order()`, the same in the order of their parts: each has a `name`, its
//! `share` of the `total`, its units (`from` <= unit < `to`), its `fraction` of the total, the fraction at which it ends
//! (`end`), and a whole `weight` in proportion. `without_empty(TOOL)` leaves processors without units out, with a
//! warning; `warn(TEXT)` adds one, `refuse(PLACE, WHAT, REMEDY)` is an error, and `c_text` and `csv_field` quote.

use super::graph::weights;
use super::owners::c_text;
use super::{Export, left_out};
use crate::error::{Error, Result};
use crate::input::read_text;
use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior, Value, context};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How the names of users' templates end.
const EXTENSION: &str = ".jinja";

/// A template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Its place in errors.
    pub(super) name: Cow<'static, str>,
    pub(super) text: Cow<'static, str>,
}

/// Shares, by rank.
pub(super) struct Shares<'a> {
    pub names: &'a [String],
    pub shares: &'a [u64],
    pub ranges: &'a [Range<u64>],
    /// The ranks in the order of their parts.
    pub order: &'a [usize],
}

/// What a template says beside its text.
#[derive(Default)]
struct Said {
    warnings: Vec<String>,
    refusal: Option<Error>,
    /// Whether the place of a share says which units it has.
    is_by_place: bool,
}

/// The same for the functions of a template.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Said>>);

impl Notes {
    fn lock(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Template {
    /// The template of a file, if it has the name of one.
    pub(super) fn read(name: &str) -> Option<Result<Self>> {
        let read = || Ok(Self { name: name.to_owned().into(), text: read_text(Path::new(name))?.into() });
        name.ends_with(EXTENSION).then(read)
    }

    /// The shares in the template's format.
    ///
    /// # Errors
    /// What the template refuses, or a mistake in it.
    pub(super) fn render(&self, shares: &Shares<'_>) -> Result<Export> {
        let notes = Notes::default();
        let by_rank: Vec<usize> = (0..shares.names.len()).collect();
        let total: u128 = shares.shares.iter().map(|&share| u128::from(share)).sum();
        let context = context! { processors => shares.rows(&by_rank), total };
        let environment = environment(&notes, shares.rows(shares.order));
        let rendered = environment.render_named_str(&self.name, &self.text, context);
        let mut said = std::mem::take(&mut *notes.lock());
        let text = rendered.map_err(|error| {
            said.refusal.take().unwrap_or_else(|| {
                let line = error.line().map_or_else(String::new, |line| format!(":{line}"));
                let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
                let remedy = "see docs/how-to/own-export.md";
                Error::input(format!("{}{line}", self.name), what, remedy)
            })
        })?;
        if said.is_by_place && !shares.order.is_sorted() {
            let names: Vec<&str> = shares.order.iter().map(|&rank| &shares.names[rank][..]).collect();
            said.warnings.push(format!("give the tool the processors in this order: {}", names.join(", ")));
        }
        Ok(Export { text, warnings: said.warnings })
    }
}

impl Shares<'_> {
    /// What a template sees of the processors of these ranks.
    fn rows(&self, ranks: &[usize]) -> Vec<Value> {
        let parts: Vec<(&str, u64)> = ranks.iter().map(|&i| (&self.names[i][..], self.shares[i])).collect();
        let total: f64 = parts.iter().map(|(_, share)| *share as f64).sum();
        let mut before = 0.0;
        let row = |((&(name, share), weight), &rank): ((&(&str, u64), u64), &usize)| {
            before += share as f64;
            // The shortest decimal that is read back as the same number.
            let [fraction, end] = [share as f64 / total, before / total].map(|part| part.to_string());
            let Range { start, end: to } = self.ranges[rank];
            context! { name, share, from => start, to, fraction, end, weight }
        };
        parts.iter().zip(weights(&parts)).zip(ranks).map(row).collect()
    }
}

/// The language of templates: its functions and filters.
fn environment(said: &Notes, in_order: Vec<Value>) -> Environment<'static> {
    let mut environment = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    environment.set_syntax(syntax.build().expect("the usual delimiters"));
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("c_text", |text: &str| c_text(text));
    environment.add_filter("csv_field", |text: &str| csv_field(text));
    let notes = said.clone();
    environment.add_function("in_order", move || {
        notes.lock().is_by_place = true;
        in_order.clone()
    });
    let notes = said.clone();
    environment.add_function("warn", move |text: String| {
        notes.lock().warnings.push(text);
        ""
    });
    let notes = said.clone();
    environment.add_function("refuse", move |place: String, what: String, remedy: String| {
        notes.lock().refusal = Some(Error::input(place, what, remedy));
        Err::<Value, _>(minijinja::Error::new(ErrorKind::InvalidOperation, "refused"))
    });
    let notes = said.clone();
    environment.add_filter("without_empty", move |parts: Vec<Value>, tool: String| {
        let is_idle = |part: &Value| part.get_attr("share").is_ok_and(|share| !share.is_true());
        let (idle, working): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_idle);
        let names: Vec<String> =
            idle.iter().flat_map(|part| part.get_attr("name")).map(|name| name.to_string()).collect();
        notes.lock().warnings.extend(left_out(&names, &tool));
        working
    });
    environment
}

fn csv_field(field: &str) -> String {
    let plain = !field.contains(['"', ',', '\n', '\r']);
    if plain { field.to_owned() } else { format!("\"{}\"", field.replace('"', "\"\"")) }
}
