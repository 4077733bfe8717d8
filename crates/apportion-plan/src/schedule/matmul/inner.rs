//! Layouts that cut the inner dimension: every processor computes partial sums of its boxes, and partial sums
//! travel to the owners of C.
//!
//! Each processor goes through its own inner indices in the same number of turns, so that processors with
//! boxes of unequal depth keep pace and no turn has more inner indices than a pivot block. In each turn the
//! owners of A and B send what the receivers' boxes need in *their* turn. The bulk flow has one turn. (A flow
//! by common pivot blocks would let a processor wait for one that is still at earlier inner indices.)
//!
//! Then the partial sums of an element travel along the chain of its processors, from the highest inner
//! indices to the lowest, which are the owner's. Each adds its own sum to the one that it receives, so that
//! the order of additions is fixed. A chain moves as many elements as sending every sum to the owner, but no
//! processor receives an element more than once. Chains are cut into pieces: while one piece is added at one
//! processor, the next travels to the processor before.

use crate::geometry::{Rank, Rect, Span};
use crate::plan::{Cell, Cuboid, Layout, Segment, between, cells, merged, segments};
use crate::schedule::matmul::pieces::cast_any;
use crate::schedule::matmul::{
    MatmulMessage, MatmulSchedule, MatmulStep, Operand, OperandPiece, Step, Update,
};
use crate::schedule::{Flow, ScheduleOptions};
use std::collections::VecDeque;

/// Smaller pieces of partial sums cost more in latency than they save by overlap.
const SMALL_PIECE: u64 = 2048;

/// What a layout with boxes adds to a schedule. All lists are by rank.
#[derive(Debug, Clone)]
pub(crate) struct Boxes {
    segments: Vec<Vec<Segment>>,
    /// Disjoint rectangles of C that a processor computes; each is in a part that it owns, or in none.
    tiles: Vec<Vec<Rect>>,
    /// Number of inner indices.
    lengths: Vec<u64>,
    /// Speeds are evaluated at these sizes.
    sizes: Vec<u64>,
    /// Elements of C with several processors.
    chains: Vec<Chain>,
    /// The chains that a processor is in, with its place.
    places: Vec<Vec<(usize, usize)>>,
    /// Number of turns in which the operands travel.
    turns: u64,
    receivers: Vec<Vec<Rank>>,
    senders: Vec<Vec<Rank>>,
}

/// A cell with several processors, cut into pieces of some rows.
#[derive(Debug, Clone)]
struct Chain {
    cell: Cell,
    /// Rows of a piece; the last has fewer.
    height: u64,
    /// Tag of the first piece's messages.
    tag: u64,
}

impl Chain {
    /// Pieces of at least [`SMALL_PIECE`] elements, at most two for each processor of the chain.
    fn height_of(cell: &Cell) -> u64 {
        let least = SMALL_PIECE.div_ceil(cell.rect.cols.len());
        least.max(cell.rect.rows.len().div_ceil(2 * cell.chain.len() as u64))
    }

    /// The pieces, from top to bottom.
    fn pieces(&self) -> impl Iterator<Item = Rect> + '_ {
        self.cell.rect.rows.blocks(self.height).map(|rows| Rect::new(rows, self.cell.rect.cols))
    }
}

impl Boxes {
    /// Analyses a layout; `None` if it does not cut the inner dimension. `order` has a block of at least 1.
    pub(crate) fn of(layout: &Layout, order: ScheduleOptions) -> Option<Box<Self>> {
        let boxes = layout.boxes()?;
        let p = layout.processors();
        let own = |rank: usize| boxes.iter().filter(move |one| one.owner.0 == rank);
        let segments: Vec<Vec<Segment>> = (0..p).map(|rank| segments(own(rank))).collect();
        let lengths: Vec<u64> =
            segments.iter().map(|own| own.iter().map(|segment| segment.inner.len()).sum()).collect();
        let longest = lengths.iter().copied().max().unwrap_or(1);
        let turns = if order.flow == Flow::Bulk { 1 } else { longest.div_ceil(order.block) };
        let mut tag = turns;
        let chain = |cell: Cell| {
            let chain = Chain { height: Chain::height_of(&cell), tag, cell };
            tag += chain.cell.rect.rows.len().div_ceil(chain.height);
            chain
        };
        let chains: Vec<Chain> =
            cells(boxes).into_iter().filter(|cell| cell.chain.len() > 1).map(chain).collect();
        let mut places = vec![Vec::new(); p];
        for (number, chain) in chains.iter().enumerate() {
            for (place, rank) in chain.cell.chain.iter().enumerate() {
                places[rank.0].push((number, place));
            }
        }
        let (receivers, senders) = talkers(layout, &segments);
        Some(Box::new(Self {
            tiles: (0..p).map(|rank| tiles(own(rank))).collect(),
            sizes: layout.sizes(),
            segments,
            lengths,
            chains,
            places,
            turns,
            receivers,
            senders,
        }))
    }

