//! Emulated machines with the proportions of the thesis, and the times of products on them.

use apportion::geometry::Rank;
use apportion::kernels::Kernel;
use apportion::matrix::{LocalBlocks, Matrix};
use apportion::measure::{MeasureOptions, measure_kernel};
use apportion::model::Model;
use apportion::plan::{Layout, Plan, Shape};
use apportion::platform::{Network, Platform, Processor, Topology, parse_platform};
use apportion::product::{MatmulJob, Operands, multiply, whole_block};
use apportion::report::{Plot, plot_svg};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{MatmulSchedule, ScheduleOptions};
use apportion::select::rates;
use apportion::simulate::{CostModel, simulate};
use apportion::trace::{Activity, Trace};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Pivot block.
pub const BLOCK: u64 = 256;
/// Slowdown of the fastest processor of each experiment relative to a core of this machine. It is so large
/// that transfers at 1 Gbit/s of the thesis's machine take milliseconds here, and that a busy computer keeps
/// up.
pub const SLOWDOWN: f64 = 16.0;
/// Mbit/s and its bytes per second.
const MBIT: f64 = 1e6 / 8.0;

/// The machine of an experiment of the thesis.
#[derive(Clone, Copy)]
pub struct Original {
    /// Order of its matrices.
    pub size: u64,
    /// Flop/s of its fastest processor.
    pub speed: f64,
}

/// Two or three nodes of the HCL cluster: hcl03 of Table 3.1.
pub const HCL: Original = Original { size: 4500, speed: 1761e6 };

/// Seconds until the last processor begins to compute, and until all is done.
#[derive(Clone, Copy)]
pub struct Times {
    pub communication: f64,
    pub execution: f64,
}

impl Times {
    fn of(trace: &Trace) -> Self {
        let first = |lane: &apportion::trace::Lane| {
            lane.events.iter().find(|e| e.activity == Activity::Compute).map(|e| e.start)
        };
        let communication = trace.lanes.iter().filter_map(first).fold(0.0, f64::max);
        Self { communication, execution: trace.seconds() }
    }
}

/// Processors with a network, and their speeds as measured.
pub struct Machine {
    pub platform: Platform,
    pub models: Vec<Model>,
}

impl Machine {
    /// Multiply-adds per second at these shares.
    pub fn rates(&self, layout: &Layout) -> Vec<f64> {
        rates(&self.models, &layout.shares(), 1)
    }

    /// The speeds as weights of a layout.
    pub fn weights(&self, shape: Shape) -> Vec<f64> {
        let even = shape.elements() as f64 / self.models.len() as f64;
        self.models.iter().map(|m| m.speed(even)).collect()
    }

    /// The forecast of a layout.
    pub fn forecast(&self, layout: &Layout, order: ScheduleOptions) -> Trace {
        let conditions =
            CostModel { rates: &self.rates(layout), network: &self.platform.network, element: 8 };
        simulate(&MatmulSchedule::new(layout, order), conditions).expect("speeds are positive")
    }
}

/// The matrices of all experiments.
pub struct Bench {
    pub quick: bool,
    pub shape: Shape,
    repetitions: usize,
    /// The directory of the pictures.
    pictures: Option<PathBuf>,
    a: LocalBlocks<f64>,
    b: LocalBlocks<f64>,
    /// Multiply-adds per second of a core here, by kernel name.
    speeds: BTreeMap<String, f64>,
}

impl Bench {
    pub fn new(quick: bool, pictures: Option<PathBuf>) -> Self {
        let size = if quick { 600 } else { 1000 };
        let shape = Shape::new(size, size, size, "bench").expect("a small shape");
        let matrix = |seed: u64| {
            let elements = (0..size * size).map(|i| ((i * 31 + seed * 7) % 1009) as f64 / 500.0 - 1.0);
            whole_block(Matrix::new(size as usize, size as usize, elements.collect()))
        };
        let speeds =
            [Kernel::plus_times(), Kernel::max_plus()].map(|kernel| (kernel.name(), speed(kernel, shape)));
        let repetitions = if quick { 1 } else { 3 };
        Self {
            quick,
            shape,
            repetitions,
            pictures,
            a: matrix(1),
            b: matrix(2),
            speeds: BTreeMap::from(speeds),
        }
    }

    pub fn heading(&self) -> String {
        format!(
            "N = {} here, medians of {}; bandwidths are those of the original, scaled so that communication and computation \
             stand in its proportion.\nForecasts in parentheses.\n",
            self.shape.n, self.repetitions
        )
    }

    /// Writes the picture of a figure of the source.
    pub fn picture(&self, figure: &str, plot: impl FnOnce() -> Plot) {
        let numbered = figure.starts_with(|c: char| c.is_ascii_digit());
        if let Some(directory) = self.pictures.as_ref().filter(|_| numbered) {
            let path = directory.join(format!("becker-{figure}.svg"));
            std::fs::write(path, plot_svg(&plot())).expect("pictures can be written");
        }
    }

    /// All of these, or every few of them in a quick run.
    pub fn some<T: Copy>(&self, all: &[T], quick: &[T]) -> Vec<T> {
        if self.quick { quick.to_vec() } else { all.to_vec() }
    }

