//! The laboratory: machines of the documents on emulated processors and links of this machine.
//!
//! An experiment keeps the proportion of the original between the time that moves a matrix and the time that
//! the fastest processor takes for the whole product. Everything else is free, and chosen so that memory
//! copies (at most a millisecond) are short compared with transfers, and that many runs fit beside each other
//! on a core: the fastest processor alone takes [`Original::here`] seconds for matrices of a few hundred
//! rows.

mod pool;
pub mod two_level;

pub use pool::{Measured, Times, Trial, measure, middle};

use apportion::error::Result;
use apportion::kernels::Kernel;
use apportion::matrix::{Element, Matrix};
use apportion::model::Model;
use apportion::plan::{Layout, Plan, Shape};
use apportion::platform::{Network, Platform, Processor, Topology, parse_platform};
use apportion::product::{MatmulJob, Operands, multiply, whole_block};
use apportion::random::Random;
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{MatmulSchedule, ScheduleOptions};
use apportion::select::rates;
use apportion::simulate::{CostModel, simulate};
use apportion::trace::Trace;

/// Pivot block.
pub const BLOCK: u64 = 256;

/// The machine of an experiment of a document, and its scale here.
#[derive(Debug, Clone, Copy)]
pub struct Original {
    /// Order of its matrices.
    pub size: u64,
    /// Flop/s of its fastest processor, or of its fastest cluster.
    pub speed: f64,
    /// Bytes of an element.
    pub element: u64,
    /// Seconds that the fastest one alone takes here.
    pub here: f64,
}

impl Original {
    /// Seconds that the fastest one alone took.
    pub fn alone(&self) -> f64 {
        2.0 * (self.size as f64).powi(3) / self.speed
    }

    /// Seconds that a matrix took at `mbit` Mbit/s.
    pub fn transfer(&self, mbit: f64) -> f64 {
        (self.size * self.size * self.element * 8) as f64 / (1e6 * mbit)
    }

    /// Seconds there for one second here.
    pub fn scale(&self) -> f64 {
        self.alone() / self.here
    }
}

/// A way to join processors.
#[derive(Debug, Clone, Copy)]
pub enum Join {
    /// One link for each pair, of this many Mbit/s in the original.
    Links { mbit: f64, duplex: bool, topology: Topology },
    /// Ports of 1 Gbit/s within a cluster, and one cable between the clusters.
    Cable { mbit: f64 },
}

/// Emulated processors with a network, for matrices of one size.
#[derive(Debug, Clone)]
pub struct Machine {
    pub platform: Platform,
    pub models: Vec<Model>,
    pub shape: Shape,
    pub original: Original,
}

/// Layouts of a shape for some weights.
pub type Layouts<'a> = &'a dyn Fn(Shape, &[f64]) -> Result<Vec<Layout>>;

/// The order of matrices, within a range, at which the layouts' shares are nearest to the weights: cuts fall
/// on whole rows and columns, so that rounding does not hide what is measured.
pub fn exact_size(
    range: std::ops::RangeInclusive<u64>,
    weights: &[f64],
    layouts: Layouts<'_>,
) -> Result<Shape> {
    let total: f64 = weights.iter().sum();
    let mut best: Option<(f64, Shape)> = None;
    for n in range {
        let shape = Shape::new(n, n, n, "laboratory")?;
        let mut off = 0.0_f64;
        for layout in layouts(shape, weights)? {
            for (share, weight) in layout.shares().iter().zip(weights) {
                off = off.max((*share as f64 / shape.elements() as f64 / (weight / total) - 1.0).abs());
            }
        }
        if best.is_none_or(|(least, _)| off < least) {
            best = Some((off, shape));
        }
    }
    Ok(best.expect("a range of sizes").1)
}

impl Machine {
    /// Processors by cluster and by how many times slower than the original's fastest they are.
    pub fn new(original: Original, members: &[(&str, f64)], shape: Shape, join: Join) -> Result<Self> {
        let fastest = (shape.n as f64).powi(3) / original.here;
        let mut processors = Vec::new();
        let mut models = Vec::new();
        for (i, &(cluster, slower)) in members.iter().enumerate() {
            let emulated: apportion::platform::Emulated = format!("peak {:e}", fastest / slower).parse()?;
            models.push(emulated.model(&format!("p{i}"))?);
            processors.push(Processor {
                cluster: cluster.into(),
                emulated: Some(emulated),
                ..Processor::named(format!("p{i}"))
            });
        }
        let mut platform = Platform { name: "laboratory".into(), processors, network: Network::free() };
        let bytes = (shape.n * shape.n * original.element) as f64;
        let bandwidth = |mbit: f64| bytes / (original.transfer(mbit) / original.scale());
        platform.network = match join {
            Join::Links { mbit, duplex, topology } => {
                let mut network = Network::uniform(0.0, bandwidth(mbit));
                (network.duplex, network.topology) = (duplex, topology);
                network
            }
            Join::Cable { mbit } => cable(&platform, bandwidth(1000.0), bandwidth(mbit))?,
        };
        platform.network.emulate = true;
        Ok(Self { platform, models, shape, original })
    }