    /// The rectangles of C that a processor computes.
    pub(crate) fn tiles(&self, rank: Rank) -> &[Rect] {
        &self.tiles[rank.0]
    }

    /// The segments of a processor.
    pub(crate) fn segments(&self, rank: Rank) -> &[Segment] {
        &self.segments[rank.0]
    }

    /// The size at which a processor's speed is evaluated.
    pub(crate) fn size(&self, rank: Rank) -> u64 {
        self.sizes[rank.0]
    }

    /// Number of multiply-adds of a processor.
    pub(crate) fn work(&self, rank: Rank) -> f64 {
        let area = |faces: &[Rect]| faces.iter().map(|face| face.area() as f64).sum::<f64>();
        self.segments[rank.0].iter().map(|s| area(&s.faces) * s.inner.len() as f64).sum()
    }

    /// An upper bound of the number of steps of all processors.
    pub(crate) fn steps(&self, block: u64) -> u128 {
        let of = |rank: usize| {
            // A send to each receiver, a post and a wait for each sender, and a part of each segment to free.
            let talkers =
                self.receivers[rank].len() + 2 * self.senders[rank].len() + self.segments[rank].len();
            let blocks = u128::from(self.turns.max(self.lengths[rank].div_ceil(block)));
            let hops: u64 =
                self.places[rank].iter().map(|(chain, _)| self.chains[*chain].cell.chain.len() as u64).sum();
            // Each cell's sum travels in up to twice as many pieces as there are processors in its chain,
            // each with a post, a wait and a send.
            let updates = (self.tiles[rank].len() * self.segments[rank].len().max(1)) as u128;
            blocks * (updates + talkers as u128) + 6 * u128::from(hops)
        };
        (0..self.tiles.len()).map(of).sum()
    }

    /// The processor's inner indices in a turn, numbered from 0 over all its segments.
    fn positions(&self, rank: Rank, turn: u64) -> Span {
        let at =
            |turn: u64| (u128::from(self.lengths[rank.0]) * u128::from(turn) / u128::from(self.turns)) as u64;
        Span::new(at(turn), at(turn + 1))
    }

    /// The inner indices of a processor in a turn, each with its segment.
    fn turn(&self, rank: Rank, turn: u64) -> Vec<(&Segment, Span)> {
        let (wanted, mut before) = (self.positions(rank, turn), 0);
        let mut found = Vec::new();
        for segment in &self.segments[rank.0] {
            let here = Span::new(before, before + segment.inner.len());
            found.push((segment, shifted(wanted.intersect(here), before, segment.inner.start)));
            before = here.end;
        }
        found.retain(|(_, inner)| !inner.is_empty());
        found
    }

    /// The updates of a processor in a turn, in order.
    pub(crate) fn each_update(
        &self,
        schedule: &MatmulSchedule,
        rank: Rank,
        turn: u64,
        mut update: impl FnMut(Update),
    ) {
        for (segment, inner) in self.turn(rank, turn) {
            let within = |tile: &&Rect| segment.faces.iter().any(|face| face.contains(**tile));
            for &rect in self.tiles(rank).iter().filter(within) {
                inner.blocks(schedule.order.block).for_each(|inner| update(Update { rect, inner }));
            }
        }
    }

