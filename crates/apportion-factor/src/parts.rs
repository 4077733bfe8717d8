//! The parts of a factorisation as workloads whose speed is measured: what a run computes, on the matrix of one
//! processor.

use crate::LocalColumns;
use crate::application::{Elimination, ProcessorData};
use crate::device_columns::DevicePlace;
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::job::{Context, MeasuredSpeeds};
use apportion::kernels::{Kernel, Real};
use apportion::measure::{Computation, ComputationTrial, Sizes, Subject, Workload};
use apportion::model::Model;
use apportion::plan::{Factors, TileMap};
use apportion::platform::{Platform, Processor};
use apportion::random::Random;
use apportion::schedule::{
    Application, BlockTimes, Executable, FactorSchedule, FactorTask, FactorTimes, FactorWork, Parcel, Step,
};
use std::sync::Arc;
use std::time::Instant;

/// Columns of the blocks that are measured; the forecast takes those of others from them.
const BLOCKS: [u64; 3] = [32, 96, 256];
/// Rows of the matrices that are measured, and at least so many blocks.
const ROWS: [u64; 2] = [768, 1536];
const FEWEST: u64 = 4;
/// Bytes of panels that are used in turn: a panel comes from another processor, or from further than the caches next to
/// a core.
const COLD: usize = 16 << 20;

/// Bytes that a process takes while it measures with this number of processors: each has a matrix, panels, and what
/// kernels pack.
pub(crate) fn measuring_bytes(processors: usize, element: u64) -> u64 {
    let [_, rows] = ROWS;
    (processors as u64 + 1) * (rows * (rows + 2 * BLOCKS[2]) * element + COLD as u64 + (8 << 20))
}

/// Measures what the parts of a factorisation take on each processor, or recalls what was measured. With a block that
/// the user gives, only that is measured.
///
/// # Errors
/// Those of a measurement, on all ranks.
pub(crate) fn measure_parts<T: Real>(
    factors: Factors,
    block: Option<u64>,
    kernel: Kernel<T>,
    platform: &Platform,
    speeds: &MeasuredSpeeds,
    remeasure: bool,
    context: Context<'_>,
) -> Result<FactorTimes> {
    let measure = |part: Part, block: u64| -> Result<Vec<Model>> {
        let workload = PartWorkload::new(part, factors, block, kernel, platform);
        let sizes: Vec<f64> = workload.cases.iter().map(|case| case.size).collect();
        let models =
            speeds.beside(&workload, &workload.name(), block, platform, &sizes, remeasure, context)?;
        models.in_order(&platform.names())
    };
    let blocks = blocks_with(block);
    let mut times = Vec::new();
    for &block in &blocks {
        times.push(BlockTimes {
            block,
            panel: measure(Part::Panel, block)?,
            column: measure(Part::Column, block)?,
            square: measure(Part::Square, block)?,
        });
    }
    let exchange = if factors == Factors::Lu { measure(Part::Exchange, blocks[0])? } else { Vec::new() };
    Ok(FactorTimes::new(times, exchange))
}

/// A part of a factorisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The first panel is factored.
    Panel,
    /// The next block column is updated with it.
    Column,
    /// The block columns after that one are.
    Square,
    /// Rows are exchanged left of panels.
    Exchange,
}

impl Part {
    /// Its task, of `count` block columns.
    fn task(self, count: usize) -> FactorTask {
        match self {
            Self::Panel => FactorTask::Panel(0),
            Self::Column => FactorTask::Update { panel: 0, columns: 1..2 },
            Self::Square => FactorTask::Update { panel: 0, columns: 2..count },
            Self::Exchange => FactorTask::Exchange,
        }
    }
}

/// A part with blocks of one width, on matrices of some sizes.
struct PartWorkload<'p, T> {
    part: Part,
    factors: Factors,
    block: u64,
    kernel: Kernel<T>,
    /// The processors, whose devices compute.
    platform: &'p Platform,
    cases: Vec<Case>,
}

/// A matrix of one size, and the step of its factorisation that is measured. All block columns are there, whatever
/// changes: rows are as far apart as in a run.
struct Case {
    schedule: FactorSchedule,
    work: FactorWork,
    /// Elements that change.
    size: f64,
}

/// Rows of the matrices that are measured with a block.
fn rows_with(block: u64) -> Vec<u64> {
    let mut rows: Vec<u64> = ROWS.iter().map(|&rows| rows.max(FEWEST * block)).collect();
    rows.dedup();
    rows
}

/// The blocks that are measured, if the user gives one or none.
fn blocks_with(given: Option<u64>) -> Vec<u64> {
    given.map_or_else(|| BLOCKS.to_vec(), |block| vec![block.min(BLOCKS[2])])
}

