//! Hierarchical layouts: the matrix is divided among clusters, then each part among the members of its
//! cluster.
//!
//! Source: Becker 2010, sections 1.2, 5.9 and 9.1 (a partition at the top level, any method below). Parts of
//! several rectangles: McNaughton's wrap-around rule for scheduling (1959), with rectangles in place of
//! machines.

use super::{LayoutMethod, LeastCost, Method, MethodOptions};
use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span, SpanSet};
use crate::plan::shares::proportional;
use crate::plan::{Hierarchy, Layout, Member, Part, Shape, merged};

/// Divides the matrix among the members of the top level in proportion to the sums of their weights, then the
/// part of each member among its own members, and so on.
///
/// `methods` names one method per level, from the top; the last one is used for all levels below. `None`
/// selects the best method for the options' objective, as [`LeastCost`] does. Up to rounding at
/// each level, the shares equal those of a division without levels.
///
/// A part that is one rectangle is laid out by the method of the level. A part of R rectangles, as around a
/// square corner, is filled one rectangle after the other: a member that does not fit into a rectangle
/// continues in the next one, and the method lays out the members of each rectangle. Thus p members have at
/// most p + R - 1 pieces, and rounding errors of one rectangle are corrected in the next. The cheapest of
/// eight ways is taken: cuts along rows or columns, both directions, and both orders of the members.
///
/// Time: up to 8 times that of the methods at each level, and three times that for `None`.
///
/// # Errors
/// More methods than levels, or column-groups, whose columns name processors (exit code 2); a method that
/// does not support the number of members (exit code 1).
///
/// # Example
/// ```
/// use apportion_plan::plan::shapes::{Hierarchical, LayoutMethod, Method, MethodOptions};
/// use apportion_plan::plan::{Hierarchy, Shape};
/// let paths = ["orsay", "orsay", "rennes", "rennes"].map(String::from);
/// let methods = [Some(Method::SquareCorner), Some(Method::Columns)];
/// let shape = Shape::new(1000, 1000, 1000, "example")?;
/// let (hierarchy, options) = (&Hierarchy::of_paths(&paths), &MethodOptions::default());
/// let levels = Hierarchical { hierarchy, methods: &methods, options };
/// let layout = levels.layout(shape, &[45.0, 45.0, 5.0, 5.0])?;
/// // Rennes has a 316 x 316 square in the corner: two halves.
/// assert_eq!(layout.shares()[2..], [49_928, 49_928]);
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Hierarchical<'a> {
    /// The tree of clusters.
    pub hierarchy: &'a Hierarchy,
    /// The method of each level, from the top.
    pub methods: &'a [Option<Method>],
    /// The options of the methods.
    pub options: &'a MethodOptions,
}

impl LayoutMethod for Hierarchical<'_> {
    fn layout(&self, shape: Shape, weights: &[f64]) -> Result<Layout> {
        let Self { hierarchy, methods, options } = *self;
        let levels = hierarchy.levels();
        if methods.is_empty() || methods.len() > levels {
            return Err(Error::input(
                "`levels`",
                format!("names {} methods, but the platform's cluster paths make {levels}", methods.len()),
                "name at most one method per level, or give the processors clusters in the platform (\"site/node\")",
            ));
        }
        if methods.contains(&Some(Method::ColumnGroups)) {
            return Err(Error::input(
                "`levels`",
                "column-groups places named processors, not clusters",
                "use columns, or `method = column-groups` without levels",
            ));
        }
        let division = Division { shape, weights, methods, options };
        let mut parts = Vec::new();
        let whole = Rect::new(Span::new(0, shape.m), Span::new(0, shape.n));
        division.divide(vec![whole], hierarchy, 0, &mut parts)?;
        Layout::new(shape, weights.len(), parts)
    }
}

/// The inputs that all levels share.
struct Division<'a> {
    shape: Shape,
    weights: &'a [f64],
    methods: &'a [Option<Method>],
    options: &'a MethodOptions,
}

