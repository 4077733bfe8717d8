//! Factorisations by slabs: what is asked for, how the matrix is cut, and what a checkpoint keeps.

use super::machine::KnownMachine;
use super::outputs::{bytes_of, write_slabs};
use super::{AnyColumns, Computed, FactorTask, Input, check_finite, check_memory};
use crate::LocalColumns;
use crate::local_columns::digest_of_file;
use crate::slabs::{Computers, PanelStore, RecordLayout, SlabRun, Slabs};
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::job::{
    Blocked, Context, CutReason, Keep, Kept, MemoryNeed, Outputs, finish_parts, with_kept_parts,
};
use apportion::kernels::{Kernel, Real};
use apportion::matrix::{Matrix, NpyFile};
use apportion::model::Machine;
use apportion::output::{OutputFile, is_stream};
use apportion::plan::TileMap;
use apportion::platform::Platform;
use apportion::process_memory::forget_peak_memory;
use apportion::product::Fingerprint;
use apportion::run::{Session, World};
use apportion::schedule::{Application, FactorSchedule};
use apportion::simulate::{CostModel, forecast};
use apportion::units::show_bytes;
use serde_json::json;
use std::path::PathBuf;

/// Slabs of a factorisation with a checkpoint, if nothing else decides.
const CHECKPOINT_SLABS: usize = 16;

/// Block columns that a slab has at least, if there are blocks of which so many fit.
const MANY: usize = 4;

/// Refuses slabs where the factors must be in memory, or nothing can be streamed.
pub(super) fn check(task: &FactorTask, input: &Input, solves: bool, world: &World) -> Result<()> {
    let options = &task.slabs;
    let names = [
        ("`memory`", options.memory.is_some()),
        ("`checkpoint`", options.checkpoint.is_some()),
        ("`resume`", options.resume.is_some()),
    ];
    let Some((name, _)) = names.into_iter().find(|(_, given)| *given) else { return Ok(()) };
    let refuse = |what: &str, remedy: &str| Err(Error::input(name, what, remedy));
    if let Some(layout) = task.layout.filter(|layout| !layout.has_columns()) {
        let what = format!("{layout} divides the matrix into tiles, but slabs are of block columns");
        return Err(Error::input("`method`", what, "choose auto, or a layout of block columns"));
    }
    if solves {
        let what = "a system is solved by factors that are in memory";
        return refuse(what, "leave it out, or start more processes under MPI");
    }
    if !world.is_solo() {
        let what =
            "streams the matrix through one process; under MPI each process holds its columns in memory";
        return refuse(what, "leave it out and start more processes, or run it without mpirun");
    }
    if !matches!(input, Input::Npy(_)) {
        let what = format!("{} is no .npy file, of which parts can be read", task.a.place());
        return refuse(&what, "give a NumPy .npy file, or leave it out");
    }
    if task.output.is_none() && options.directory().is_none() {
        return refuse(
            "finished block columns need a place on a disk",
            "add `output` or `checkpoint`: they are kept beside it",
        );
    }
    Ok(())
}

/// How a factorisation was computed by slabs.
#[derive(Debug, Clone)]
pub struct SlabOutcome {
    /// Number of slabs.
    pub count: usize,
    /// Columns of the widest.
    pub columns: u64,
    /// Why the matrix was cut so.
    pub reason: CutReason,
    /// Number of block columns, and of those that an earlier run had finished.
    pub blocks: usize,
    /// The latter.
    pub resumed: usize,
    /// The requested memory limit, in bytes.
    pub memory: Option<u64>,
    /// Bytes that the process was expected to hold at most.
    pub predicted: u64,
    /// The directory in which all block columns are kept, if there is one.
    pub(crate) directory: Option<PathBuf>,
    /// Bytes that each processor holds at most, by formula.
    pub(crate) processor_bytes: Vec<u64>,
    /// Seconds that the simulator predicted for the slabs that this run computed, without reading and writing.
    pub(crate) forecast_seconds: Option<f64>,
}