/// True if every device holds the matrices that are measured, of elements of so many bytes.
pub(crate) fn fits_devices(platform: &Platform, block: Option<u64>, element: u64) -> bool {
    platform.network.devices.values().all(|memory| {
        let largest = |block: u64| rows_with(block).into_iter().max().unwrap_or(0);
        blocks_with(block).into_iter().all(|block| {
            let rows = largest(block);
            memory.most_columns(rows, block, element) >= rows
        })
    })
}

impl<'p, T: Real> PartWorkload<'p, T> {
    fn new(part: Part, factors: Factors, block: u64, kernel: Kernel<T>, platform: &'p Platform) -> Self {
        let mut rows = rows_with(block);
        if part == Part::Exchange {
            rows.drain(..rows.len() - 1);
        }
        let cases = rows.iter().map(|&n| Case::new(part, factors, n, block)).collect();
        Self { part, factors, block, kernel, platform, cases }
    }

    fn name(&self) -> String {
        let part = match self.part {
            Part::Panel => "panel",
            Part::Column => "column",
            Part::Square => "square",
            Part::Exchange => "exchange",
        };
        format!("{}-{part}-{}", self.factors, T::NAME)
    }
}

impl Case {
    fn new(part: Part, factors: Factors, n: u64, block: u64) -> Self {
        let count = n.div_ceil(block) as usize;
        let columns = TileMap::columns(n, block, 1, vec![Rank(0); count]);
        let updated = |columns: std::ops::Range<usize>| -> u64 {
            let spans = columns.map(|column| (column as u64 * block, ((column as u64 + 1) * block).min(n)));
            let lu = factors == Factors::Lu;
            spans.map(|(start, end)| (if lu { n } else { n - start }) * (end - start)).sum()
        };
        let later = |column: usize| (n - columns.span(column).end) * columns.span(column).len();
        let size = match part {
            Part::Panel => n * block,
            Part::Column => updated(1..2),
            Part::Square => updated(2..count),
            Part::Exchange => (0..count).map(later).sum(),
        };
        let schedule = FactorSchedule::new(factors, columns);
        let found = schedule.steps(Rank(0)).find_map(|step| match step {
            Step::Compute(work) if work.task == part.task(count) => Some(work),
            _ => None,
        });
        Self { work: found.expect("a factorisation has every part"), schedule, size: size as f64 }
    }
}

impl<T: Real> Workload for PartWorkload<'_, T> {
    type Trial<'a>
        = ComputationTrial<PartTrial<'a, T>>
    where
        Self: 'a;

    fn subject<'a>(&'a self, platform: &'a Platform, _: &Sizes) -> Result<Subject<'a>> {
        Ok(Subject::new(platform, self.name(), "elements changed with one block").with_block(self.block))
    }

    fn trial<'a>(&'a self, processor: &'a Processor, rank: Rank, size: f64) -> Self::Trial<'a> {
        let case = self.cases.iter().find(|case| case.size == size).expect("a size of a case");
        let device = DevicePlace::of(self.platform, rank);
        ComputationTrial::new(PartTrial(PartMatrix::new(case, self.kernel.on(rank), device)), processor)
    }
}

/// A matrix, and what is measured with it; or why there is none.
struct PartTrial<'a, T>(Result<PartMatrix<'a, T>>);

struct PartMatrix<'a, T> {
    elimination: Elimination<'a, T>,
    held: ProcessorData<T>,
    work: &'a FactorWork,
    /// The first panel, before it is factored.
    panel: Vec<T>,
    /// The same once it is factored, several times, and which one is next.
    factored: Vec<Parcel<T>>,
    next: usize,
}

