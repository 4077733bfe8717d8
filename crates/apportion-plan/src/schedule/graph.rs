//! Steps on a graph in parts: values at borders travel, vertices are computed, and sums over all vertices may follow.

use super::{Application, Message, Piece, Step, StepOf, Work};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::plan::{Border, Division, Plan};

/// What travels between two processors of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphPiece {
    /// The values of the sender's vertices that the receiver's see.
    Values(Border),
    /// Sums of the sender and of those behind it, on the way to the first processor.
    Sums(u64),
    /// Sums over all processors, on the way back.
    Totals(u64),
}

impl Piece for GraphPiece {
    fn elements(&self) -> u64 {
        match self {
            Self::Values(border) => border.vertices,
            Self::Sums(numbers) | Self::Totals(numbers) => *numbers,
        }
    }
}

/// What a processor computes of its vertices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GraphWork {
    /// Everything that needs the values of neighbours.
    Neighbours(f64),
    /// What needs sums over all vertices.
    Own(f64),
}

impl Work for GraphWork {
    fn amount(&self) -> f64 {
        match self {
            Self::Neighbours(amount) | Self::Own(amount) => *amount,
        }
    }
}

/// Steps of all processors that have work or borders: each sends its values at borders, computes, and, where there are sums,
/// adds them up over all of them along a binomial tree and back.
#[derive(Debug, Clone)]
pub struct GraphSchedule {
    /// By rank.
    sent: Vec<Vec<Border>>,
    received: Vec<Vec<Border>>,
    /// Of a step.
    neighbours: Vec<f64>,
    own: Vec<f64>,
    sums: u64,
    steps: u64,
    /// The processors that compute or have borders.
    active: Vec<Rank>,
}

impl GraphSchedule {
    /// `steps` steps, in which each processor does this much work, by rank, without sums.
    pub fn new(borders: &[Border], work: Vec<f64>, steps: u64) -> Self {
        let mut sent = vec![Vec::new(); work.len()];
        let mut received = sent.clone();
        for border in borders {
            sent[border.from.0].push(*border);
            received[border.to.0].push(*border);
        }
        // What weighs nothing may be needed by others.
        let takes_part =
            |rank: &usize| work[*rank] > 0.0 || !sent[*rank].is_empty() || !received[*rank].is_empty();
        let active = (0..work.len()).filter(takes_part).map(Rank).collect();
        let own = vec![0.0; work.len()];
        Self { sent, received, neighbours: work, own, sums: 0, steps, active }
    }

    /// The steps of a plan of a graph, in which its weights are the work.
    ///
    /// # Errors
    /// The plan divides another problem: exit code 2.
    pub fn of_plan(plan: &Plan, steps: u64) -> Result<Self> {
        match &plan.division {
            Division::Graph { borders, .. } => {
                Ok(Self::new(borders, plan.costs.clone().unwrap_or_default(), steps))
            }
            _ => Err(Error::input("plan", "is of no graph", "use a plan from `partition --graph`")),
        }
    }

    /// The same, with this many sums over all processors in each step, and the part of the work that needs them, by rank.
    #[must_use]
    pub fn with_sums(mut self, sums: u64, own: Vec<f64>) -> Self {
        self.neighbours.iter_mut().zip(&own).for_each(|(work, own)| *work -= own);
        Self { sums, own, ..self }
    }

    /// What a processor receives in a step from others that have borders with it.
    pub fn received(&self, rank: Rank) -> &[Border] {
        &self.received[rank.0]
    }

    /// What it sends to them.
    pub fn sent(&self, rank: Rank) -> &[Border] {
        &self.sent[rank.0]
    }

    /// The processors behind a processor in the tree, and the one before it.
    fn tree(&self, rank: Rank) -> (Vec<Rank>, Option<Rank>) {
        let Ok(place) = self.active.binary_search(&rank) else { return (Vec::new(), None) };
        let count = self.active.len();
        let low = if place == 0 { count.next_power_of_two() } else { place & place.wrapping_neg() };
        let strides = std::iter::successors(Some(1), |stride| Some(stride * 2)).take_while(|s| *s < low);
        let behind = strides.map(|stride| place + stride).filter(|other| *other < count);
        (behind.map(|other| self.active[other]).collect(), (place > 0).then(|| self.active[place - low]))
    }
}

impl Application for GraphSchedule {
    type Piece = GraphPiece;
    type Work = GraphWork;