impl SlabOutcome {
    /// An error after the run, with instructions to continue from the block columns.
    pub(super) fn with_instructions(&self, error: Error) -> Error {
        match &self.directory {
            Some(directory) => with_kept_parts(error, &kept_columns([self.blocks; 2]), directory),
            None => error,
        }
    }
}

fn kept_columns([finished, all]: [usize; 2]) -> String {
    format!("{finished} of {all} block columns")
}

/// A checkpoint that is open.
pub(super) struct KeptPanels {
    kept: Kept,
    /// The digest of the matrix.
    digest: u64,
    /// Columns of a block, if an earlier run began it.
    pub block: Option<u64>,
}

impl KeptPanels {
    /// Opens the checkpoint of a task, if it has one. `given` is the block that the task says.
    ///
    /// # Errors
    /// It belongs to another factorisation or was begun with another block; it is to be begun but is there.
    pub(crate) fn open<T: Real>(
        task: &FactorTask,
        input: &mut Input,
        given: Option<u64>,
        kernel: Kernel<T>,
        context: Context<'_>,
    ) -> Result<Option<Self>> {
        let (Some(directory), Input::Npy(file)) = (task.slabs.directory(), input) else { return Ok(None) };
        let digest = digest_of_file::<T>(file, task.factors.is_symmetric())?;
        let inputs = vec![Fingerprint::of_file(file, digest)];
        let settings = json!({"factors": task.factors, "element": T::NAME, "kernel": kernel.about(),
                              "program": Fingerprint::program()});
        let fingerprint = Fingerprint { work: "factorisation", inputs, settings };
        let kept = task.slabs.open_kept(fingerprint, context)?.expect("there is a directory");
        let Some(begun) = &kept.begun else { return Ok(Some(Self { kept, digest, block: None })) };
        let block = begun["block"].as_u64().filter(|block| *block > 0);
        let block = block.ok_or_else(|| kept.checkpoint.damaged("says no block"))?;
        if given.is_some_and(|given| given != block) {
            let name = if task.sources.plan.is_some() { "`plan`" } else { "`block`" };
            let place = directory.display();
            let what = format!("the factorisation in {place} was started with blocks of {block} columns");
            return Err(Error::input(name, what, "remove the flag, or start in another directory"));
        }
        Ok(Some(Self { kept, digest, block: Some(block) }))
    }

    /// Deletes the block columns from one on, which are wrong, and says so.
    fn remove_from(&self, first: usize, count: usize, context: Context<'_>) -> Result<()> {
        self.kept.checkpoint.remove_from(first)?;
        context.note(format!(
            "the factors are wrong from block column {first} of {count} on, counted from 0: those that were kept are \
             deleted and computed again"
        ));
        Ok(())
    }
}

/// The limit within which a matrix of n rows is factored by slabs, as it does not fit the free memory of a process alone
/// at once with `held` bytes for each element, or the limit that was asked for does not; `None` if it fits. `may` says
/// that it can be cut.
///
/// # Errors
/// It does not fit and cannot be cut: exit code 2.
pub(super) fn limit_by_free_memory(
    task: &FactorTask,
    n: u64,
    held: u64,
    may: bool,
    context: Context<'_>,
) -> Result<Option<u64>> {
    let need = MemoryNeed {
        place: &task.a.place(),
        what: &format!("a matrix of {n} rows, factored in memory,"),
        bytes: u128::from(n) * u128::from(n) * u128::from(held),
        parts: (may && task.output.is_some()).then_some("factored by slabs"),
        remedy: match may {
            true => "add `output`, which slabs of the matrix need, or use a machine with more memory",
            false => "use a machine with more memory, or more processes by `engine = mpi`",
        },
    };
    task.slabs.limit_by_free_memory(need, context)
}

