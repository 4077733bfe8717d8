use crate::index::Document;
pub const PAPER: Document = Document { id: "fpm", title: "", chapters: &[] };
pub const SLIDES: Document = Document { id: "slides", title: "", chapters: &[] };
