//! What an experiment is, and what it reports.

use apportion::error::Result;
use apportion::run::Monitor;
use apportion_report::{Plot, plot_svg_on};
use std::fmt::Write;

/// How an experiment gets its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// By formula, layout or simulation: the same numbers on every machine.
    Computed,
    /// By running the real program on emulated processors and links: seconds of real time.
    Emulated,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Computed => "computed",
            Self::Emulated => "emulated",
        }
    }
}

/// What `list` says of an experiment.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its name, and the names of the other figures or tables that it covers.
    pub ids: &'static [&'static str],
    /// Document and section.
    pub source: &'static str,
    /// What it shows, in a phrase.
    pub shows: &'static str,
    pub kind: Kind,
    /// About how long it takes on an idle machine.
    pub seconds: u32,
}

impl About {
    /// The name of its page and the one that it is called by.
    pub fn id(&self) -> &'static str {
        self.ids[0]
    }
}

/// What an experiment is given.
pub struct Context<'a> {
    /// A smaller selection: fewer draws, no emulation.
    pub quick: bool,
    pub monitor: &'a Monitor,
}

/// A reproduction: published numbers beside ours.
pub trait Experiment: Sync {
    fn about(&self) -> About;

    /// # Errors
    /// Those of the library; a stop from outside. A reproduction that fails is no error but a [`Check`].
    fn run(&self, context: &Context<'_>) -> Result<Report>;
}

/// What an experiment found.
#[derive(Debug, Default)]
pub struct Report {
    pub tables: Vec<Table>,
    pub checks: Vec<Check>,
    pub pictures: Vec<Picture>,
    /// What a reader needs to know about the numbers.
    pub notes: Vec<String>,
    /// Other files, by name.
    pub files: Vec<(String, String)>,
}

impl Report {
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub fn draw(&mut self, name: &str, plot: &Plot) {
        self.draw_on(name, plot, [false; 2]);
    }

    /// With logarithmic axes where `logarithmic` (horizontal, vertical) is true.
    pub fn draw_on(&mut self, name: &str, plot: &Plot, logarithmic: [bool; 2]) {
        self.pictures.push(Picture { name: name.to_owned(), svg: plot_svg_on(plot, logarithmic) });
    }
}

/// Rows of text under a header.
#[derive(Debug)]
pub struct Table {
    pub title: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(title: impl Into<String>, header: &[&str]) -> Self {
        let header = header.iter().map(|&word| word.to_owned()).collect();
        Self { title: title.into(), header, rows: Vec::new() }
    }

    pub fn row<T: ToString>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(|cell| cell.to_string()).collect());
    }
}

/// A picture, by name without ending.
#[derive(Debug)]
pub struct Picture {
    pub name: String,
    pub svg: String,
}

/// What became of a statement of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The value here is the published one, within the stated tolerance.
    Met,
    /// The value here is the published one because constants were fitted to it: it confirms nothing.
    Fitted,
    /// The published relation holds (its sign, its order), but its size is outside of the tolerance.
    RelationMet,
    /// The published value contradicts the document's own formulae or data, by arithmetic.
    PublishedWrong,
    /// The document does not give the data from which its value follows.
    DataNotGiven,
    /// The program falls short of the published value, for a reason that is known.
    Short,
    /// Not met for no known reason: the run ends with exit code 1.
    Missed,
}

impl Verdict {
    /// From the best to the worst.
    pub const ALL: [Self; 7] = [
        Self::Met,
        Self::Fitted,
        Self::RelationMet,
        Self::PublishedWrong,
        Self::DataNotGiven,
        Self::Short,
        Self::Missed,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Fitted => "fitted",
            Self::RelationMet => "relation met, magnitude not",
            Self::PublishedWrong => "published value wrong",
            Self::DataNotGiven => "data not given",
            Self::Short => "not met, reason known",
            Self::Missed => "MISSED",
        }
    }
}

/// A statement of the source and what was found.
#[derive(Debug, Clone)]
pub struct Check {
    pub what: String,
    pub published: String,
    pub here: String,
    /// How far from the published value it is, where both are numbers.
    pub difference: Option<String>,
    /// How far from the published value counts as met, such as `0.1 %` or `exact`.
    pub tolerance: String,
    met: bool,
    /// Which constants were fitted to the published value; `None` where it follows from the document.
    fitted: Option<String>,
    /// The verdict where it is not met, and why.
    otherwise: Option<(Verdict, String)>,
}

impl Check {
    /// A statement that holds exactly or not at all; `within` states another tolerance.
    pub fn new(what: impl Into<String>, published: impl ToString, here: impl ToString, met: bool) -> Self {
        let (published, here) = (published.to_string(), here.to_string());
        let what = what.into();
        Self {
            what,
            published,
            here,
            difference: None,
            tolerance: "exact".into(),
            met,
            fitted: None,
            otherwise: None,
        }
    }

    /// A value that the document does not print, or whose data it does not give: what is found here stands
    /// beside it, and nothing can be compared.
    pub fn incomparable(
        what: impl Into<String>,
        published: impl ToString,
        here: impl ToString,
        reason: impl Into<String>,
    ) -> Self {
        Self::new(what, published, here, false).within("none").unless(Verdict::DataNotGiven, reason)
    }

    /// Numbers that agree within a relative tolerance.
    pub fn near(what: impl Into<String>, published: f64, here: f64, tolerance: f64) -> Self {
        let met = (here - published).abs() <= tolerance * published.abs();
        let relative = 100.0 * (here - published) / published.abs();
        let difference = relative.is_finite().then(|| match relative.abs() {
            off if off < 1e-7 => "none".to_owned(),
            off if off < 0.005 => "below 0.01 %".to_owned(),
            _ => format!("{relative:+.2} %"),
        });
        // As published, unless it is a fraction that does not end.
        let exact = published.to_string();
        let published = if exact.len() > 10 { short(published) } else { exact };
        let check = Self::new(what, published, short(here), met);
        Self { difference, ..check }.within(format!("{} %", short(100.0 * tolerance)))
    }