/// Those of some blocks of which enough block columns fit into the memory of the process, in their order; a smaller one
/// if none does, unless the task says the block.
///
/// # Errors
/// Not even one block column fits: exit code 1, with the bytes that it needs.
pub(super) fn fitting_blocks(
    task: &FactorTask,
    n: u64,
    element: u64,
    blocks: Vec<u64>,
    given: bool,
    platform: &Platform,
) -> Result<Vec<u64>> {
    let Some(memory) = task.slabs.memory else { return Ok(blocks) };
    let (processors, computers) = (platform.len(), computers(platform, task, element));
    let needs = |block: u64, width: usize| {
        let owners = (0..n.div_ceil(block) as usize).map(|column| Rank(column % processors)).collect();
        let columns = TileMap::columns(n, block, processors, owners);
        Slabs::new(&FactorSchedule::new(task.factors, columns), width).process_bytes(computers)
    };
    let fits = |block: &u64, width: usize| needs(*block, width) <= memory;
    let least = blocks.iter().copied().min().unwrap_or(1);
    let (many, some): (Vec<u64>, Vec<u64>) = if given {
        (Vec::new(), blocks)
    } else {
        let smaller: Vec<u64> =
            std::iter::successors(Some(least), |&b| (b > 1).then(|| b.div_ceil(2))).skip(1).collect();
        let many = blocks.into_iter().filter(|block| fits(block, MANY)).collect();
        (
            many,
            smaller
                .iter()
                .copied()
                .filter(|block| fits(block, MANY))
                .chain(smaller.iter().copied())
                .collect(),
        )
    };
    if !many.is_empty() {
        return Ok(many);
    }
    match some.iter().find(|block| fits(block, 1)) {
        Some(block) => Ok(vec![*block]),
        None => {
            let block = some.last().copied().unwrap_or(least);
            Err(too_little(memory, block, needs(block, 1)))
        }
    }
}

/// The error of a limit that not even a slab of one block column fits.
fn too_little(memory: u64, block: u64, needs: u64) -> Error {
    let [memory, needs] = [memory, needs].map(|bytes| show_bytes(bytes as f64));
    let plural = if block == 1 { "" } else { "s" };
    Error::infeasible(
        format!("{memory} of memory are too few: a slab of {block} column{plural} needs {needs}"),
        "give more memory, a smaller `block`, or fewer processors",
    )
}

/// The threads of all processors, and how they get panels.
fn computers(platform: &Platform, task: &FactorTask, element: u64) -> Computers {
    let threads = platform.processors.iter().map(|processor| processor.cores.len().max(1) as u64).sum();
    Computers { threads, copies: task.copy || platform.has_memories_of_its_own(), element }
}

/// Slabs, and why.
pub(super) struct SlabCut {
    slabs: Slabs,
    reason: CutReason,
    predicted: u64,
}

/// Bytes that each processor holds at most, by formula, where the matrix is in memory.
pub(super) fn whole_bytes(schedule: &FactorSchedule, element: u64) -> Vec<u64> {
    (0..schedule.processors()).map(|rank| schedule.memory(Rank(rank)) * element).collect()
}

