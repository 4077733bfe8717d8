//! The bound by hand, against every plan that methods make, and against the best of all plans of tiny
//! products.

use super::*;
use crate::geometry::{Rect, Span};
use crate::plan::shapes::{Method, MethodOptions};
use crate::plan::{Layout, Part};
use crate::platform::{Network, Platform, Topology, parse_platform};
use crate::random::Random;
use crate::schedule::{Flow, ScheduleOptions};
use crate::select::{forecast, orders};
use crate::simulate::CostModel;

fn shape(m: u64, k: u64, n: u64) -> Shape {
    Shape::new(m, k, n, "test").unwrap()
}

/// All cells of a box that are in the set, and the lines with cells on both sides.
fn lines_in_common([a, b, c]: [usize; 3], set: u32) -> f64 {
    let inside = |x: usize, y: usize, z: usize| set >> ((x * b + y) * c + z) & 1;
    let mixed = |count: u32, length: usize| u32::from(count > 0 && count < length as u32);
    let mut lines = 0;
    for (y, z) in (0..b).flat_map(|y| (0..c).map(move |z| (y, z))) {
        lines += mixed((0..a).map(|x| inside(x, y, z)).sum(), a);
    }
    for (x, z) in (0..a).flat_map(|x| (0..c).map(move |z| (x, z))) {
        lines += mixed((0..b).map(|y| inside(x, y, z)).sum(), b);
    }
    for (x, y) in (0..a).flat_map(|x| (0..b).map(move |y| (x, y))) {
        lines += mixed((0..c).map(|z| inside(x, y, z)).sum(), c);
    }
    f64::from(lines)
}

/// Every set of multiply-adds of small boxes: nothing has less in common with the rest than the bound.
#[test]
fn no_set_has_a_smaller_surface() {
    for sides in [[2, 2, 2], [2, 2, 3], [1, 3, 4], [2, 1, 5], [3, 1, 4], [1, 1, 9]] {
        let cells: usize = sides.iter().product();
        let shape = shape(sides[0] as u64, sides[1] as u64, sides[2] as u64);
        for set in 0..1u32 << cells {
            let bound = crossing_bound(shape, f64::from(set.count_ones()));
            let common = lines_in_common(sides, set);
            assert!(common >= bound - 1e-9, "{sides:?} {set:b}: {common} under {bound}");
        }
    }
}

#[test]
fn the_most_work_is_the_inverse_of_the_surface() {
    for shape in [shape(10, 20, 30), shape(100, 100, 100), shape(7, 500, 9), shape(1, 1, 50)] {
        let whole = (shape.elements() * shape.k) as f64;
        for percent in 1..=50 {
            let work = whole * f64::from(percent) / 100.0;
            let surface = crossing_bound(shape, work);
            assert!(work_within(shape, surface * (1.0 + 1e-9)) >= work * (1.0 - 1e-9));
            let less = work_within(shape, surface * 0.999);
            assert!(less < work, "{shape:?} {percent}: {less} of {work}");
        }
    }
}

/// Two equal processors, 100 x 100 x 100, 1,000 flop/s each, elements of 8 bytes, by hand.
#[test]
fn two_processors_by_hand() {
    let models = [1, 2].map(|i| Model::constant(format!("p{i}"), 1000.0).unwrap()).to_vec();
    let bound = |bandwidth: f64| {
        let mut platform = Platform::from_speeds(&[1.0, 1.0]).unwrap();
        platform.network = Network::uniform(0.0, bandwidth);
        let machine = Machine::new(platform, models.clone(), 1);
        time_bound(shape(100, 100, 100), &machine, 8).unwrap().unwrap()
    };
    // 10^6 multiply-adds at 1,000 a second: 500 s together, 1,000 s alone. A half has a surface of 10^4.
    assert!((bound(1e9) - 500.0).abs() < 1e-6);
    assert!((bound(80.0) - 500.0).abs() < 1e-6, "500 s x 2 directions x 80 B/s = 80,000 B");
    // At 8 B/s in both directions T seconds carry 2 T elements: 3 w^(2/3) = 2 T or 20 sqrt(w) = 2 T, and the
    // other does 10^6 - w in T = 1000 (1 - w / 10^6).
    let found = bound(8.0);
    let w = 1e6 - 1000.0 * found;
    assert!((crossing_bound(shape(100, 100, 100), w) - 2.0 * found).abs() < 1e-3 * found, "{found} {w}");
    assert!(found > 500.0 && found < 1000.0);
    assert!(bound(1e-6) > 999.9);
    let ratios = Machine::from_speeds(&[2.0, 1.0]).unwrap();
    assert_eq!(time_bound(shape(9, 9, 9), &ratios, 8).unwrap(), None);
}

