//! The number of messages of a layout, and the elements that a star relays.
//!
//! Sources: Becker 2010, section 5.5.1 (steps), section 6.1.1 and Tables 6.1 and 6.2 (star topology).

use super::{Layout, Metrics, Part, between};
use crate::error::{Error, Result};
use crate::geometry::{Rect, Span, SpanSet};

/// The number of messages of a product: for each pair of processors, the rectangles of A and of B that one
/// owns and the other needs, with adjacent rectangles merged.
///
/// A straight line takes 2, a square in the corner 4, on an edge 5, in the middle 6. O(p^2 + p R log R).
pub fn message_steps(layout: &Layout) -> u64 {
    let (rows, cols) = (layout.rows_by_owner(), layout.cols_by_owner());
    let p = layout.processors();
    let (a, b) = (layout.parts_of_a(), layout.parts_of_b());
    // B is transposed, so that the lines needed are rows for both.
    let b: Vec<Part> = b.into_iter().map(|q| Part { owner: q.owner, rows: q.cols, cols: q.rows }).collect();
    let mut steps = 0;
    for to in 0..p {
        for (parts, needed) in [(&a, &rows[to]), (&b, &cols[to])] {
            let mut pieces: Vec<Vec<Rect>> = vec![Vec::new(); p];
            for part in parts.iter().filter(|part| part.owner.0 != to) {
                let cut = needed.intersect(part.rows).map(|lines| Rect::new(lines, part.cols));
                pieces[part.owner.0].extend(cut);
            }
            steps += pieces.iter().map(|own| merged(own).len() as u64).sum::<u64>();
        }
    }
    steps
}

/// A region of disjoint pieces as rectangles, cut only between rows with different columns.
pub(crate) fn merged(pieces: &[Rect]) -> Vec<Rect> {
    let mut found: Vec<(Span, SpanSet)> = Vec::new();
    for band in between(pieces.iter().map(|r| r.rows)) {
        let cols = SpanSet::union(pieces.iter().filter(|r| r.rows.contains(band)).map(|r| r.cols));
        match found.last_mut() {
            Some((rows, same)) if *same == cols => rows.end = band.end,
            _ => found.push((band, cols)),
        }
    }
    let rects = |(rows, cols): &(Span, SpanSet)| -> Vec<Rect> {
        cols.spans().iter().map(|&cols| Rect::new(*rows, cols)).collect()
    };
    found.iter().flat_map(rects).collect()
}

/// The number of elements that cross the links of a star. Elements between two processors other than `centre`
/// count twice: they are sent to the centre, and from there to the receiver.
///
/// # Errors
/// No such processor, or more than 1024 processors, for which there is no table of directions: exit code 2.
pub fn star_volume(layout: &Layout, centre: usize) -> Result<u64> {
    let wrong = |what: String, remedy| Err(Error::input("star", what, remedy));
    if centre >= layout.processors() {
        let what = format!("processor {centre} does not exist (there are {})", layout.processors());
        return wrong(what, "use one of the plan's processors as the centre");
    }
    let Some(table) = Metrics::of_layout(layout, 1.0).volume_matrix else {
        let what = format!("{} processors are too many to count relayed elements", layout.processors());
        return wrong(what, "use at most 1024 processors");
    };
    Ok(relayed(&table, Some(centre)).iter().flatten().sum())
}

/// The elements on each link, as `[receiver][sender]`. On a star with this centre, elements between two
/// others load both their links. Without a centre the result is `table`.
pub(crate) fn relayed(table: &[Vec<u64>], centre: Option<usize>) -> Vec<Vec<u64>> {
    let Some(centre) = centre else {
        return table.to_vec();
    };
    let mut links = vec![vec![0; table.len()]; table.len()];
    for (to, line) in table.iter().enumerate() {
        for (from, &moved) in line.iter().enumerate().filter(|(_, moved)| **moved > 0) {
            if from != centre {
                links[centre][from] += moved;
            }
            if to != centre {
                links[to][centre] += moved;
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Shape;
    use crate::plan::shapes::{
        BlockRectangle, LayoutMethod, SquareCorner, SquareEdge, SquareMiddle, StraightLine,
    };

    fn cube(n: u64) -> Shape {
        Shape::new(n, n, n, "test").unwrap()
    }

    /// Section 5.5.1 for two processors, Figures 6.4 and 6.5 for three.
    #[test]
    fn steps_of_the_thesis() {
        let steps = |method: &dyn LayoutMethod, weights: &[f64]| {
            message_steps(&method.layout(cube(100), weights).unwrap())
        };
        assert_eq!(steps(&StraightLine, &[1.0]), 0);
        assert_eq!(steps(&StraightLine, &[8.0, 1.0]), 2);
        assert_eq!(steps(&SquareCorner, &[8.0, 1.0]), 4);
        assert_eq!(steps(&SquareEdge, &[8.0, 1.0]), 5);
        assert_eq!(steps(&SquareMiddle, &[8.0, 1.0]), 6);
        assert_eq!(steps(&BlockRectangle, &[8.0, 2.0, 1.0]), 6);
        assert_eq!(steps(&SquareCorner, &[8.0, 2.0, 1.0]), 8);
        assert_eq!(steps(&SquareCorner, &[40.0, 2.0, 1.0, 1.0]), 4 + 6 + 4);
    }

    /// Table 6.1, in full: a and b are the parts of A that the strip's owner sends to the other two.
    #[test]
    fn straight_line_on_a_star() {
        let n = 100;
        let layout = StraightLine.layout(cube(n), &[5.0, 3.0, 2.0]).unwrap();
        let (s2, s3) = (3000, 2000);
        let (a, b) = (60 * 50, 40 * 50);
        let volume = |centre| star_volume(&layout, centre).unwrap();
        assert_eq!(volume(0), n * n + 2 * s2 + 2 * s3);
        assert_eq!(volume(1), a + 2 * b + s2 + 2 * s3 + s2 + s3);
        assert_eq!(volume(2), 2 * a + b + 2 * s2 + s3 + s2 + s3);
        assert!(volume(1) > n * n + s2 + 2 * s3 && volume(2) > n * n + 2 * s2 + s3);
        assert_eq!(star_volume(&layout, 3).unwrap_err().exit_code(), 2);
    }

    /// Table 6.2. The source exchanges its lines for centres 2 and 3: with cluster 2 at the centre, the
    /// traffic between 1 and 3 is sent twice (as in Table 6.1).
    #[test]
    fn square_corner_on_a_star() {
        let n = 100;
        let layout = SquareCorner.layout(cube(n), &[75.0, 16.0, 9.0]).unwrap();
        let (side2, side3) = (40, 30);
        let volume = |centre| star_volume(&layout, centre).unwrap();
        assert_eq!(volume(0), 2 * n * (side2 + side3));
        assert_eq!(volume(1), 2 * n * (side2 + 2 * side3));
        assert_eq!(volume(2), 2 * n * (2 * side2 + side3));
    }
}
