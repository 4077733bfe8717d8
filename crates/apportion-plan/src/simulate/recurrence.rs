//! Forecasts where every pair of processors has a wire of its own in each direction.
//!
//! Nothing then competes for a wire but the messages of one sender, in their order. The times of a schedule
//! follow by recurrence, pivot block by pivot block: no queue of events, no pieces, no trace. The result is
//! that of [`simulate`](super::simulate), bit for bit; the tests compare both.

use crate::geometry::{Rank, Rect, Span};
use crate::plan::Forecast;
use crate::platform::Link;
use crate::schedule::{Application, Boxes, Exchange, Flow, MatmulSchedule, Operand, Traffic};
use crate::simulate::effort::{ANALYSIS, RECURRENCE};
use crate::simulate::record::{Record, Totals};
use crate::simulate::{CostModel, Effort};
use crate::trace::Activity;
use std::collections::{BTreeMap, VecDeque};

/// True if [`timed`] serves this schedule on this network.
pub(crate) fn serves(schedule: &MatmulSchedule, costs: CostModel<'_>) -> bool {
    let order = schedule.order();
    let flow = match order.flow {
        Flow::OneToAll | Flow::Broadcast => true,
        Flow::Bulk => !order.sends_separately(),
        Flow::Ring => false,
    };
    let usable = |rank: usize| {
        let rate = costs.rates[rank];
        schedule.work(Rank(rank)) <= 0.0 || (rate.is_finite() && rate > 0.0)
    };
    (flow || schedule.boxes().is_some())
        && costs.network.has_a_wire_for_each_pair()
        && costs.network.devices.is_empty()
        && (0..schedule.processors()).all(usable)
}

/// The forecast of a schedule that [`serves`] accepts; `None` if it takes more than `limit` seconds, which is
/// found as soon as some processor cannot do the rest of its work within the limit, or once the work is
/// spent.
///
/// O(messages + updates + log p for each change of an owner), without allocation for each of them.
pub(crate) fn timed(
    schedule: &MatmulSchedule,
    costs: CostModel<'_>,
    limit: f64,
    effort: &Effort,
) -> Option<Forecast> {
    assert_eq!(costs.rates.len(), schedule.processors(), "one rate per processor");
    effort.spend(ANALYSIS * schedule.members_and_exchanges().1 as f64);
    if effort.is_spent() {
        return None;
    }
    let mut clocks = Clocks::new(schedule, costs, limit, effort);
    if let Some(boxes) = schedule.boxes() {
        run_boxes(schedule, boxes, &mut clocks)?;
        return clocks.forecast();
    }
    match schedule.order().flow {
        Flow::Bulk => run_bulk(schedule, &mut clocks),
        Flow::Broadcast => run_broadcast(schedule, &mut clocks)?,
        _ => run_one_to_all(schedule, &mut clocks)?,
    }
    clocks.forecast()
}

// The clocks of all processors, and what each has done so far.

/// Rounding of sums in another order than the simulation's.
const ROUNDING: f64 = 1e-9;

/// A message on its way.
#[derive(Debug, Clone, Copy)]
struct Flight {
    pub from: Rank,
    pub(crate) to: Rank,
    pub start: f64,
    pub(crate) arrival: f64,
}

/// The processors' clocks.
struct Clocks<'a> {
    costs: CostModel<'a>,
    limit: f64,
    now: Vec<f64>,
    /// By rank: when the last byte of all its messages has left.
    sent: Vec<f64>,
    /// By rank: seconds of the work that is not done yet.
    left: Vec<f64>,
    totals: Totals,
    effort: &'a Effort,
}

impl<'a> Clocks<'a> {
    pub(crate) fn new(
        schedule: &MatmulSchedule,
        costs: CostModel<'a>,
        limit: f64,
        effort: &'a Effort,
    ) -> Self {
        let p = schedule.processors();
        let left = |rank: usize| match schedule.work(Rank(rank)) {
            work if work > 0.0 => work / costs.rates[rank],
            _ => 0.0,
        };
        Self {
            costs,
            limit,
            now: vec![0.0; p],
            sent: vec![0.0; p],
            left: (0..p).map(left).collect(),
            totals: Totals::new(p),
            effort,
        }
    }