/// A random machine of up to six processors: links of pairs, of clusters, shared, with uplinks, on a bus or
/// a star.
fn machine(random: &mut Random) -> Machine {
    let p = 2 + random.below(5);
    let mut text = String::new();
    for i in 0..p {
        let cluster = random.below(2);
        text += &format!("[[processor]]\nname = \"p{i}\"\ncluster = \"c{cluster}/p{i}\"\n");
    }
    let both = text.contains("\"c0/") && text.contains("\"c1/");
    text += &format!(
        "[network]\nlatency = {}\nbandwidth = {}\nduplex = {}\n",
        0.01 * random.unit(),
        100.0 * 100f64.powf(random.unit()),
        random.unit() < 0.5
    );
    match random.below(5) {
        0 => text += "topology = \"bus\"\n",
        1 => text += &format!("topology = \"star\"\ncentre = \"p{}\"\n", random.below(p)),
        2 if both => {
            text += &format!(
                "[[network.link]]\nbetween = [\"c0\", \"c1\"]\nbandwidth = {}\nshared = {}\n",
                10.0 * 100f64.powf(random.unit()),
                random.unit() < 0.5
            );
        }
        3 if both => {
            for of in ["c0", "p0"] {
                let bandwidth = 10.0 * 100f64.powf(random.unit());
                text += &format!("[[network.uplink]]\nof = \"{of}\"\nbandwidth = {bandwidth}\n");
            }
        }
        _ => {}
    }
    let kind = random.below(3);
    let models = (0..p).map(|i| model(kind, format!("p{i}"), random)).collect();
    Machine::new(parse_platform(&text, "random").unwrap(), models, 1)
}

/// A constant speed, or one that rises and falls with the size, by lines or smoothly.
fn model(kind: usize, name: String, random: &mut Random) -> Model {
    let mut speed = || 200.0 * 10f64.powf(random.unit());
    if kind == 0 {
        return Model::constant(name, speed()).unwrap();
    }
    let sizes = [3.0, 20.0, 60.0, 130.0, 250.0, 400.0];
    let points = sizes.map(|size| Point::new(size, size / speed())).to_vec();
    let interpolation = [Interpolation::PiecewiseLinear, Interpolation::Akima][kind - 1];
    Model::new(name, interpolation, points, None).unwrap()
}

fn seconds(layout: &Layout, order: ScheduleOptions, machine: &Machine) -> f64 {
    let rates = machine.rates(&layout.sizes());
    let cost_model = CostModel { rates: &rates, network: &machine.platform.network, element: 8 };
    forecast(layout, order, cost_model).unwrap().seconds
}

/// No layout of any method, the inner dimension cut or not, with any weights, any flow and any subset of the
/// processors, beats the bound; nor do speeds that depend on the size.
#[test]
fn no_forecast_beats_the_bound() {
    let mut random = Random::new(16);
    let mut closest = f64::INFINITY;
    for _ in 0..200 {
        let machine = machine(&mut random);
        let p = machine.processors();
        let side = |random: &mut Random| 1 + random.below(24) as u64;
        let shape = shape(side(&mut random), side(&mut random), side(&mut random));
        let bound = time_bound(shape, &machine, 8).unwrap().unwrap();
        let subset: Vec<usize> = (0..p).filter(|_| random.unit() < 0.7).collect();
        let subset = if subset.is_empty() { vec![0] } else { subset };
        let weights: Vec<f64> = subset.iter().map(|_| 0.1 + random.unit()).collect();
        for method in Method::candidates().chain([Method::Inner, Method::Boxes]) {
            let Ok(layout) = method.layout(shape, &weights, &MethodOptions::default()) else { continue };
            let layout = layout.among(&subset, p).unwrap();
            for order in orders(None, 1 + random.below(12) as u64, false, 1) {
                if order.check_layout(&layout).is_err() {
                    continue;
                }
                let found = seconds(&layout, order, &machine);
                assert!(found >= bound * (1.0 - 1e-9), "{method} {order}: {found} under {bound}");
                closest = closest.min(found / bound);
            }
        }
    }
    assert!(closest < 1.05, "a bound that nothing comes near says nothing: {closest}");
}

