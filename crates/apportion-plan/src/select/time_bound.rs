//! A certificate of time: seconds that no plan of a product can beat on a platform, whatever its layout, flow
//! and set of processors.
//!
//! The bound rests on two facts. A processor computes no more than its speed allows. And what crosses the
//! wires around some processors is at least a surface: a set of w of the m n k multiply-adds and its
//! complement have in common at least min(3 w^(2/3), 2 sqrt(m w), 2 sqrt(n w), 2 sqrt(k w), m n, m k, k n)
//! elements of A, B and C (w at most half of all), and each of them crosses once, in one direction, wherever
//! it is stored at first. The surface is the isoperimetric inequality of a box, after Loomis and Whitney
//! (1949, DOI 10.1090/S0002-9904-1949-09320-5); for communication: Irony, Toledo and Tiskin (2004, DOI
//! 10.1016/j.jpdc.2004.03.021); with unequal processors: Ballard, Demmel and Gearhart (SPAA
//! 2011). Layouts without cuts of k need more: the inequality in the plane is 2 k sqrt(s)
//! for s elements of C.

use crate::error::Result;
use crate::geometry::Rank;
use crate::model::{Interpolation, Machine, Model, Point};
use crate::plan::{Hierarchy, Member, Shape, shares};
use crate::platform::{Cut, Platform};

/// Up to this number of processors the wires are considered; beyond, only the speeds.
const MOST_PROCESSORS: usize = 128;

/// Steps of the bisection: to the last bits.
const STEPS: usize = 100;

/// Seconds that no plan of this product can beat on this platform by these models (`size` in elements of C,
/// for pivot blocks of the machine's `block`): the largest of work / sum of speeds and of what the wires around each
/// processor and each cluster must carry. `None` where speeds are only ratios.
///
/// It holds for every layout, also with cuts of the inner dimension, every flow, and every choice of
/// processors, for the network's own rule and for shared links. It says nothing about latency beyond that of
/// the first message. O(p^2) for the wires, and O(p) for each of 100 steps of a bisection.
///
/// A layout that cuts the inner dimension runs at the speed of larger sizes than its share, so each processor
/// counts with the highest speed at its share or above.
///
/// # Errors
/// The models' caps cannot hold the matrix.
pub(crate) fn time_bound(shape: Shape, machine: &Machine, element: u64) -> Result<Option<f64>> {
    if machine.only_ratios() {
        return Ok(None);
    }
    let platform = &machine.platform;
    let scale = shape.k as f64 / machine.block as f64;
    let models =
        &machine.models.iter().map(|model| envelope(model, shape.elements())).collect::<Result<Vec<_>>>()?;
    let by_speed = shares::ideal_seconds(models, shape.elements())? * scale;
    if platform.network.is_free() || platform.len() > MOST_PROCESSORS || platform.len() < 2 {
        return Ok(Some(by_speed));
    }
    let limits = WorkLimits::new(shape, platform, models, scale, element);
    if limits.may_finish(by_speed) {
        return Ok(Some(by_speed));
    }
    // A processor alone sends nothing.
    let alone = |m: &Model| m.seconds(shape.elements() as f64) * scale;
    let (mut low, mut high) = (by_speed, models.iter().map(alone).fold(f64::INFINITY, f64::min));
    if !high.is_finite() {
        high = low.max(f64::MIN_POSITIVE);
        while !limits.may_finish(high) && high < f64::MAX / 2.0 {
            (low, high) = (high, 2.0 * high);
        }
    }
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if limits.may_finish(middle) { high = middle } else { low = middle }
    }
    Ok(Some(low))
}

/// A model that is nowhere slower than the given one at the same size or a larger one: a box updates more
/// elements of C than its share of the work, and its speed is that at the larger size. Constant models are
/// their own envelope.
fn envelope(model: &Model, elements: u64) -> Result<Model> {
    if model.interpolation() == Interpolation::Constant {
        return Ok(model.clone());
    }
    let largest = model.max_size().unwrap_or(f64::INFINITY).min(elements as f64);
    let mut sizes: Vec<f64> = model.points().iter().map(|point| point.size).collect();
    sizes.push(largest);
    sizes.retain(|&size| size <= largest && size > 0.0);
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    // The highest speed between each size and the next one, and behind the last.
    let highest = |pair: &[f64]| highest_between(model, pair[0], pair[1]);
    let behind = sizes.windows(2).map(highest).chain([model.speed(largest)]);
    let mut behind: Vec<f64> = behind.collect();
    for i in (1..behind.len()).rev() {
        behind[i - 1] = behind[i - 1].max(behind[i]);
    }
    // A line between two sizes is not below the speeds between them if both ends are not.
    let point = |(i, &size): (usize, &f64)| Point::new(size, size / behind[i.saturating_sub(1)]);
    let points = sizes.iter().enumerate().map(point).collect();
    Model::new(model.processor(), Interpolation::PiecewiseLinear, points, model.max_size())
}