/// Cuts the matrix where it was asked for, or where it does not fit the memory of the processors; otherwise it is
/// factored in memory. `may` says that it can be cut.
///
/// # Errors
/// Nothing fits: exit code 1.
pub(super) fn cut(
    task: &FactorTask,
    schedule: &FactorSchedule,
    machine: &Machine,
    element: u64,
    may: bool,
) -> Result<Option<SlabCut>> {
    let mut reason = if task.slabs.memory.is_some() { CutReason::Memory } else { CutReason::Default };
    if !task.slabs.requested() {
        let Err(error) = check_memory(machine, &whole_bytes(schedule, element)) else { return Ok(None) };
        reason = CutReason::ProcessorMemory;
        match (error, &task.output) {
            (Error::TooLittleMemory { what, .. }, None) if may => {
                let remedy = "give it a lower speed, or add `output`, which slabs of the matrix need".into();
                return Err(Error::TooLittleMemory { what, remedy });
            }
            (error, _) if !may || !schedule.blocks().are_columns() => return Err(error),
            _ => {}
        }
    }
    let computers = computers(&machine.platform, task, element);
    let count = schedule.blocks().count();
    let most = match task.slabs.memory {
        None if task.slabs.directory().is_some() => count.div_ceil(CHECKPOINT_SLABS),
        _ => count,
    };
    let fits = |slabs: &Slabs| {
        slabs.width() <= most
            && task.slabs.memory.is_none_or(|memory| slabs.process_bytes(computers) <= memory)
            && check_memory(machine, &slabs.processor_bytes(element)).is_ok()
    };
    let Some(slabs) = Slabs::widest(schedule, fits) else {
        let least = Slabs::new(schedule, 1);
        check_memory(machine, &least.processor_bytes(element))?;
        let (memory, needs) = (task.slabs.memory.unwrap_or(0), least.process_bytes(computers));
        return Err(too_little(memory, schedule.blocks().block(), needs));
    };
    let predicted = slabs.process_bytes(computers);
    Ok(Some(SlabCut { slabs, reason, predicted }))
}

/// What a factorisation by slabs needs besides the slabs.
pub(super) struct SlabWork<'a> {
    pub task: &'a FactorTask,
    pub known: &'a KnownMachine,
    pub kept: Option<KeptPanels>,
    pub context: Context<'a>,
}