    /// Number of turns in which operands travel.
    pub(crate) fn turns(&self) -> u64 {
        self.turns
    }

    /// The processors to which a processor sends operands, in the order of its sends.
    pub(crate) fn receivers(&self, rank: Rank) -> &[Rank] {
        &self.receivers[rank.0]
    }

    /// The processors from which it receives operands, in the order of its waits.
    pub(crate) fn senders(&self, rank: Rank) -> &[Rank] {
        &self.senders[rank.0]
    }

    /// Elements of A and of B that `from` sends to `to` in a turn: those of [`message`](Self::message).
    pub(crate) fn elements(&self, schedule: &MatmulSchedule, from: Rank, to: Rank, turn: u64) -> [u64; 2] {
        let (a, b) = schedule.own(from);
        let mut elements = [0; 2];
        for (segment, inner) in self.turn(to, turn) {
            for part in a {
                let cols = part.cols.intersect(inner).len();
                elements[0] += if cols > 0 { cols * segment.rows.count_in(part.rows) } else { 0 };
            }
            for part in b {
                let rows = part.rows.intersect(inner).len();
                elements[1] += if rows > 0 { rows * segment.cols.count_in(part.cols) } else { 0 };
            }
        }
        elements
    }

    /// The inner indices of the turn in which a processor uses one, within the same segment.
    pub(crate) fn turn_of(&self, rank: Rank, inner: u64) -> Option<Span> {
        let mut before = 0;
        for segment in &self.segments[rank.0] {
            if segment.inner.contains(Span::new(inner, inner + 1)) {
                let here = Span::new(before, before + segment.inner.len());
                let next = u128::from(before + (inner - segment.inner.start) + 1);
                // The last turn that begins at or before this index.
                let turn = (next * u128::from(self.turns)).div_ceil(u128::from(self.lengths[rank.0])) - 1;
                let positions = self.positions(rank, turn as u64);
                return Some(shifted(positions.intersect(here), before, segment.inner.start));
            }
            before += segment.inner.len();
        }
        None
    }

    /// The largest number of elements of A and B that a processor needs in one turn. Exact if all its boxes
    /// have the same rows and columns, otherwise an upper bound.
    pub(crate) fn most_operands(&self, rank: Rank) -> u64 {
        let lines = |segment: &Segment| segment.rows.len() + segment.cols.len();
        let most = self.segments[rank.0].iter().map(lines).max().unwrap_or(0);
        most * self.lengths[rank.0].div_ceil(self.turns)
    }

    /// The operands that `from` owns and `to` needs in a turn.
    fn message(&self, schedule: &MatmulSchedule, from: Rank, to: Rank, turn: u64) -> MatmulMessage {
        let mut pieces = Vec::new();
        let (a, b) = schedule.own(from);
        for (segment, inner) in self.turn(to, turn) {
            for part in a {
                let cols = part.cols.intersect(inner);
                let rows = segment.rows.intersect(part.rows).filter(|_| !cols.is_empty());
                pieces.extend(rows.map(|rows| OperandPiece::new(Operand::A, rows, cols)));
            }
            for part in b {
                let rows = part.rows.intersect(inner);
                let cols = segment.cols.intersect(part.cols).filter(|_| !rows.is_empty());
                pieces.extend(cols.map(|cols| OperandPiece::new(Operand::B, cols, rows)));
            }
        }
        MatmulMessage { from, to, tag: turn, pieces }
    }
}

impl MatmulSchedule {
    /// What boxes add, if the layout cuts the inner dimension.
    pub(crate) fn boxes(&self) -> Option<&Boxes> {
        self.boxes.as_deref()
    }
}

/// A span, counted from `to` instead of `from`.
fn shifted(span: Span, from: u64, to: u64) -> Span {
    if span.is_empty() { Span::default() } else { Span::new(span.start - from + to, span.end - from + to) }
}