impl Division<'_> {
    /// Divides a part among a hierarchy's members and theirs.
    fn divide(
        &self,
        part: Vec<Rect>,
        hierarchy: &Hierarchy,
        depth: usize,
        out: &mut Vec<Part>,
    ) -> Result<()> {
        let weight = |m: &Member| m.ranks().iter().map(|&rank| self.weights[rank]).sum::<f64>();
        let members: Vec<(&Member, f64)> =
            hierarchy.members.iter().map(|m| (m, weight(m))).filter(|(_, w)| *w > 0.0).collect();
        let regions = match (&part[..], &members[..]) {
            ([], _) | (_, []) => return Ok(()),
            (_, [_]) => vec![part],
            ([rect], _) => self.within(*rect, &members, depth, self.method(depth))?,
            _ => self.wrap(&part, &members, depth)?,
        };
        for ((member, _), region) in members.into_iter().zip(regions) {
            match member {
                Member::Processor(rank) => {
                    out.extend(region.into_iter().map(|rect| Part::new(Rank(*rank), rect)));
                }
                Member::Cluster(_, inner) => self.divide(region, inner, depth + 1, out)?,
            }
        }
        Ok(())
    }

    /// A level's method; `None` is auto.
    fn method(&self, depth: usize) -> Option<Method> {
        self.methods[depth.min(self.methods.len() - 1)]
    }

    /// The members' rectangles within one rectangle, by a method at a level.
    fn within(
        &self,
        rect: Rect,
        members: &[(&Member, f64)],
        depth: usize,
        method: Option<Method>,
    ) -> Result<Vec<Vec<Rect>>> {
        let weights: Vec<f64> = members.iter().map(|(_, w)| *w).collect();
        let shape = Shape { m: rect.rows.len(), k: self.shape.k, n: rect.cols.len() };
        let layout = match method {
            None => {
                let (objective, whole) = (self.options.objective, Some(self.shape));
                LeastCost { objective, whole }.layout(shape, &weights)?
            }
            Some(method) => {
                let holds = |centre| members.iter().position(|(m, _)| m.ranks().contains(&centre));
                let centre = self.options.centre.and_then(holds);
                let options = MethodOptions { centre, whole: Some(self.shape), ..self.options.clone() };
                method.layout(shape, &weights, &options).map_err(|e| at_level(e, depth, members))?
            }
        };
        let moved = |span: Span, by: Span| Span::new(by.start + span.start, by.start + span.end);
        let place = |r: Rect| Rect::new(moved(r.rows, rect.rows), moved(r.cols, rect.cols));
        Ok(layout.rects_by_owner().into_iter().map(|own| own.into_iter().map(place).collect()).collect())
    }

    /// The members' rectangles within several: the cheapest way to fill one after the other.
    fn wrap(&self, part: &[Rect], members: &[(&Member, f64)], depth: usize) -> Result<Vec<Vec<Rect>>> {
        let mut descending: Vec<usize> = (0..members.len()).collect();
        descending.sort_by(|&i, &j| members[j].1.total_cmp(&members[i].1).then(i.cmp(&j)));
        let ascending: Vec<usize> = descending.iter().rev().copied().collect();
        let mut best: Option<(u64, Vec<Vec<Rect>>)> = None;
        let mut refusal = None;
        // The smallest volume in each rectangle need not give the smallest total: auto also tries strips.
        let methods = match self.method(depth) {
            None => vec![None, Some(Method::Rows), Some(Method::Columns)],
            named => vec![named],
        };
        for (along_rows, method) in
            [true, false].into_iter().flat_map(|a| methods.iter().map(move |&m| (a, m)))
        {
            let forward = bands(part, along_rows);
            let backward: Vec<Rect> = forward.iter().rev().copied().collect();
            for rects in [&forward, &backward] {
                for order in [&descending, &ascending] {
                    match self.fill(rects, members, order, depth, method) {
                        Err(error) => refusal = Some(error),
                        Ok(regions) => {
                            let cost = regions.iter().map(|region| touched_lines(region)).sum();
                            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                                best = Some((cost, regions));
                            }
                        }
                    }
                }
            }
        }
        match (best, refusal) {
            (Some((_, regions)), _) => Ok(regions),
            (None, Some(error)) => Err(error),
            (None, None) => unreachable!("at least eight ways were tried"),
        }
    }

    /// Fills one rectangle after the other, with the members in this order; a member that does not fit
    /// continues in the next rectangle.
    fn fill(
        &self,
        rects: &[Rect],
        members: &[(&Member, f64)],
        order: &[usize],
        depth: usize,
        method: Option<Method>,
    ) -> Result<Vec<Vec<Rect>>> {
        let area = rects.iter().map(|r| r.area()).sum();
        let weights: Vec<f64> = members.iter().map(|(_, w)| *w).collect();
        let mut left = proportional(area, &weights);
        let mut regions = vec![Vec::new(); members.len()];
        let mut waiting = order;
        for (i, &rect) in rects.iter().enumerate() {
            let last = i + 1 == rects.len();
            let mut room = rect.area();
            let mut pieces: Vec<(usize, u64)> = Vec::new();
            while let Some((&who, rest)) = waiting.split_first()
                && (room > 0 || last)
            {
                // The last rectangle takes everything that is left, however rounding has changed it.
                let piece = if last { left[who] } else { left[who].min(room) };
                if piece > 0 {
                    pieces.push((who, piece));
                    room = room.saturating_sub(piece);
                }
                if !last && piece < left[who] {
                    break;
                }
                waiting = rest;
            }
            if pieces.is_empty() {
                // After rounding, all members are already full: the last in order takes the remainder.
                pieces.push((order[order.len() - 1], 1));
            }
            let among: Vec<(&Member, f64)> =
                pieces.iter().map(|&(who, piece)| (members[who].0, piece as f64)).collect();
            let laid =
                if among.len() == 1 { vec![vec![rect]] } else { self.within(rect, &among, depth, method)? };
            for ((who, _), own) in pieces.into_iter().zip(laid) {
                let got: u64 = own.iter().map(|r| r.area()).sum();
                left[who] = left[who].saturating_sub(got);
                regions[who].extend(own);
            }
        }
        Ok(regions)
    }
}

