use crate::index::Document;
pub const DOCUMENT: Document = Document { id: "x", title: "", chapters: &[] };
