//! Where a picture is drawn: as a file of its own, or in a page.

/// The place of a picture, which decides its size and what it says about itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Canvas {
    /// A file of its own, with a background, a title and a legend.
    File,
    /// A page that has titles and legends as text: so many pixels wide, with no type below 12 pixels.
    Page(f64),
}

/// The smallest type in a page.
pub(super) const LEAST_TYPE: f64 = 12.0;

/// Pages narrower than this, such as on a phone, shorten names.
const NARROW: f64 = 500.0;

impl Canvas {
    /// The maximum number of characters of a name.
    pub(super) fn longest_name(self) -> usize {
        match self {
            Self::Page(width) if width < NARROW => 11,
            _ => 24,
        }
    }

    /// The head of an SVG 1.1 document of this size. In a page it has no background, and takes the colours of
    /// the page where its style gives them.
    pub(super) fn head(self, [width, height]: [f64; 2], attributes: &str, title: &str) -> String {
        let paper = match self {
            Self::File => "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            Self::Page(_) => "",
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"Helvetica, Arial, sans-serif\"{attributes} \
             role=\"img\">\n<title>{title}</title>\n{paper}"
        )
    }
}
