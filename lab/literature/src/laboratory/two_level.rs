//! A product on two levels: between clusters every element crosses once, and is then passed on within the
//! cluster (Becker 2010, sections 5.7 and 5.9: "allowing individual clusters to handle their computations in
//! any manner locally").
//!
//! What a cluster needs of another one is divided among the processors that need it; each fetches its part
//! and passes it on to the others. All communication comes first, then all computation.

use apportion::error::{Error, Result};
use apportion::geometry::{Rank, Rect, Span};
use apportion::kernels::{Kernel, View, ViewMut};
use apportion::plan::{Layout, Part};
use apportion::schedule::{Application, Executable, Message, Operand, OperandPiece, Step, StepOf, Update};
use std::collections::BTreeMap;

/// Messages within a cluster and between clusters; then those that pass data on.
const FIRST: u64 = 0;
const ONWARD: u64 = 1;

/// Pieces by sender, receiver and stage.
type Parcels = BTreeMap<(usize, usize, u64), Vec<OperandPiece>>;

/// A product of two matrices by a layout on clusters.
pub struct TwoLevel {
    layout: Layout,
    parcels: Parcels,
    a: Vec<f64>,
    b: Vec<f64>,
}

impl TwoLevel {
    /// `clusters` has the cluster of each processor; `a` and `b` are N x N by rows.
    pub fn new(layout: Layout, clusters: &[String], a: Vec<f64>, b: Vec<f64>) -> Self {
        let (rows, cols) = (layout.rows_by_owner(), layout.cols_by_owner());
        let mut parcels = Parcels::new();
        for (operand, parts, needed) in
            [(Operand::A, layout.parts_of_a(), &rows), (Operand::B, layout.parts_of_b(), &cols)]
        {
            for part in parts {
                let lines = if operand == Operand::A { part.rows } else { part.cols };
                for (piece, receivers) in segments(lines, needed) {
                    exchange(&mut parcels, (operand, &part, piece), &receivers, clusters);
                }
            }
        }
        Self { layout, parcels, a, b }
    }

    fn n(&self) -> usize {
        self.layout.shape().n as usize
    }

    /// The data of an operand, row by row.
    fn matrix<'a>(operand: Operand, a: &'a mut [f64], b: &'a mut [f64]) -> &'a mut [f64] {
        if operand == Operand::A { a } else { b }
    }

    /// Compares the blocks of C with the serial product.
    ///
    /// # Errors
    /// An element that differs by more than rounding.
    pub fn verify(&self, locals: &[Local]) -> Result<()> {
        let n = self.n();
        let mut serial = vec![0.0; n * n];
        let kernel = Kernel::plus_times();
        kernel.update(
            View::dense(&self.a, n, n),
            View::dense(&self.b, n, n),
            ViewMut::dense(&mut serial, n, n),
        );
        for part in self.layout.parts() {
            for row in part.rows.start..part.rows.end {
                for col in part.cols.start..part.cols.end {
                    let at = row as usize * n + col as usize;
                    let found = locals[part.owner.0].c[at];
                    let off = (found - serial[at]).abs();
                    // Data that never arrived are NaN.
                    if off.is_nan() || off > 1e-9 {
                        let what = format!("C[{row}, {col}] is {found}, not {}", serial[at]);
                        return Err(Error::WrongResult { what });
                    }
                }
            }
        }
        Ok(())
    }
}

/// Lines cut where the set of processors that need them changes, each with that set.
fn segments(lines: Span, needed: &[apportion::geometry::SpanSet]) -> Vec<(Span, Vec<usize>)> {
    let mut cuts = vec![lines.start, lines.end];
    for set in needed {
        cuts.extend(set.intersect(lines).flat_map(|span| [span.start, span.end]));
    }
    cuts.sort_unstable();
    cuts.dedup();
    let needs = |span: Span| (0..needed.len()).filter(|&i| needed[i].count_in(span) > 0).collect();
    cuts.windows(2).map(|w| Span::new(w[0], w[1])).map(|span| (span, needs(span))).collect()
}

/// Plans the way of one segment from its owner to all receivers.
fn exchange(
    parcels: &mut Parcels,
    (operand, part, lines): (Operand, &Part, Span),
    receivers: &[usize],
    clusters: &[String],
) {
    let owner = part.owner.0;
    let piece = |lines: Span| {
        let rect = match operand {
            Operand::A => Rect::new(lines, part.cols),
            Operand::B => Rect::new(part.rows, lines),
            Operand::C => unreachable!("only operands are exchanged: these layouts have no partial sums"),
        };
        OperandPiece { operand, rect }
    };
    let mut send = |from: usize, to: usize, stage: u64, lines: Span| {
        if from != to && !lines.is_empty() {
            parcels.entry((from, to, stage)).or_default().push(piece(lines));
        }
    };
    let mut far: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for &to in receivers {
        if clusters[to] == clusters[owner] {
            send(owner, to, FIRST, lines);
        } else {
            far.entry(&clusters[to]).or_default().push(to);
        }
    }
    for group in far.values() {
        for (i, &port) in group.iter().enumerate() {
            let cut = |i: usize| lines.start + lines.len() * i as u64 / group.len() as u64;
            let own = Span::new(cut(i), cut(i + 1));
            send(owner, port, FIRST, own);
            group.iter().for_each(|&to| send(port, to, ONWARD, own));
        }
    }
}