/// The best of all layouts of a tiny product, by branch and bound over the owners of its elements. A branch
/// ends where a processor already has more work than the best plan's time allows.
fn exact(shape: Shape, machine: &Machine, orders: &[ScheduleOptions]) -> f64 {
    struct Branch<'a> {
        shape: Shape,
        machine: &'a Machine,
        orders: &'a [ScheduleOptions],
        best: f64,
    }
    impl Branch<'_> {
        fn extend(&mut self, owners: &mut Vec<usize>) {
            let Shape { k, n, .. } = self.shape;
            let busy = |i: usize| {
                let share = owners.iter().filter(|owner| **owner == i).count() as f64;
                share * k as f64 / self.machine.models[i].speed(share)
            };
            if (0..self.machine.models.len()).any(|i| busy(i) >= self.best) {
                return;
            }
            if owners.len() as u64 == self.shape.elements() {
                let part = |(at, &owner): (usize, &usize)| {
                    let (row, col) = (at as u64 / n, at as u64 % n);
                    Part::new(Rank(owner), Rect::new(Span::new(row, row + 1), Span::new(col, col + 1)))
                };
                let parts = owners.iter().enumerate().map(part);
                let layout = Layout::new(self.shape, self.machine.models.len(), parts).unwrap();
                for &order in self.orders {
                    self.best = self.best.min(seconds(&layout, order, self.machine));
                }
                return;
            }
            for owner in 0..self.machine.models.len() {
                owners.push(owner);
                self.extend(owners);
                owners.pop();
            }
        }
    }
    let mut branch = Branch { shape, machine, orders, best: f64::INFINITY };
    branch.extend(&mut Vec::new());
    branch.best
}

#[test]
fn the_exact_optimum_of_tiny_products_is_not_under_the_bound() {
    let mut random = Random::new(7);
    let mut sum = 0.0;
    let cases = [(2, 3, 3, 2), (2, 2, 2, 3), (2, 4, 2, 4), (2, 2, 2, 5), (1, 6, 5, 3), (3, 1, 2, 3)];
    for (m, k, n, p) in cases {
        let shape = shape(m, k, n);
        let models: Vec<Model> = (0..p)
            .map(|i| Model::constant(format!("p{i}"), 1.0 + (3.0 * random.unit()).floor()).unwrap())
            .collect();
        let mut platform = Platform::from_speeds(&vec![1.0; p]).unwrap();
        platform.network = Network::uniform(0.1 * random.unit(), 20.0 * 10f64.powf(random.unit()));
        platform.network.topology = if p == 4 { Topology::Bus } else { Topology::Full };
        let machine = Machine::new(platform, models, 1);
        let orders: Vec<ScheduleOptions> = [(Flow::OneToAll, 1), (Flow::Bulk, 1), (Flow::Broadcast, 0)]
            .map(|(flow, ahead)| ScheduleOptions::new(flow, 1).with_look_ahead(ahead))
            .to_vec();
        let best = exact(shape, &machine, &orders);
        let bound = time_bound(shape, &machine, 8).unwrap().unwrap();
        assert!(best >= bound * (1.0 - 1e-9), "{m} x {k} x {n} on {p}: {best} under {bound}");
        sum += best / bound;
    }
    // Whole elements on several processors: the bound divides them.
    assert!(sum / (cases.len() as f64) < 2.0, "{}", sum / cases.len() as f64);
}

/// Two splines whose highest speeds lie between points: their envelope is above them everywhere.
#[test]
fn envelopes_are_above_the_speeds() {
    let mut random = Random::new(3);
    for kind in [1, 2] {
        for _ in 0..50 {
            let model = model(kind, "p".into(), &mut random);
            let above = envelope(&model, 300).unwrap();
            let mut highest = 0.0f64;
            for size in (1..=3000).rev().map(|i| f64::from(i) * 0.1) {
                highest = highest.max(model.speed(size));
                assert!(above.speed(size) >= highest * (1.0 - 1e-9), "{kind} {size}");
            }
            assert!(above.speed(300.0) <= highest.max(above.speed(250.0)) * (1.0 + 1e-9));
        }
    }
}