impl SlabWork<'_> {
    /// Factors the matrix in a file.
    ///
    /// # Errors
    /// The matrix has no such factors; the files cannot be read or written.
    pub(crate) fn run<T: Real, R>(
        &self,
        file: &mut NpyFile,
        cut: &SlabCut,
        mut outputs: Outputs,
        result: R,
    ) -> Result<Computed<R>> {
        let Self { task, known, kept, context } = self;
        let slabs = &cut.slabs;
        let (platform, factors) = (&known.machine.platform, slabs.factors());
        forget_peak_memory();
        let layout = RecordLayout::new(factors, slabs.columns().clone());
        let store = PanelStore::<T>::create(self.temporary()?, layout)?;
        // The panels have taken their room, perhaps on the same disk.
        outputs.reserve(bytes_of(slabs.columns().n(), size_of::<T>() as u64))?;
        let work: f64 = slabs.from(0).flat_map(|range| work_of(&slabs.schedule(range))).sum();
        let session = Session::new(context.world, platform, context.monitor, work).copying(task.copy);
        let mut run = SlabRun::new(slabs, Kernel::plus_times(), store, task.seed, &session);
        let count = slabs.columns().count();
        if let Some(KeptPanels { kept, .. }) = kept {
            kept.begin(json!({"block": slabs.columns().block()}))?;
        }
        let done = context.watch("factoring", || {
            run.look(file, kept.as_ref().map(|kept| kept.digest), &|own| check_finite(own, task))?;
            let mut again = kept.is_some();
            loop {
                let mut work = WorkBySlabs { run: &mut run, file };
                let resumed = finish_parts(&mut work, kept.as_ref().map(|kept| &kept.kept), *context)?;
                let pivots = run.all_pivots();
                let error = match run.verify(&pivots) {
                    Ok(residual) => {
                        file.check_unchanged()?;
                        return Ok((resumed, pivots, residual));
                    }
                    Err(error) => error,
                };
                let (Some(kept), Error::WrongResult { .. }) = (kept, &error) else { return Err(error) };
                let first = run.first_wrong(file, &pivots)?;
                kept.remove_from(first, count, *context)?;
                if !std::mem::take(&mut again) {
                    return Err(error);
                }
                run.restart();
            }
        });
        let kept_so_far = |error| self.with_finished_panels(error, count);
        let (resumed, pivots, residual) = done.map_err(kept_so_far)?;
        let written = context.watch("writing", || {
            let begin = std::time::Instant::now();
            let files = write_slabs(outputs, &run, &pivots, slabs.columns().n(), context.world)?;
            Ok((files, begin.elapsed().as_secs_f64()))
        });
        let (files, seconds) = written.map_err(kept_so_far)?;
        let outcome = SlabOutcome {
            count: slabs.count(),
            columns: slabs.column_count(),
            reason: cut.reason,
            blocks: count,
            resumed,
            memory: task.slabs.memory,
            predicted: cut.predicted,
            directory: task.slabs.directory().cloned(),
            processor_bytes: slabs.processor_bytes(size_of::<T>() as u64),
            forecast_seconds: self.forecast(slabs, resumed, size_of::<T>() as u64)?,
        };
        Ok(Computed {
            columns: AnyColumns::new(Vec::<LocalColumns<T>>::new()),
            pivots,
            files,
            residual,
            verify_seconds: run.verify_seconds,
            io_seconds: run.io_seconds + seconds,
            trace: run.trace,
            slabs: Some(outcome),
            result,
        })
    }

    /// The file of finished panels: in the directory of the checkpoint, or beside the output.
    fn temporary(&self) -> Result<OutputFile> {
        if let Some(kept) = &self.kept {
            return kept.kept.checkpoint.scratch();
        }
        let output = self.task.output.as_ref().filter(|path| !is_stream(path));
        let place = output.map_or_else(std::env::temp_dir, |path| path.with_file_name(""));
        OutputFile::create_own(place.join(".apportion-panels"), ".apportion-")
    }

    /// The error of a run whose finished block columns are kept, with instructions to continue. A matrix that has no
    /// such factors has none in the next run either.
    fn with_finished_panels(&self, error: Error, count: usize) -> Error {
        let (Some(directory), Some(kept)) = (self.task.slabs.directory(), &self.kept) else { return error };
        match (&error, kept.kept.checkpoint.count()) {
            (Error::Infeasible { .. } | Error::WrongResult { .. }, _) | (_, Err(_)) => error,
            (_, Ok(finished)) => with_kept_parts(error, &kept_columns([finished, count]), directory),
        }
    }

    /// The seconds of all slabs from a block column on, without reading and writing.
    fn forecast(&self, slabs: &Slabs, first: usize, element: u64) -> Result<Option<f64>> {
        let KnownMachine { machine, times, .. } = self.known;
        if machine.only_ratios() {
            return Ok(None);
        }
        let mut seconds = 0.0;
        for range in slabs.from(first) {
            let schedule = slabs.schedule(range).with_times(times.clone());
            let rates = schedule.rates(machine);
            let costs = CostModel { rates: &rates, network: &machine.platform.network, element };
            seconds += forecast(&schedule, costs)?.seconds;
        }
        Ok(Some(seconds))
    }
}

/// Block columns that leave memory for a temporary file.
struct WorkBySlabs<'w, 'r, T> {
    run: &'w mut SlabRun<'r, T>,
    file: &'w mut NpyFile,
}

impl<T: Real> Blocked<T> for WorkBySlabs<'_, '_, T> {
    fn count(&self) -> usize {
        self.run.count()
    }

    fn sizes(&self, part: usize) -> [u64; 2] {
        [1, self.run.record_elements(part)]
    }

    fn take(&mut self, _: usize, record: Option<Matrix<T>>) -> Result<()> {
        record.map_or(Ok(()), |record| self.run.resume(record.as_slice()))
    }

    fn compute(&mut self, _: usize, keep: &mut Keep<'_, T>) -> Result<usize> {
        let mut save = |column: usize, record: Vec<T>| keep(column, &Matrix::new(1, record.len(), record));
        self.run.factor(self.file, &mut save).map(|()| self.run.count())
    }
}

fn work_of(schedule: &FactorSchedule) -> Vec<f64> {
    (0..schedule.processors()).map(|rank| schedule.work(Rank(rank))).collect()
}
