//! Aligned text.

use comfy_table::{CellAlignment, Table, presets};

/// A table with a header; the first column is left-aligned, the others right-aligned.
pub fn table<R: IntoIterator<Item = Vec<String>>>(header: &[&str], rows: R) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table.add_rows(rows);
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        column.set_cell_alignment(if i == 0 { CellAlignment::Left } else { CellAlignment::Right });
    }
    trimmed(&table.to_string())
}

/// Names and values in two aligned columns.
pub fn pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    pairs.iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect()
}

/// Without trailing blanks; ends with a line break.
fn trimmed(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align() {
        let text = table(&["name", "x"], [vec!["a".into(), "1".into()], vec!["long".into(), "100".into()]]);
        assert_eq!(text, "name    x\na       1\nlong  100\n");
        assert_eq!(pairs(&[("a", "1".into()), ("bcd", "2".into())]), "a    1\nbcd  2\n");
    }
}