    /// The forecast of a layout.
    pub fn forecast(&self, layout: &Layout, order: ScheduleOptions) -> Result<Trace> {
        let rates = rates(&self.models, &layout.shares(), 1);
        simulate(&MatmulSchedule::new(layout, order), self.cost_model(&rates))
    }

    /// The cost model of an application at these rates.
    pub fn cost_model<'a>(&'a self, rates: &'a [f64]) -> CostModel<'a> {
        CostModel { rates, network: &self.platform.network, element: self.original.element }
    }

    /// A verified product on this machine.
    pub fn trial(&self, kernel: Algebra, layout: &Layout, order: ScheduleOptions) -> Result<Trial> {
        let forecast = self.forecast(layout, order)?;
        let (machine, layout) = (self.clone(), layout.clone());
        let run = move |monitor: &Monitor| match kernel {
            Algebra::PlusTimes => machine.product(Kernel::plus_times(), &layout, order, monitor, |x| x),
            Algebra::MaxPlus => machine.product(Kernel::max_plus(), &layout, order, monitor, |x| x),
            Algebra::OrAnd => {
                // One of a hundred elements is true, so that the product is neither empty nor full.
                machine.product(Kernel::or_and(), &layout, order, monitor, |x| u8::from(x > 0.98))
            }
        };
        Ok(Trial { forecast: Times::of(&forecast), run: Box::new(run), scale: self.original.scale() })
    }

    fn product<T: Element>(
        &self,
        kernel: Kernel<T>,
        layout: &Layout,
        order: ScheduleOptions,
        monitor: &Monitor,
        element: impl Fn(f64) -> T,
    ) -> Result<Trace> {
        let n = self.shape.n as usize;
        let matrix = |seed: u64| {
            let mut random = Random::new(seed);
            let elements = (0..n * n).map(|_| element(2.0 * random.unit() - 1.0)).collect();
            whole_block(Matrix::new(n, n, elements))
        };
        let (a, b) = (matrix(1), matrix(2));
        let plan = Plan::of_layout("laboratory", self.platform.names(), layout.clone(), 1.0);
        let job = MatmulJob::new(kernel, &plan, order, &self.models, 1);
        let world = World::solo(monitor);
        let session = Session::new(&world, &self.platform, monitor, job.work());
        Ok(multiply(Operands::new(&a, &b), &job, &session)?.1.trace)
    }
}

/// The operations of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algebra {
    PlusTimes,
    MaxPlus,
    OrAnd,
}

/// Ports of one bandwidth, and between clusters "one" and "two" a single cable.
fn cable(platform: &Platform, port: f64, cable: f64) -> Result<Network> {
    let members: String = platform
        .processors
        .iter()
        .map(|p| format!("[[processor]]\nname = \"{}\"\ncluster = \"{}\"\n", p.name, p.cluster))
        .collect();
    let text = format!(
        "{members}[network]\nbandwidth = {port:?}\n[[network.link]]\nbetween = [\"one\", \"two\"]\n\
         shared = true\nbandwidth = {cable:?}\n"
    );
    Ok(parse_platform(&text, "laboratory")?.network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::geometry::Rank;
    use apportion::plan::shapes::{LayoutMethod, SquareCorner, StraightLine};

    const HCL: Original = Original { size: 4500, speed: 1761e6, element: 8, here: 5.0 };

    /// The proportion of the original: 103.5 s alone, and 12.96 s for a matrix at 100 Mbit/s.
    #[test]
    fn proportions_are_those_of_the_original() {
        assert!((HCL.alone() - 103.49).abs() < 0.01 && (HCL.transfer(100.0) - 12.96).abs() < 1e-9);
        let shape = Shape::new(300, 300, 300, "test").unwrap();
        let join = Join::Links { mbit: 100.0, duplex: true, topology: Topology::Full };
        let machine = Machine::new(HCL, &[("1", 1.0), ("2", 4.0)], shape, join).unwrap();
        let seconds = 300.0 * 300.0 * 8.0 / machine.platform.network.link(Rank(0), Rank(1)).horizontal;
        assert!((seconds / 5.0 - 12.96 / HCL.alone()).abs() < 1e-12);
        let weights: Vec<f64> = machine.models.iter().map(|model| model.speed(45_000.0)).collect();
        assert!((weights[0] / weights[1] - 4.0).abs() < 1e-9);
        assert!((300f64.powi(3) / weights[0] - 5.0).abs() < 1e-9);
    }

    /// At 3:1 every even size is exact; at 4:1 some size is within a tenth of a percent.
    #[test]
    fn sizes_are_exact() {
        let layouts = |shape: Shape, w: &[f64]| {
            Ok(vec![StraightLine.layout(shape, w)?, SquareCorner.layout(shape, w)?])
        };
        for (ratio, most) in [(3.0, 1e-12), (4.0, 1e-3), (17.0, 2e-2)] {
            let weights = [ratio, 1.0];
            let shape = exact_size(250..=400, &weights, &layouts).unwrap();
            for layout in layouts(shape, &weights).unwrap() {
                let share = layout.shares()[1] as f64 / shape.elements() as f64;
                assert!((share * (ratio + 1.0) - 1.0).abs() <= most, "{ratio} {shape:?}");
            }
        }
    }
}