impl<'a, T: Real> PartMatrix<'a, T> {
    fn new(case: &'a Case, kernel: Kernel<T>, device: Option<DevicePlace>) -> Result<Self> {
        let columns = case.schedule.blocks();
        let (n, block) = (columns.n() as usize, columns.block() as usize);
        let mut local = LocalColumns::zeros(columns, Rank(0))?;
        let mut random = Random::new(1);
        let mut view = local.view_mut();
        for i in 0..n {
            view.row(i).fill_with(|| T::from_f64(random.word() as f64 / 2f64.powi(63) - 1.0));
            if case.schedule.factors().is_symmetric() {
                view.row(i)[i] = T::from_f64(2.0 * n as f64);
            }
        }
        let panel = (0..n).flat_map(|i| local.view().row(i)[..block].to_vec()).collect();
        let elimination =
            Elimination::new(&case.schedule, kernel, vec![local], false).on_devices(vec![device]);
        let mut held = elimination.hold(Rank(0));
        let first = case.schedule.steps(Rank(0)).next();
        if let (Some(Step::Compute(first)), false) = (first, case.work.task == FactorTask::Panel(0)) {
            elimination.compute(&mut held, &first, 1)?;
        }
        let copies = |parcel: &Parcel<T>| -> Vec<Parcel<T>> {
            let count = COLD.div_ceil(size_of_val(parcel.elements()));
            (0..count).map(|_| Parcel::new(Arc::new(parcel.elements().to_vec()))).collect()
        };
        let factored = held.panel(0).map(copies).unwrap_or_default();
        // Any rows may be exchanged.
        for column in 1..columns.count() {
            let span = columns.span(column);
            let left = columns.n() - span.start;
            let pivot = |i: u64| (i + random.word() % (left - i)) as i64;
            held.pivots[column] = (0..span.len()).map(pivot).collect();
        }
        Ok(Self { elimination, held, work: &case.work, panel, factored, next: 0 })
    }
}

impl<T: Real> PartMatrix<'_, T> {
    fn compute(&mut self, threads: usize) -> Result<f64> {
        let Self { elimination, held, work, panel, factored, next } = self;
        if let FactorTask::Panel(column) = work.task {
            let width = panel.len() / held.columns.rows();
            let mut view = held.columns.view_mut();
            for (i, row) in panel.chunks_exact(width).enumerate() {
                view.row(i)[..width].copy_from_slice(row);
            }
            elimination.compute(held, work, threads)?;
            held.drop_panel(column);
            return Ok(0.0);
        }
        if let FactorTask::Update { panel, .. } = work.task {
            held.replace_panel(panel, factored[*next].clone());
            *next = (*next + 1) % factored.len();
        }
        elimination.compute(held, work, threads)
    }
}

impl<T: Real> Computation for PartTrial<'_, T> {
    fn compute(&mut self, threads: usize) -> Result<f64> {
        let Ok(matrix) = &mut self.0 else {
            return std::mem::replace(&mut self.0, Err(Error::Interrupted)).map(|_| 0.0);
        };
        let begin = Instant::now();
        let seconds = matrix.compute(threads)?;
        let Some(device) = &mut matrix.held.device else { return Ok(seconds) };
        device.wait()?;
        // By the clock: the thread's own time has neither transfers nor the device's work.
        Ok(begin.elapsed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_columns::Rectangle;
    use apportion::platform::DeviceMemory;
    use apportion_testing::{Need, skip};

    /// Every part of all kinds of factors can be computed again and again, also on a device.
    #[test]
    fn parts_compute_what_a_run_computes() {
        let mut platform = Platform::from_speeds(&[1.0]).unwrap();
        check(None);
        if apportion::device::devices().is_none_or(|devices| devices.is_empty()) {
            return skip(Need::Device, "there is no OpenCL device");
        }
        platform.processors[0].device = Some("opencl:0".into());
        platform.network.devices.insert(Rank(0), DeviceMemory::behind_unknown_link(None));
        check(DevicePlace::of(&platform, Rank(0)));
    }

    fn check(device: Option<DevicePlace>) {
        for factors in [Factors::Cholesky, Factors::Lu, Factors::Ldlt] {
            let parts = [Part::Panel, Part::Column, Part::Square, Part::Exchange];
            let parts = if factors == Factors::Lu { &parts[..] } else { &parts[..3] };
            for &part in parts {
                let case = Case::new(part, factors, 100, 16);
                let mut trial =
                    PartTrial(PartMatrix::<f64>::new(&case, Kernel::plus_times(), device.clone()));
                let before = trial.0.as_ref().unwrap().held.columns.clone();
                for _ in 0..3 {
                    trial.compute(2).unwrap();
                }
                let held = &mut trial.0.as_mut().unwrap().held;
                // What is updated below and right of the panel is on the device.
                if let Some(device) =
                    held.device.as_mut().filter(|_| matches!(part, Part::Column | Part::Square))
                {
                    let rest = Rectangle { row: 16, cols: 16..held.columns.width() };
                    device.fetch(&mut held.columns, rest).unwrap();
                }
                assert!(held.failed.is_none(), "{factors} {part:?}");
                assert!(held.columns.elements().iter().all(|x| x.is_finite()), "{factors} {part:?}");
                let changed = before.elements().iter().zip(held.columns.elements()).filter(|(x, y)| x != y);
                let changed = changed.count() as f64;
                assert!(
                    changed > 0.8 * case.size && changed <= 1.1 * case.size + 256.0,
                    "{factors} {part:?}"
                );
            }
        }
    }
}