    /// The costs of a pair's messages.
    pub(crate) fn link(&self, from: Rank, to: Rank) -> Link {
        self.costs.network.link(from, to)
    }

    /// Posts a message of these elements of A and B on a wire that is free from a time on, which it advances.
    pub(crate) fn post(
        &mut self,
        from: Rank,
        to: Rank,
        [horizontal, vertical]: [u64; 2],
        link: &Link,
        free: &mut f64,
    ) -> Flight {
        let bytes = |elements: u64| (elements * self.costs.element) as f64;
        let start = free.max(self.now[from.0]);
        let arrival = start + link.seconds(bytes(horizontal), bytes(vertical));
        *free = arrival;
        self.sent[from.0] = self.sent[from.0].max(arrival);
        self.effort.spend(RECURRENCE);
        Flight { from, to, start, arrival }
    }

    /// The receiver waits for a message.
    pub(crate) fn arrive(&mut self, flight: &Flight) {
        let &Flight { from, to, start, arrival } = flight;
        let now = &mut self.now[to.0];
        let (since, end) = (*now, now.max(arrival));
        self.totals.push(to, Activity::Idle, since, start, Some(from));
        self.totals.push(to, Activity::Communicate, since.max(start), end, Some(from));
        *now = end;
    }

    /// A processor waits until its messages have left.
    pub(crate) fn flush(&mut self, rank: Rank) {
        let now = &mut self.now[rank.0];
        let end = now.max(self.sent[rank.0]);
        self.totals.push(rank, Activity::Communicate, *now, end, None);
        *now = end;
    }

    /// A processor updates a rectangle of C by some inner indices.
    pub(crate) fn compute(&mut self, rank: Rank, rect: &Rect, inner: u64) {
        let seconds = rect.area() as f64 * inner as f64 / self.costs.rates[rank.0];
        let now = &mut self.now[rank.0];
        let end = *now + seconds;
        self.totals.push(rank, Activity::Compute, *now, end, None);
        *now = end;
        self.left[rank.0] -= seconds;
        self.effort.spend(RECURRENCE);
    }

    /// True if a processor cannot end within the limit, or if the work is spent.
    pub(crate) fn is_late(&self) -> bool {
        if self.effort.is_spent() {
            return true;
        }
        let late = |(now, left): (&f64, &f64)| now + left * (1.0 - ROUNDING) > self.limit * (1.0 + ROUNDING);
        self.now.iter().zip(&self.left).any(late)
    }

    /// The forecast, if it is within the limit.
    pub(crate) fn forecast(self) -> Option<Forecast> {
        (self.totals.seconds() <= self.limit).then(|| self.totals.forecast())
    }
}

// The one-to-all flow.

/// All pivot blocks: each processor posts what it sends, waits for what it needs, and computes. `None` once
/// one is late.
fn run_one_to_all(schedule: &MatmulSchedule, clocks: &mut Clocks<'_>) -> Option<()> {
    let ranks = || (0..schedule.processors()).map(Rank);
    let (count, ahead) = (schedule.pivot_count(), schedule.order().ahead());
    let mut traffic = Traffic::new(schedule, false);
    let links: Vec<Link> = traffic.pairs().iter().map(|&(from, to)| clocks.link(from, to)).collect();
    let mut free = vec![0.0; links.len()];
    let mut talks = vec![false; schedule.processors()];
    let mut flying: VecDeque<Vec<Flight>> = VecDeque::new();
    let mut spare: Vec<Flight> = Vec::new();
    let mut next = 0;
    for number in 0..count {
        while next < count && next <= number.saturating_add(ahead) {
            let mut posted = std::mem::take(&mut spare);
            posted.clear();
            for e in traffic.window(schedule.pivot(next)).0 {
                let sizes = [e.horizontal, e.vertical];
                posted.push(clocks.post(e.from, e.to, sizes, &links[e.pair], &mut free[e.pair]));
                (talks[e.from.0], talks[e.to.0]) = (true, true);
            }
            flying.push_back(posted);
            next += 1;
        }
        let arriving = flying.pop_front().unwrap_or_default();
        arriving.iter().for_each(|flight| clocks.arrive(flight));
        spare = arriving;
        let inner = schedule.pivot(number).len();
        for rank in ranks() {
            if ahead == 0 && std::mem::take(&mut talks[rank.0]) {
                clocks.flush(rank);
            }
            schedule.rects(rank).iter().for_each(|rect| clocks.compute(rank, rect, inner));
            if ahead > 0 && number + 1 == count {
                clocks.flush(rank);
            }
        }
        if clocks.is_late() {
            return None;
        }
    }
    Some(())
}