impl Application for TwoLevel {
    type Piece = OperandPiece;
    type Work = Update;

    fn processors(&self) -> usize {
        self.layout.processors()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        let message = |(&(from, to, tag), pieces): (&(usize, usize, u64), &Vec<OperandPiece>)| Message {
            from: Rank(from),
            to: Rank(to),
            tag,
            pieces: pieces.clone(),
        };
        let mut steps: Vec<StepOf<Self>> = Vec::new();
        let received = || self.parcels.iter().filter(|(key, _)| key.1 == rank.0);
        steps.extend(received().map(|parcel| Step::PostReceive(message(parcel))));
        for stage in [FIRST, ONWARD] {
            let sent = self.parcels.iter().filter(|(key, _)| key.0 == rank.0 && key.2 == stage);
            steps.extend(sent.map(|parcel| Step::Send(message(parcel))));
            let arriving = received().filter(|(key, _)| key.2 == stage);
            steps.extend(arriving.map(|(key, _)| Step::WaitReceive { from: Rank(key.0), tag: stage }));
        }
        steps.push(Step::WaitSends);
        let inner = Span::new(0, self.layout.shape().k);
        let own = &self.layout.rects_by_owner()[rank.0];
        steps.extend(own.iter().map(|&rect| Step::Compute(Update { rect, inner })));
        Box::new(steps.into_iter())
    }

    fn share(&self, rank: Rank) -> f64 {
        self.layout.shares()[rank.0] as f64
    }
}

/// One processor's matrices; what it neither owns nor has received is NaN.
pub struct Local {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

/// Ranges of the rows of a rectangle in a matrix of n columns.
fn lines(rect: Rect, n: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (rect.rows.start..rect.rows.end).map(move |row| {
        row as usize * n + rect.cols.start as usize..row as usize * n + rect.cols.end as usize
    })
}

impl Executable for TwoLevel {
    type Element = f64;
    type Local<'a> = Local;

    fn hold(&self, rank: Rank) -> Local {
        let n = self.n();
        let mut local = Local { a: vec![f64::NAN; n * n], b: vec![f64::NAN; n * n], c: vec![0.0; n * n] };
        for (parts, from, to) in [
            (self.layout.parts_of_a(), &self.a, &mut local.a),
            (self.layout.parts_of_b(), &self.b, &mut local.b),
        ] {
            for part in parts.iter().filter(|part| part.owner == rank) {
                lines(Rect::new(part.rows, part.cols), n)
                    .for_each(|range| to[range.clone()].copy_from_slice(&from[range]));
            }
        }
        local
    }

    fn pack(&self, local: &mut Local, piece: &OperandPiece, mut out: &mut [f64]) {
        let from = Self::matrix(piece.operand, &mut local.a, &mut local.b);
        for range in lines(piece.rect, self.n()) {
            let (here, rest) = out.split_at_mut(range.len());
            here.copy_from_slice(&from[range]);
            out = rest;
        }
    }

    fn unpack(&self, local: &mut Local, piece: &OperandPiece, mut elements: &[f64]) {
        let to = Self::matrix(piece.operand, &mut local.a, &mut local.b);
        for range in lines(piece.rect, self.n()) {
            let (here, rest) = elements.split_at(range.len());
            to[range].copy_from_slice(here);
            elements = rest;
        }
    }

    fn compute(&self, local: &mut Local, update: &Update, _threads: usize) -> Result<f64> {
        let n = self.n();
        let (rect, inner) = (update.rect, update.inner.len() as usize);
        let [row, col] = [rect.rows.start, rect.cols.start].map(|x| x as usize);
        let [high, wide] = [rect.rows.len(), rect.cols.len()].map(|x| x as usize);
        let a = View::dense(&local.a, n, n).tile(row, 0, high, inner);
        let b = View::dense(&local.b, n, n).tile(0, col, inner, wide);
        Kernel::plus_times().update(a, b, ViewMut::dense(&mut local.c, n, n).tile(row, col, high, wide));
        Ok(0.0)
    }

    fn peak_bytes(&self, local: &Local) -> u64 {
        8 * (local.a.len() + local.b.len() + local.c.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::plan::shapes::{Columns, LayoutMethod};
    use apportion::plan::{Metrics, Shape};

    /// Each element that a cluster needs of the other crosses once.
    #[test]
    fn nothing_crosses_twice() {
        let shape = Shape::new(60, 60, 60, "test").unwrap();
        let layout = Columns::default().layout(shape, &[3.0, 3.0, 3.0, 1.0, 1.0, 1.0]).unwrap();
        let clusters: Vec<String> = ["one", "one", "one", "two", "two", "two"].map(str::to_owned).to_vec();
        let of = TwoLevel::new(layout.clone(), &clusters, vec![0.0; 3600], vec![0.0; 3600]);
        let crossing: u64 = of
            .parcels
            .iter()
            .filter(|(key, _)| clusters[key.0] != clusters[key.1])
            .flat_map(|(_, pieces)| pieces)
            .map(apportion::schedule::Piece::elements)
            .sum();
        // The same layout with each cluster's parts owned by one processor: its volume is what must cross.
        let merged = layout.parts().iter().map(|part| Part { owner: Rank(part.owner.0 / 3), ..*part });
        let merged = Layout::new(shape, 2, merged).unwrap();
        assert_eq!(Some(crossing), Metrics::of_layout(&merged, 1.0).volume);
    }
}