/// A region of disjoint rectangles cut along rows only where its columns change (or the other way round).
fn bands(region: &[Rect], along_rows: bool) -> Vec<Rect> {
    let turn = |r: Rect| if along_rows { r } else { Rect::new(r.cols, r.rows) };
    let region: Vec<Rect> = region.iter().map(|&r| turn(r)).collect();
    merged(&region).into_iter().map(turn).collect()
}

/// Rows and columns that a region touches.
fn touched_lines(region: &[Rect]) -> u64 {
    SpanSet::union(region.iter().map(|r| r.rows)).len() + SpanSet::union(region.iter().map(|r| r.cols)).len()
}

/// The same error, with the level and clusters for which the method failed.
fn at_level(error: Error, depth: usize, members: &[(&Member, f64)]) -> Error {
    let Error::Infeasible { what, .. } = error else {
        return error;
    };
    let clusters = members.iter().filter_map(|(m, _)| match m {
        Member::Cluster(name, _) => Some(name.as_str()),
        Member::Processor(_) => None,
    });
    let clusters: Vec<&str> = clusters.collect();
    let whom = if clusters.is_empty() { String::new() } else { format!(" among {}", clusters.join(", ")) };
    Error::infeasible(
        format!("level {} of the hierarchy{whom}: {what}", depth + 1),
        "use columns or auto at that level, which support any number",
    )
}

#[cfg(test)]
mod tests;