    /// Processors of constant speeds: the fastest is `slowdown` times slower than a core of this machine, and
    /// the others are slower than it by their ratios. They are emulated in real time, which a busy computer
    /// disturbs less than a slowdown of its own work.
    pub fn machine(&self, kernel: Kernel<f64>, clusters: &[(&str, f64)], slowdown: f64) -> Machine {
        let processors = clusters.iter().enumerate().map(|(i, &(cluster, slower))| {
            let speed = self.speeds[&kernel.name()] / slowdown / slower;
            Processor {
                cluster: cluster.into(),
                emulated: Some(format!("peak {speed}").parse().expect("a positive speed")),
                ..Processor::named(format!("p{i}"))
            }
        });
        let processors: Vec<Processor> = processors.collect();
        let models =
            processors.iter().filter_map(|p| Some(p.emulated.as_ref()?.model(&p.name).expect("a constant")));
        let models = models.collect();
        Machine {
            platform: Platform { name: "laboratory".into(), processors, network: Network::free() },
            models,
        }
    }

    /// A link of the given Mbit/s in the original, scaled to this machine: the ratio of communication to
    /// computation is that of the original, although both are shorter by the factors N / N' and speed' /
    /// speed.
    pub fn network(&self, machine: &Machine, original: Original, mbit: f64) -> Network {
        let fastest = machine.models[0].speed(self.shape.elements() as f64 / 2.0) * 2.0;
        let scale = fastest / original.speed * (original.size as f64 / self.shape.n as f64);
        let mut network = Network::uniform(0.0, mbit * MBIT * scale);
        network.emulate = true;
        network
    }

    /// Two clusters whose nodes have ports of 1 Gbit/s of the original, joined by one cable of `mbit`.
    pub fn cable(&self, machine: &Machine, original: Original, mbit: f64) -> Network {
        let bandwidth = |mbit| self.network(machine, original, mbit).link(Rank(0), Rank(1)).horizontal;
        let members = machine.platform.processors.iter();
        let members: String = members
            .map(|p| format!("[[processor]]\nname = \"{}\"\ncluster = \"{}\"\n", p.name, p.cluster))
            .collect();
        let text = format!(
            "{members}[network]\nemulate = true\nbandwidth = {}\n[[network.link]]\nbetween = [\"one\", \"two\"]\n\
             shared = true\nbandwidth = {}\n",
            bandwidth(1000.0),
            bandwidth(mbit)
        );
        parse_platform(&text, "laboratory").expect("a platform file").network
    }

    /// The median of some runs, after the forecast. Each product is verified, its time not counted.
    pub fn times(
        &self,
        kernel: Kernel<f64>,
        machine: &Machine,
        layout: &Layout,
        order: ScheduleOptions,
    ) -> (Times, Times) {
        let forecast = Times::of(&machine.forecast(layout, order));
        let plan = Plan::of_layout("laboratory", machine.platform.names(), layout.clone(), 1.0);
        let job = MatmulJob::new(kernel, &plan, order, &machine.models, 1);
        let monitor = Monitor::new();
        let world = World::solo(&monitor);
        let run = |_| {
            let session = Session::new(&world, &machine.platform, &monitor, job.work());
            let product = multiply(Operands::new(&self.a, &self.b), &job, &session);
            Times::of(&product.expect("the product is right").1.trace)
        };
        let mut runs: Vec<Times> = (0..self.repetitions).map(run).collect();
        let middle = runs.len() / 2;
        runs.sort_by(|a, b| a.communication.total_cmp(&b.communication));
        let communication = runs[middle].communication;
        runs.sort_by(|a, b| a.execution.total_cmp(&b.execution));
        (Times { communication, execution: runs[middle].execution }, forecast)
    }

    /// Seconds of the first cluster alone.
    pub fn alone(&self, machine: &Machine) -> f64 {
        let members = machine.platform.processors.iter().zip(&machine.models);
        let first = members.filter(|(p, _)| p.cluster == machine.platform.processors[0].cluster);
        let speed: f64 = first.map(|(_, model)| model.speed(self.shape.elements() as f64)).sum();
        self.shape.flops() / 2.0 / speed
    }
}

/// Multiply-adds per second of a kernel on half of a product.
fn speed(kernel: Kernel<f64>, shape: Shape) -> f64 {
    let platform = Platform::from_speeds(&[1.0]).expect("one processor");
    let half = shape.elements() as f64 / 2.0;
    let measured =
        measure_kernel(kernel, &platform, (&[half], BLOCK), MeasureOptions::quick(), &Monitor::new());
    measured.expect("it is not interrupted").models[0].speed(half) * BLOCK as f64
}

/// A network with another topology.
pub fn joined(mut network: Network, topology: Topology) -> Network {
    network.topology = topology;
    network
}

/// A network whose links carry one message at a time.
pub fn serial(mut network: Network) -> Network {
    network.duplex = false;
    network
}

/// Milliseconds, followed by the forecast.
pub fn cell(measured: f64, forecast: f64) -> String {
    format!("{:.1} ({:.1})", measured * 1e3, forecast * 1e3)
}
