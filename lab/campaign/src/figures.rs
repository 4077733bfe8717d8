//! Figures of the campaign, and the page that shows them.

/// One line of the page.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What was attacked.
    pub what: String,
    /// What was tried, with its number.
    pub tried: String,
    /// How it ended.
    pub outcome: String,
}

impl Figure {
    pub fn new(what: impl Into<String>, tried: impl Into<String>, outcome: impl Into<String>) -> Self {
        Self { what: what.into(), tried: tried.into(), outcome: outcome.into() }
    }
}

/// The figures as a Markdown table. A defect ends the campaign before this: the page has none.
pub fn page(figures: &[Figure]) -> String {
    let mut text = String::from("| attacked | tried | outcome |\n| --- | --- | --- |\n");
    for Figure { what, tried, outcome } in figures {
        text += &format!("| {what} | {tried} | {outcome} |\n");
    }
    text
}