    fn processors(&self) -> usize {
        self.neighbours.len()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        let steps = if self.active.binary_search(&rank).is_ok() { self.steps } else { 0 };
        let (behind, before) = self.tree(rank);
        let (sums, work) = (self.sums, [self.neighbours[rank.0], self.own[rank.0]]);
        let message = |from, to, tag, piece| Message { from, to, tag, pieces: vec![piece] };
        Box::new((0..steps).flat_map(move |step| {
            let [halo, up, down] = [0, 1, 2].map(|phase| 3 * step + phase);
            let values = |border: &Border| message(border.from, border.to, halo, GraphPiece::Values(*border));
            let mut all: Vec<StepOf<Self>> = Vec::new();
            all.extend(self.received(rank).iter().map(|border| Step::PostReceive(values(border))));
            if sums > 0 {
                let partial = |from: &Rank| message(*from, rank, up, GraphPiece::Sums(sums));
                all.extend(behind.iter().map(|from| Step::PostReceive(partial(from))));
                let total = |from: Rank| message(from, rank, down, GraphPiece::Totals(sums));
                all.extend(before.map(|from| Step::PostReceive(total(from))));
            }
            all.extend(self.sent(rank).iter().map(|border| Step::Send(values(border))));
            let waits = self.received(rank).iter();
            all.extend(waits.map(|border| Step::WaitReceive { from: border.from, tag: halo }));
            all.push(Step::Compute(GraphWork::Neighbours(work[0])));
            if sums > 0 {
                all.extend(behind.iter().map(|from| Step::WaitReceive { from: *from, tag: up }));
                if let Some(to) = before {
                    all.push(Step::Send(message(rank, to, up, GraphPiece::Sums(sums))));
                    all.push(Step::WaitReceive { from: to, tag: down });
                }
                let totals = |to: &Rank| message(rank, *to, down, GraphPiece::Totals(sums));
                all.extend(behind.iter().rev().map(|to| Step::Send(totals(to))));
                all.push(Step::Compute(GraphWork::Own(work[1])));
            }
            all
        }))
    }

    fn work(&self, rank: Rank) -> f64 {
        self.share(rank) * self.steps as f64
    }

    fn share(&self, rank: Rank) -> f64 {
        self.neighbours[rank.0] + self.own[rank.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Machine;
    use crate::platform::parse_platform;
    use crate::simulate::{CostModel, forecast};

    fn border(from: usize, to: usize, vertices: u64) -> Border {
        Border { from: Rank(from), to: Rank(to), vertices }
    }

    /// Two processors of 4 and 2 units/s with 8 and 2 units; 5 and 3 values of 8 bytes at 10 B/s with a latency of 1 s.
    /// The first computes for 2 s from 1 + 2.4 on, the second for 1 s from 1 + 4 on: 6 s a step.
    #[test]
    fn a_step_by_hand() {
        let text = "[[processor]]\nname = \"a\"\nspeed = \"4 units/s\"\n[[processor]]\nname = \"b\"\n\
            speed = \"2 units/s\"\n[network]\nlatency = \"1 s\"\nbandwidth = \"10 B/s\"\n";
        let platform = parse_platform(text, "p.toml").unwrap();
        let machine = Machine::from_platform(platform, crate::model::WorkUnit::Unit).unwrap();
        let schedule = GraphSchedule::new(&[border(0, 1, 5), border(1, 0, 3)], vec![8.0, 2.0], 1);
        let rates = [4.0, 2.0];
        let costs = CostModel { rates: &rates, network: &machine.platform.network, element: 8 };
        let times = forecast(&schedule, costs).unwrap();
        assert!((times.seconds - 6.0).abs() < 1e-9, "{times:?}");
        assert!((times.compute[0] - 2.0).abs() < 1e-9 && (times.compute[1] - 1.0).abs() < 1e-9, "{times:?}");
        assert_eq!((schedule.work(Rank(0)), schedule.share(Rank(1))), (8.0, 2.0));
    }

    /// A processor whose vertices weigh nothing sends what others need of them.
    #[test]
    fn vertices_without_weight_are_sent() {
        let schedule = GraphSchedule::new(&[border(0, 1, 1), border(1, 0, 1)], vec![0.0, 2.0], 3);
        let machine = Machine::from_speeds(&[1.0; 2]).unwrap();
        let costs = CostModel { rates: &[1.0; 2], network: &machine.platform.network, element: 8 };
        assert_eq!(forecast(&schedule, costs).unwrap().seconds, 6.0);
    }

    /// Every processor that computes is in the tree once, and what one posts the other sends.
    #[test]
    fn sums_reach_everybody_along_a_tree() {
        for p in 1..20 {
            let work: Vec<f64> = (0..p).map(|rank| if rank % 5 == 3 { 0.0 } else { 1.0 }).collect();
            let schedule = GraphSchedule::new(&[], work.iter().map(|work| 2.0 * work).collect(), 2)
                .with_sums(3, work.clone());
            let (mut sent, mut posted) = (Vec::new(), Vec::new());
            for rank in (0..p).map(Rank) {
                for step in schedule.steps(rank) {
                    match step {
                        Step::Send(message) => sent.push(message),
                        Step::PostReceive(message) => posted.push(message),
                        _ => {}
                    }
                }
            }
            let active = work.iter().filter(|work| **work > 0.0).count();
            assert_eq!(sent.len(), 2 * 2 * (active - 1), "{p}");
            let key = |message: &Message<GraphPiece>| (message.from, message.to, message.tag);
            sent.sort_by_key(key);
            posted.sort_by_key(key);
            assert_eq!(sent, posted);
            let machine = Machine::from_speeds(&vec![1.0; p]).unwrap();
            let costs = CostModel { rates: &vec![1.0; p], network: &machine.platform.network, element: 8 };
            assert_eq!(forecast(&schedule, costs).unwrap().seconds, 4.0);
        }
    }
}