/// The highest speed from one point of a model to the next: the speed is a cubic there, or a line.
fn highest_between(model: &Model, from: f64, to: f64) -> f64 {
    let at = |s: f64| model.speed(from + s * (to - from));
    let [f0, f1, f2, f3] = [at(0.0), at(1.0 / 3.0), at(2.0 / 3.0), at(1.0)];
    // Coefficients of the cubic through the four, of its derivative 3 a s^2 + 2 b s + c.
    let a = 4.5 * (f3 - 3.0 * f2 + 3.0 * f1 - f0);
    let b = 4.5 * (2.0 * f0 - 5.0 * f1 + 4.0 * f2 - f3);
    let c = 0.5 * (-11.0 * f0 + 18.0 * f1 - 9.0 * f2 + 2.0 * f3);
    let root = (b * b - 3.0 * a * c).max(0.0).sqrt();
    let turns = [(-b + root) / (3.0 * a), (-b - root) / (3.0 * a), -c / (2.0 * b)];
    let inside = turns.into_iter().filter(|s| *s > 0.0 && *s < 1.0).map(at);
    inside.fold(f0.max(f3), f64::max)
}

/// The least number of elements of A, B and C that a set of `work` of the product's m n k multiply-adds and
/// the others have in common: what crosses between them. 0 for nothing and for everything.
pub(super) fn crossing_bound(shape: Shape, work: f64) -> f64 {
    let sides = [shape.m as f64, shape.k as f64, shape.n as f64];
    let whole: f64 = sides.iter().product();
    let w = work.min(whole - work).max(0.0);
    let columns = sides.map(|side| 2.0 * (side * w).sqrt());
    let faces = sides.map(|side| whole / side);
    columns.into_iter().chain(faces).fold(3.0 * w.powf(2.0 / 3.0), f64::min)
}

/// The most work, at most half of all, whose surface is at most `elements`; infinite if no surface is larger.
pub(super) fn work_within(shape: Shape, elements: f64) -> f64 {
    let sides = [shape.m as f64, shape.k as f64, shape.n as f64];
    let whole: f64 = sides.iter().product();
    if sides.iter().any(|side| whole / side <= elements) {
        return f64::INFINITY;
    }
    let columns = sides.map(|side| elements * elements / (4.0 * side));
    let most = columns.into_iter().fold((elements / 3.0).powf(1.5), f64::max);
    if most >= 0.5 * whole { f64::INFINITY } else { most }
}

/// A processor or a cluster, with the wires around it.
struct Node {
    cut: Cut,
    below: Below,
}

enum Below {
    Processor(usize),
    Members(Vec<Node>),
}

/// What bounds the work that is done in a time.
struct WorkLimits<'a> {
    shape: Shape,
    models: &'a [Model],
    /// Seconds of the whole inner dimension per second of the models.
    scale: f64,
    element: f64,
    members: Vec<Node>,
}

impl<'a> WorkLimits<'a> {
    fn new(shape: Shape, platform: &Platform, models: &'a [Model], scale: f64, element: u64) -> Self {
        let paths: Vec<String> = platform.processors.iter().map(|p| p.cluster.clone()).collect();
        let hierarchy = Hierarchy::of_paths(&paths);
        let members = nodes(&hierarchy, platform);
        Self { shape, models, scale, element: element as f64, members }
    }

    /// The multiply-adds that a processor computes in this time at most.
    fn computed(&self, rank: usize, seconds: f64) -> f64 {
        let all = self.shape.elements() as f64;
        self.models[rank].largest_within(seconds / self.scale, all) * self.shape.k as f64
    }

    /// The work that a node can do if it does the smaller part of all, by its wires.
    fn feasible_work(&self, node: &Node, seconds: f64) -> f64 {
        work_within(self.shape, node.cut.bytes_within(seconds) / self.element)
    }

    /// The work that a node does at most if it, and each of its members, does the smaller part of all.
    fn small(&self, node: &Node, seconds: f64) -> f64 {
        let own = match &node.below {
            Below::Processor(rank) => self.computed(*rank, seconds),
            Below::Members(members) => self.all_small(members, seconds),
        };
        own.min(self.feasible_work(node, seconds))
    }

    fn all_small(&self, members: &[Node], seconds: f64) -> f64 {
        members.iter().map(|member| self.small(member, seconds)).sum()
    }

    /// All work that is done at most, given what is done outside of these members: all of them do smaller
    /// parts, or one does the larger part, and its wires bound what the others do.
    fn most(&self, members: &[Node], outside: f64, seconds: f64) -> f64 {
        let small: Vec<f64> = members.iter().map(|member| self.small(member, seconds)).collect();
        let together: f64 = small.iter().sum();
        let large = members.iter().zip(&small).map(|(member, own)| {
            let others = (outside + (together - own).max(0.0)).min(self.feasible_work(member, seconds));
            match &member.below {
                Below::Processor(rank) => self.computed(*rank, seconds) + others,
                Below::Members(inner) => self.most(inner, others, seconds),
            }
        });
        large.fold(outside + together, f64::max)
    }

    /// False if no plan can finish in this time.
    fn may_finish(&self, seconds: f64) -> bool {
        let whole = self.shape.elements() as f64 * self.shape.k as f64;
        self.most(&self.members, 0.0, seconds) >= whole * (1.0 - 1e-12)
    }
}

fn nodes(hierarchy: &Hierarchy, platform: &Platform) -> Vec<Node> {
    let node = |member: &Member| {
        let mut inside = vec![false; platform.len()];
        member.ranks().into_iter().for_each(|rank| inside[Rank(rank).0] = true);
        let below = match member {
            Member::Processor(rank) => Below::Processor(*rank),
            Member::Cluster(_, inner) => Below::Members(nodes(inner, platform)),
        };
        Node { cut: platform.network.cut(&inside), below }
    };
    hierarchy.members.iter().map(node).collect()
}

#[cfg(test)]
mod tests;