    /// Fractions that agree within some percentage points.
    pub fn points(what: impl Into<String>, published: f64, here: f64, points: f64) -> Self {
        let met = 100.0 * (here - published).abs() <= points;
        let difference = Some(format!("{:+.1} points", 100.0 * (here - published)));
        let check = Self::new(what, percent(published), percent(here), met);
        Self { difference, ..check }.within(format!("{points} points"))
    }

    /// The same check with its tolerance in words.
    #[must_use]
    pub fn within(self, tolerance: impl Into<String>) -> Self {
        Self { tolerance: tolerance.into(), ..self }
    }

    /// The same check with what is found in other words than its number's.
    #[must_use]
    pub fn found(self, here: impl Into<String>) -> Self {
        Self { here: here.into(), ..self }
    }

    /// The same check of a value to which constants were fitted: where it is met it is [`Verdict::Fitted`].
    #[must_use]
    pub fn fitted(self, constants: impl Into<String>) -> Self {
        Self { fitted: Some(constants.into()), ..self }
    }

    /// The same check for the case that the size is another one: it is [`Verdict::RelationMet`] if the
    /// relation `holds`, and stays missed if not.
    #[must_use]
    pub fn if_only_the_relation(self, holds: bool, reason: impl Into<String>) -> Self {
        let otherwise = holds.then(|| (Verdict::RelationMet, reason.into()));
        Self { otherwise, ..self }
    }

    /// The same check with a verdict other than missed, and its reason, for the case that it is not met.
    #[must_use]
    pub fn unless(self, verdict: Verdict, reason: impl Into<String>) -> Self {
        Self { otherwise: Some((verdict, reason.into())), ..self }
    }

    /// The difference after some words; nothing where there is none.
    pub fn difference_after(&self, words: &str) -> String {
        self.difference.as_ref().map_or_else(String::new, |difference| format!("{words}{difference}"))
    }

    pub fn verdict(&self) -> Verdict {
        match (self.met, &self.fitted, &self.otherwise) {
            (true, None, _) => Verdict::Met,
            (true, Some(_), _) => Verdict::Fitted,
            (false, _, Some((verdict, _))) => *verdict,
            (false, _, None) => Verdict::Missed,
        }
    }

    /// Why it is not met, or what was fitted; `None` where it is met or the reason is not known.
    pub fn reason(&self) -> Option<&str> {
        match self.met {
            true => self.fitted.as_deref(),
            false => self.otherwise.as_ref().map(|(_, reason)| reason.as_str()),
        }
    }
}

/// A fraction as percent, one decimal, without the sign of a rounded zero.
pub fn percent(x: f64) -> String {
    format!("{:.1} %", (1000.0 * x).round() / 10.0 + 0.0)
}

/// About five significant digits.
pub fn short(x: f64) -> String {
    let decimals = if x == 0.0 { 0 } else { (4.0 - x.abs().log10().floor()).clamp(0.0, 9.0) as usize };
    let mut text = String::new();
    let _ = write!(text, "{x:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_is_not_met_is_missed_unless_it_is_explained() {
        let check = Check::near("x", 1.105, 1.1055, 0.001);
        assert_eq!((check.verdict(), check.here.as_str()), (Verdict::Met, "1.1055"));
        let check = Check::near("x", 1.105, 1.2, 0.001);
        assert_eq!(check.verdict(), Verdict::Missed);
        let known = check.clone().unless(Verdict::DataNotGiven, "known");
        assert_eq!((known.verdict(), known.reason()), (Verdict::DataNotGiven, Some("known")));
        assert_eq!(check.clone().if_only_the_relation(true, "small").verdict(), Verdict::RelationMet);
        assert_eq!(check.if_only_the_relation(false, "small").verdict(), Verdict::Missed);
    }

    #[test]
    fn a_value_to_which_constants_were_fitted_is_not_met() {
        let check = Check::near("x", 57.0, 57.4, 0.01).fitted("the peak");
        assert_eq!((check.verdict(), check.reason()), (Verdict::Fitted, Some("the peak")));
        assert_eq!(Check::near("x", 57.0, 70.0, 0.01).fitted("the peak").verdict(), Verdict::Missed);
    }

    #[test]
    fn a_tolerance_is_stated() {
        assert_eq!(Check::near("x", 1.0, 1.0, 0.001).tolerance, "0.1 %");
        assert_eq!(Check::near("x", 2.0, 2.01, 0.001).difference.as_deref(), Some("+0.50 %"));
        assert_eq!(Check::near("x", 2.0, 2.0, 0.001).difference.as_deref(), Some("none"));
        assert_eq!(Check::near("x", 2.0, 1.0, 0.1).difference_after(", off by "), ", off by -50.00 %");
        let check = Check::points("x", 0.116, 0.042, 5.0);
        assert_eq!(check.difference.as_deref(), Some("-7.4 points"));
        assert_eq!((check.published.as_str(), check.here.as_str()), ("11.6 %", "4.2 %"));
        assert_eq!((check.tolerance.as_str(), check.verdict()), ("5 points", Verdict::Missed));
    }

    #[test]
    fn five_digits() {
        let texts = [0.0, 1.0, 22_424_946.4, 0.000_123_456_7, 10.459, 3.5].map(short);
        assert_eq!(texts, ["0", "1", "22424946", "0.00012346", "10.459", "3.5"]);
    }
}