// The broadcast flow.

/// Turns between two checks of the limit.
const PATIENCE: u64 = 64;

/// Posts the messages of turns, in order.
struct Turns<'s> {
    schedule: &'s MatmulSchedule,
    /// Number of pivot blocks.
    blocks: u64,
    traffic: Traffic,
    links: Vec<Link>,
    free: Vec<f64>,
    /// The exchanges of the pivot block whose turns are posted, by sender, and the first that is not posted.
    window: Vec<Exchange>,
    posted: usize,
}

impl Turns<'_> {
    /// The owner of a turn and its inner indices.
    fn get(&self, number: u64) -> (Rank, Span) {
        let owners = self.schedule.owners().len() as u64;
        let (owner, block) = match self.schedule.a_stays() {
            true => (number / self.blocks, number % self.blocks),
            false => (number % owners, number / owners),
        };
        (self.schedule.owners()[owner as usize], self.schedule.pivot(block as usize))
    }

    /// Posts the messages of the next turn.
    fn post(&mut self, number: u64, clocks: &mut Clocks<'_>, flying: &mut Vec<Flight>) {
        let (owner, inner) = self.get(number);
        if self.schedule.a_stays() {
            return self.post_columns(number, owner, inner, clocks, flying);
        }
        if number.is_multiple_of(self.schedule.owners().len() as u64) {
            self.window.clear();
            self.window.extend_from_slice(self.traffic.window(inner).0);
            self.posted = 0;
        }
        while let Some(e) = self.window.get(self.posted).filter(|e| e.from == owner) {
            let (link, free) = (&self.links[e.pair], &mut self.free[e.pair]);
            flying.push(clocks.post(e.from, e.to, [e.horizontal, e.vertical], link, free));
            self.posted += 1;
        }
    }

    /// On strips: the owner's columns of B, to everyone else with a share.
    fn post_columns(
        &mut self,
        number: u64,
        owner: Rank,
        inner: Span,
        clocks: &mut Clocks<'_>,
        flying: &mut Vec<Flight>,
    ) {
        let p = self.schedule.processors();
        if number.is_multiple_of(self.blocks) {
            // An owner's turns follow each other: its wires are used by no others.
            self.free.clear();
            self.free.resize(p, 0.0);
        }
        let columns: u64 = self.schedule.own(owner).1.iter().map(|part| part.cols.len()).sum();
        for to in (0..p).map(Rank).filter(|to| *to != owner && self.schedule.has_share(*to)) {
            let link = clocks.link(owner, to);
            let sizes = [0, inner.len() * columns];
            flying.push(clocks.post(owner, to, sizes, &link, &mut self.free[to.0]));
        }
    }
}

/// All turns: the owner posts its part; everyone waits for it and computes what has become possible. `None`
/// once a processor is late.
fn run_broadcast(schedule: &MatmulSchedule, clocks: &mut Clocks<'_>) -> Option<()> {
    let traffic = Traffic::new(schedule, true);
    let links: Vec<Link> = traffic.pairs().iter().map(|&(from, to)| clocks.link(from, to)).collect();
    let blocks = schedule.pivot_count() as u64;
    let free = vec![0.0; links.len()];
    let mut turns = Turns { schedule, blocks, traffic, links, free, window: Vec::new(), posted: 0 };
    let updates = schedule.updates_by_turn();
    let (count, ahead) = (schedule.owners().len() as u64 * blocks, schedule.order().ahead() as u64);
    let mut flying: VecDeque<Vec<Flight>> = VecDeque::new();
    let mut spare: Vec<Flight> = Vec::new();
    let mut next = 0;
    for number in 0..count {
        while next < count && next <= number.saturating_add(ahead) {
            let mut posted = std::mem::take(&mut spare);
            posted.clear();
            turns.post(next, clocks, &mut posted);
            flying.push_back(posted);
            next += 1;
        }
        let arriving = flying.pop_front().unwrap_or_default();
        arriving.iter().for_each(|flight| clocks.arrive(flight));
        let (owner, inner) = turns.get(number);
        if ahead == 0 && !arriving.is_empty() {
            clocks.flush(owner);
        }
        spare = arriving;
        for (rank, update) in &updates[owner.0] {
            let inner = update.inner.intersect(inner);
            if !inner.is_empty() {
                clocks.compute(*rank, &update.rect, inner.len());
            }
        }
        if ahead > 0 && number + 1 == count {
            (0..schedule.processors()).for_each(|rank| clocks.flush(Rank(rank)));
        }
        if number % PATIENCE == 0 && clocks.is_late() {
            return None;
        }
    }
    Some(())
}

