//! Layouts as files of other tools.

use super::Export;
use crate::error::{Error, Result};
use crate::plan::Layout;
use std::collections::BTreeMap;

/// FuPerMod's `.2dist` file of a column-based layout: number of processors, size of the matrix, block; then a
/// line for each processor, separated by tabs: host, number among the processors of the host, its place in
/// the arrangement (row, column), and its rectangle (x, y, width, height), as libtaulop reads it. The last
/// three columns, which that reader skips, hold the area, its fraction, and the rank. The host of a processor
/// is its name up to the first colon.
///
/// # Errors
/// A matrix that is not square, a processor without exactly one rectangle, or rectangles that do not form
/// columns: exit code 1.
pub(super) fn fupermod(names: &[String], layout: &Layout) -> Result<Export> {
    layout.refuse_boxes("a .2dist file")?;
    let shape = layout.shape();
    let refuse = |what: &str, remedy: &str| Err(Error::infeasible(what.to_owned(), remedy));
    if shape.m != shape.n {
        return refuse("a .2dist file describes a square matrix", "use --shape NxN, or another format");
    }
    let mut rects = Vec::new();
    for (rank, owned) in layout.rects_by_owner().into_iter().enumerate() {
        let [rect] = owned[..] else {
            let what = format!("processor \"{}\" has {} rectangles, not one", names[rank], owned.len());
            return Err(Error::infeasible(what, "use --method columns, or another format"));
        };
        rects.push(rect);
    }
    // Columns of the arrangement, by their first index.
    let mut columns: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
    for (rank, rect) in rects.iter().enumerate() {
        columns.entry((rect.cols.start, rect.cols.end)).or_default().push(rank);
    }
    let ends: Vec<(u64, u64)> = columns.keys().copied().collect();
    if ends.windows(2).any(|w| w[0].1 != w[1].0) {
        return refuse("the rectangles do not form columns", "use --method columns, or another format");
    }
    let mut places = vec![(0, 0); rects.len()];
    for (column, members) in columns.values_mut().enumerate() {
        members.sort_by_key(|&rank| rects[rank].rows.start);
        for (row, &rank) in members.iter().enumerate() {
            places[rank] = (row, column);
        }
    }
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut text = format!(
        "#size {}\n#N {}\n#b 1\n#host\trank\ti\tj\tx\ty\tw\th\tarea\tfraction\tglobal\n",
        rects.len(),
        shape.m
    );
    for (rank, rect) in rects.iter().enumerate() {
        let host = names[rank].split(':').next().unwrap_or_default();
        if host.contains(['\t', '\n']) || host.is_empty() {
            let what = format!("\"{}\" cannot be a field of a .2dist file", names[rank].escape_debug());
            return Err(Error::input("processor", what, "rename it in the platform file"));
        }
        let number = seen.entry(host).or_insert(0);
        let (row, column) = places[rank];
        let (width, height) = (rect.cols.len(), rect.rows.len());
        text += &format!(
            "{host}\t{number}\t{row}\t{column}\t{}\t{}\t{width}\t{height}\t{}\t{}\t{rank}\n",
            rect.cols.start,
            rect.rows.start,
            rect.area(),
            rect.area() as f64 / shape.elements() as f64,
        );
        *number += 1;
    }
    Ok(Export { text, warnings: Vec::new() })
}