/// Steps of `rank`, generated on demand.
pub(super) fn steps<'a>(
    schedule: &'a MatmulSchedule,
    boxes: &'a Boxes,
    rank: Rank,
) -> impl Iterator<Item = MatmulStep> + 'a {
    let ahead = if schedule.order.flow == Flow::Bulk { 0 } else { schedule.order.ahead() as u64 };
    let overlaps = schedule.order.overlaps();
    let mut next = 0;
    let mut awaits: VecDeque<Vec<MatmulStep>> = VecDeque::new();
    let operands = (0..boxes.turns).flat_map(move |turn| {
        let mut steps = Vec::new();
        while next < boxes.turns && next <= turn.saturating_add(ahead) {
            let (starts, arrivals) = posts(schedule, boxes, rank, next);
            steps.extend(starts);
            awaits.push_back(arrivals);
            next += 1;
        }
        let talks = !steps.is_empty();
        steps.extend(awaits.pop_front().into_iter().flatten());
        if talks && !overlaps {
            steps.push(Step::WaitSends);
        }
        boxes.each_update(schedule, rank, turn, |update| steps.push(Step::Compute(update)));
        let done = boxes.turn(rank, turn);
        steps.extend(done.into_iter().map(|(_, inner)| Step::Free(schedule.all(inner))));
        steps
    });
    let leave = overlaps.then_some(Step::WaitSends);
    operands.chain(std::iter::once_with(move || partial_sums(boxes, rank)).flatten()).chain(leave)
}

/// Starts all sends and receives of a turn; the second part waits for the receives. Sends go to the next
/// ranks in cyclic order.
fn posts(
    schedule: &MatmulSchedule,
    boxes: &Boxes,
    rank: Rank,
    turn: u64,
) -> (Vec<MatmulStep>, Vec<MatmulStep>) {
    let filled = |message: &MatmulMessage| !message.pieces.is_empty();
    let sent = boxes.receivers[rank.0].iter().map(|to| boxes.message(schedule, rank, *to, turn));
    let received = boxes.senders[rank.0].iter().map(|from| boxes.message(schedule, *from, rank, turn));
    let mut starts: Vec<MatmulStep> = match schedule.order.flow {
        Flow::Bulk => sent.filter(filled).map(Step::Send).collect(),
        _ => cast_any(sent.filter(filled).collect()).into_iter().collect(),
    };
    let mut awaits = Vec::new();
    for message in received.filter(filled) {
        awaits.push(Step::WaitReceive { from: message.from, tag: turn });
        starts.push(Step::PostReceive(message));
    }
    (starts, awaits)
}

// What a layout with boxes means for each processor: whom it talks to, and what it computes.

/// For each processor, the others that need something that it owns, and those that own something that it
/// needs, from the next rank on.
fn talkers(layout: &Layout, segments: &[Vec<Segment>]) -> (Vec<Vec<Rank>>, Vec<Vec<Rank>>) {
    let p = layout.processors();
    let (mut receivers, mut senders) = (vec![Vec::new(); p], vec![Vec::new(); p]);
    let (a, b) = (layout.parts_of_a(), layout.parts_of_b());
    for (to, own) in segments.iter().enumerate() {
        for segment in own {
            let meets = |x: Span, y: Span| !x.intersect(y).is_empty();
            let of_a = a
                .iter()
                .filter(|part| meets(part.cols, segment.inner) && segment.rows.count_in(part.rows) > 0);
            let of_b = b
                .iter()
                .filter(|part| meets(part.rows, segment.inner) && segment.cols.count_in(part.cols) > 0);
            for part in of_a.chain(of_b).filter(|part| part.owner.0 != to) {
                receivers[part.owner.0].push(Rank(to));
                senders[to].push(part.owner);
            }
        }
    }
    for all in [&mut receivers, &mut senders] {
        for (rank, others) in all.iter_mut().enumerate() {
            others.sort_unstable_by_key(|other| (other.0 + p - rank) % p);
            others.dedup();
        }
    }
    (receivers, senders)
}