// The bulk flow.

/// All messages at once, then all updates; with overlap, those that need no message before the others.
fn run_bulk(schedule: &MatmulSchedule, clocks: &mut Clocks<'_>) {
    let ranks = || (0..schedule.processors()).map(Rank);
    let mut traffic = Traffic::new(schedule, false);
    let mut talks = vec![false; schedule.processors()];
    let mut flying: Vec<Flight> = Vec::new();
    for e in traffic.window(schedule.inner()).0 {
        let link = clocks.link(e.from, e.to);
        flying.push(clocks.post(e.from, e.to, [e.horizontal, e.vertical], &link, &mut 0.0));
        (talks[e.from.0], talks[e.to.0]) = (true, true);
    }
    let overlaps = |rank: Rank| schedule.order().overlaps() && talks[rank.0];
    let update = |clocks: &mut Clocks<'_>, rank: Rank, rects: &[Rect]| {
        for rect in rects {
            schedule.pivots().for_each(|inner| clocks.compute(rank, rect, inner.len()));
        }
    };
    let mut rest: Vec<Option<Vec<Rect>>> = vec![None; schedule.processors()];
    for rank in ranks().filter(|rank| overlaps(*rank)) {
        let (free, others) = schedule.split_rects(rank);
        update(clocks, rank, &free);
        rest[rank.0] = Some(others);
    }
    flying.iter().for_each(|flight| clocks.arrive(flight));
    for rank in ranks() {
        if talks[rank.0] && !overlaps(rank) {
            clocks.flush(rank);
        }
        match &rest[rank.0] {
            Some(others) => update(clocks, rank, others),
            None => update(clocks, rank, schedule.rects(rank)),
        }
        if overlaps(rank) {
            clocks.flush(rank);
        }
    }
}

// Layouts that cut the inner dimension, with any flow.

/// A pair of processors, with the time from which its wire is free.
struct Pair {
    from: Rank,
    to: Rank,
    link: Link,
    free: f64,
}

/// All turns, then the partial sums. `None` once one processor is late.
fn run_boxes(schedule: &MatmulSchedule, boxes: &Boxes, clocks: &mut Clocks<'_>) -> Option<()> {
    let ranks = || (0..schedule.processors()).map(Rank);
    let overlaps = schedule.order().overlaps();
    let ahead = if schedule.order().flow == Flow::Bulk { 0 } else { schedule.order().ahead() as u64 };
    let sums = boxes.sums();
    let mut pairs: Vec<(Rank, Rank)> =
        ranks().flat_map(|from| boxes.receivers(from).iter().map(move |to| (from, *to))).collect();
    pairs.extend(sums.iter().map(|(from, to, _)| (*from, *to)));
    pairs.sort_unstable();
    pairs.dedup();
    let first: Vec<usize> =
        (0..=schedule.processors()).map(|rank| pairs.partition_point(|(from, _)| from.0 < rank)).collect();
    let number = |from: Rank, to: Rank| {
        let of_sender = &pairs[first[from.0]..first[from.0 + 1]];
        let place = of_sender.binary_search_by_key(&to, |(_, to)| *to);
        first[from.0] + place.expect("every pair that talks is listed")
    };
    // By receiver, in the order of its waits.
    let incoming: Vec<Vec<usize>> =
        ranks().map(|to| boxes.senders(to).iter().map(|from| number(*from, to)).collect()).collect();
    let of = |&(from, to): &(Rank, Rank)| Pair { from, to, link: clocks.link(from, to), free: 0.0 };
    let mut wires: Vec<Pair> = pairs.iter().map(of).collect();
    let mut talks = vec![false; schedule.processors()];
    // By turn, receiver after receiver.
    let mut flying: VecDeque<Vec<Flight>> = VecDeque::new();
    let mut next = 0;
    for turn in 0..boxes.turns() {
        while next < boxes.turns() && next <= turn.saturating_add(ahead) {
            let mut posted = Vec::new();
            for wire in incoming.iter().flatten() {
                let Pair { from, to, link, free } = &mut wires[*wire];
                let elements = boxes.elements(schedule, *from, *to, next);
                if elements != [0; 2] {
                    posted.push(clocks.post(*from, *to, elements, link, free));
                    (talks[from.0], talks[to.0]) = (true, true);
                }
            }
            flying.push_back(posted);
            next += 1;
        }
        flying.pop_front().into_iter().flatten().for_each(|flight| clocks.arrive(&flight));
        for rank in ranks() {
            if std::mem::take(&mut talks[rank.0]) && !overlaps {
                clocks.flush(rank);
            }
            boxes.each_update(schedule, rank, turn, |update| {
                clocks.compute(rank, &update.rect, update.inner.len());
            });
        }
        if clocks.is_late() {
            return None;
        }
    }
    let mut sends = vec![false; schedule.processors()];
    for (from, to, elements) in sums {
        let Pair { link, free, .. } = &mut wires[number(from, to)];
        let flight = clocks.post(from, to, [elements, 0], link, free);
        clocks.arrive(&flight);
        sends[from.0] = true;
    }
    for rank in ranks().filter(|rank| sends[rank.0] || overlaps) {
        clocks.flush(rank);
    }
    Some(())
}

// A lower bound of the ring flow, whose times are not computed by recurrence.

/// Seconds that the ring flow takes at least on a network with a wire for each pair: the first update of a
/// processor waits for the pieces of the first pivot block, which pass through its neighbours, and all its
/// work follows; and each wire carries what its end needs of a band. 0 with inner cuts. O(members^2) of all
/// bands.
pub(crate) fn least_seconds_of_ring(schedule: &MatmulSchedule, costs: CostModel<'_>) -> f64 {
    if schedule.layout().boxes().is_some() {
        return 0.0;
    }
    let p = schedule.processors();
    let element = costs.element as f64;
    let (whole, first) = (schedule.inner(), schedule.pivot(0));
    let mut reached = vec![0.0; p];
    let mut bytes_on_wire: BTreeMap<(Rank, Rank), [f64; 2]> = BTreeMap::new();
    for operand in [Operand::A, Operand::B] {
        let load = |lines: Span, inner: u64| {
            let bytes = (lines.len() * inner) as f64 * element;
            if operand == Operand::B { [0.0, bytes] } else { [bytes, 0.0] }
        };
        for band in schedule.bands(operand) {
            let size = band.members.len();
            let next = |place: usize| (place + 1) % size;
            for (inner, owner) in band.owned_of(first) {
                let [h, v] = load(band.lines, inner.len());
                let (mut place, mut at) = (owner, 0.0);
                for _ in 1..size {
                    at += costs.network.link(band.members[place], band.members[next(place)]).seconds(h, v);
                    place = next(place);
                    let reached: &mut f64 = &mut reached[band.members[place].0];
                    *reached = reached.max(at);
                }
            }
            let mut owned = vec![0; size];
            band.owned_of(whole).for_each(|(inner, owner)| owned[owner] += inner.len());
            for place in (0..size).filter(|_| size > 1) {
                let [h, v] = load(band.lines, whole.len() - owned[next(place)]);
                if h + v > 0.0 {
                    let sum =
                        bytes_on_wire.entry((band.members[place], band.members[next(place)])).or_default();
                    *sum = [sum[0] + h, sum[1] + v];
                }
            }
        }
    }
    let wire =
        |(&(from, to), &[h, v]): (&(Rank, Rank), &[f64; 2])| costs.network.link(from, to).seconds(h, v);
    let worked = |rank: usize| match schedule.work(Rank(rank)) {
        work if work > 0.0 => reached[rank] + work / costs.rates[rank],
        _ => 0.0,
    };
    (0..p).map(worked).chain(bytes_on_wire.iter().map(wire)).fold(0.0, f64::max) * (1.0 - ROUNDING)
}

#[cfg(test)]
mod tests;