/// Disjoint rectangles that the faces of one processor's boxes consist of: the faces themselves, unless some
/// overlap.
fn tiles<'a>(own: impl Iterator<Item = &'a Cuboid>) -> Vec<Rect> {
    let mut faces: Vec<Rect> = own.map(Cuboid::face).collect();
    faces.sort_unstable();
    faces.dedup();
    let area = |rects: &[Rect]| rects.iter().map(|rect| rect.area()).sum::<u64>();
    if area(&merged(&faces)) == area(&faces) {
        return faces;
    }
    let mut tiles = Vec::new();
    for rows in between(faces.iter().map(|face| face.rows)) {
        let here: Vec<&Rect> = faces.iter().filter(|face| face.rows.contains(rows)).collect();
        for cols in between(here.iter().map(|face| face.cols)) {
            if here.iter().any(|face| face.cols.contains(cols)) {
                tiles.push(Rect::new(rows, cols));
            }
        }
    }
    tiles
}

// The messages of partial sums.

/// A message of partial sums. Both ends handle messages in this order; each message depends on earlier ones
/// only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hop {
    /// The piece's number plus that of the hops before: hops of one wave can travel at the same time.
    wave: u64,
    tag: u64,
    from: Rank,
    to: Rank,
    piece: Rect,
}

impl Chain {
    /// A piece's message from the processor at a place to the one before it.
    fn hop(&self, place: usize, (number, piece): (u64, Rect)) -> Hop {
        let ranks = &self.cell.chain;
        Hop {
            wave: number + (ranks.len() - 1 - place) as u64,
            tag: self.tag + number,
            from: ranks[place],
            to: ranks[place - 1],
            piece,
        }
    }
}

impl Boxes {
    /// The messages of a processor's chains, in order.
    fn hops(&self, rank: Rank) -> Vec<Hop> {
        let mut hops = Vec::new();
        for &(number, place) in &self.places[rank.0] {
            let chain = &self.chains[number];
            let last = chain.cell.chain.len() - 1;
            for piece in (0..).zip(chain.pieces()) {
                hops.extend((place < last).then(|| chain.hop(place + 1, piece)));
                hops.extend((place > 0).then(|| chain.hop(place, piece)));
            }
        }
        hops.sort_unstable();
        hops
    }

    /// The messages of partial sums of all processors, each with its elements, in an order that contains
    /// those of all processors: both ends have handled all earlier ones.
    pub(crate) fn sums(&self) -> Vec<(Rank, Rank, u64)> {
        let mut waves: Vec<Vec<(Rank, Rank, u64)>> = Vec::new();
        // Tags ascend, and a wave has one hop of each.
        for chain in &self.chains {
            for piece in (0..).zip(chain.pieces()) {
                for place in 1..chain.cell.chain.len() {
                    let hop = chain.hop(place, piece);
                    let wave = hop.wave as usize;
                    waves.resize(waves.len().max(wave + 1), Vec::new());
                    waves[wave].push((hop.from, hop.to, hop.piece.area()));
                }
            }
        }
        waves.concat()
    }
}

/// The steps that move partial sums, made one by one: a receive is posted one ahead of the one that is waited
/// for.
fn partial_sums(boxes: &Boxes, rank: Rank) -> impl Iterator<Item = MatmulStep> {
    let hops = boxes.hops(rank);
    let sends = hops.iter().any(|hop| hop.from == rank);
    let (count, mut later) = (1 + hops.len(), 0);
    let steps_at = move |i: usize| {
        let message = |hop: &Hop| {
            let piece = OperandPiece { operand: Operand::C, rect: hop.piece };
            MatmulMessage { from: hop.from, to: hop.to, tag: hop.tag, pieces: vec![piece] }
        };
        let mut post = || {
            let next = hops[later..].iter().position(|hop| hop.to == rank);
            let found = next.map(|skipped| later + skipped);
            later = found.map_or(hops.len(), |found| found + 1);
            found.map(|found| Step::PostReceive(message(&hops[found])))
        };
        match i.checked_sub(1).map(|i| &hops[i]) {
            None => [post(), None],
            Some(hop) if hop.to == rank => [post(), Some(Step::WaitReceive { from: hop.from, tag: hop.tag })],
            Some(hop) => [Some(Step::Send(message(hop))), None],
        }
    };
    (0..count).flat_map(steps_at).flatten().chain(sends.then_some(Step::WaitSends))
}

#[cfg(test)]
mod tests;
