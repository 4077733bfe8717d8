//! Computations whose speed is measured, as a function of their size: updates by a kernel, steps of an
//! advection.

use crate::device::{DeviceTile, open_device};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::kernels::mpdata::{
    Advectable, Boundary, Cells, Domain, Exchange, Part, Place, Scheme, Stencil, Subdomain, sources,
};
use crate::kernels::{Advected, Kernel, View, ViewMut, donor_cell};
use crate::matrix::Element;
use crate::measure::repetition::{Computation, ComputationTrial, Trial};
use crate::measure::sweep::{Sizes, Subject};
use crate::platform::{Platform, Processor, device_tile};
use crate::process_memory::MemoryLeft;
use crate::run::parallel;
use crate::units::show_bytes;
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// A computation whose speed can be measured: [`KernelUpdate`], [`UpwindStep`], [`MpdataStep`] or
/// [`UserCommand`](super::UserCommand).
pub trait Workload: Sync {
    /// One size of it on one processor.
    type Trial<'a>: Trial
    where
        Self: 'a;

    /// The description of it for measurements on a platform.
    ///
    /// # Errors
    /// One of the sizes that are certain to be measured cannot be.
    fn subject<'a>(&'a self, platform: &'a Platform, sizes: &Sizes) -> Result<Subject<'a>>;

    /// Prepares one size on a processor, on the thread that will time it.
    fn trial<'a>(&'a self, processor: &'a Processor, rank: Rank, size: f64) -> Self::Trial<'a>;
}

/// Refuses sizes, unless there are some and none has a defect.
pub(super) fn check_sizes(
    sizes: &[f64],
    example: &str,
    defect: impl Fn(f64) -> Option<String>,
) -> Result<()> {
    let what = match sizes.iter().find_map(|size| defect(*size)) {
        Some(what) => what,
        None if sizes.is_empty() => "no size is given".into(),
        None => return Ok(()),
    };
    Err(Error::input("`sizes`", what, format!("give sizes such as {example}")))
}

/// Bytes of this machine's memory that each of `processors` processors may take.
fn memory_per_processor(processors: usize) -> f64 {
    crate::process_memory::available_memory()
        .map_or(f64::INFINITY, |free| 0.8 * free as f64 / processors as f64)
}

/// Refuses a size that does not fit the memory of this machine on all processors at once.
fn require_memory(what: String, bytes: f64, processors: usize) -> Result<()> {
    let remedy = "measure smaller sizes, or give speeds, which need no measuring";
    let plural = if processors == 1 { "" } else { "s" };
    let what = format!("measuring {what} on {processors} processor{plural}");
    crate::process_memory::require_memory("memory", &what, (bytes * processors as f64) as u128, remedy)
}

/// Bytes of the processor's own memory, and at most of its part of this machine's.
fn memory_of(processor: &Processor, processors: usize) -> f64 {
    let own = processor.memory.map_or(f64::INFINITY, |bytes| bytes as f64);
    own.min(memory_per_processor(processors))
}

/// One update of `size` elements of C (as square as whole numbers allow) by a pivot block. As in a run, the
/// pivot blocks are read in place in larger factors, a different block each time. Operands therefore come
/// from memory, not from a cache that the last update filled. Boolean matrices are measured with 30 % true
/// elements: a product with much fewer is faster.
#[derive(Debug, Clone)]
pub struct KernelUpdate<T> {
    /// The kernel.
    pub kernel: Kernel<T>,
    /// Size of a pivot block.
    pub block: u64,
}

impl<T: Element> Workload for KernelUpdate<T> {
    type Trial<'a> = ComputationTrial<TileUpdate<T>>;

    fn subject<'a>(&'a self, platform: &'a Platform, sizes: &Sizes) -> Result<Subject<'a>> {
        let (block, processors) = (self.block, platform.len());
        let certain = sizes.certain();
        check_sizes(&certain, "4096,65536,1000000", |size| {
            (!(size.is_finite() && size >= 1.0)).then(|| format!("size {size} is not at least 1"))
        })?;
        let most = certain.into_iter().fold(1.0, f64::max);
        require_memory(format!("{most} elements of C"), update_bytes::<T>(most, block), processors)?;
        platform.processors.iter().try_for_each(|processor| self.check_device(processor))?;
        Ok(Subject {
            platform,
            kernel: self.kernel.name(),
            unit: "C elements updated by one pivot block".into(),
            parameters: BTreeMap::from([("block".into(), block as f64)]),
            rounded: |size| size.sqrt().round().powi(2),
            largest: Box::new(move |processor| {
                let elements = memory_of(processor, processors) / size_of::<T>() as f64;
                let twice = 2.0 * block as f64;
                // side^2 + 4 side block <= elements. The factors beyond one block of each are not counted:
                // they are no part of the processor's work. Infinite if the memory is unknown.
                ((elements + twice * twice).sqrt() - twice).powi(2).max(1.0)
            }),
        })
    }

    fn trial<'a>(&'a self, processor: &'a Processor, rank: Rank, size: f64) -> Self::Trial<'a> {
        let update = TileUpdate::new(self.kernel.on(rank), size.sqrt() as usize, self.block as usize);
        let update = match &processor.device {
            Some(id) => update.on_device(id, processor.memory),
            None => update,
        };
        ComputationTrial::new(update, processor)
    }
}

impl<T: Element> KernelUpdate<T> {
    /// Refuses a device whose memory holds small tiles only: what would be measured is the start of thousands of
    /// kernels, without end.
    fn check_device(&self, processor: &Processor) -> Result<()> {
        let is_device = processor.device.is_some() && DeviceTile::supports(&self.kernel);
        let Some(memory) = processor.memory.filter(|_| is_device) else { return Ok(()) };
        let needed = DeviceTile::<T>::bytes(self.kernel.semiring(), SMALL_TILE, SMALL_TILE, self.block);
        if memory >= needed {
            return Ok(());
        }
        let [memory, needed] = [memory, needed].map(|bytes| show_bytes(bytes as f64));
        let what = format!(
            "{memory} are too few to measure its speed: a tile of {SMALL_TILE} x {SMALL_TILE} elements and its panels of \
             {} need {needed}",
            self.block
        );
        let place = format!("processor \"{}\": memory", processor.name);
        Err(Error::input(place, what, "give it more, or a speed with a unit, or leave the device out"))
    }

    /// How many of some sizes, in ascending order, can be measured on so many processors at once in the memory that
    /// is free; at least one.
    pub(crate) fn fitting_sizes(&self, sizes: &[f64], processors: usize) -> usize {
        let Some(left) = MemoryLeft::now() else { return sizes.len() };
        let fits =
            |size: &&f64| left.fits((update_bytes::<T>(**size, self.block) * processors as f64) as u128);
        sizes.iter().take_while(fits).count().max(1)
    }
}

/// Bytes that a processor needs for a size: C and the factors.
fn update_bytes<T>(size: f64, block: u64) -> f64 {
    let side = size.sqrt().round();
    let one = side * block as f64;
    let blocks = pivot_blocks::<T>(side as usize, block as usize) as f64;
    (side * side + 2.0 * blocks * one) * size_of::<T>() as f64
}

/// Rows of the smallest tile on a device whose speed is measured.
const SMALL_TILE: u64 = 64;

/// Bytes of both factors, so large that no cache is expected to keep a pivot block from one use to the next.
const COLD: usize = 64 << 20;

/// Number of pivot blocks in the factors of an update of side x side: that of a square product, but no more
/// than needed to keep the caches cold.
fn pivot_blocks<T>(side: usize, block: usize) -> usize {
    let one = 2 * side.saturating_mul(block).saturating_mul(size_of::<T>());
    COLD.div_ceil(one.max(1)).min(side.div_ceil(block)).max(1)
}

/// A tile of C with the factors that update it.
pub struct TileUpdate<T> {
    kernel: Kernel<T>,
    side: usize,
    block: usize,
    /// Number of pivot blocks.
    blocks: usize,
    /// The pivot block of the next update.
    next: usize,
    /// side x (blocks block).
    a: Vec<T>,
    /// (blocks block) x side.
    b: Vec<T>,
    c: Vec<T>,
    /// The device that computes, with its first pivot block, or why it cannot.
    device: Option<Result<DeviceTile<T>>>,
    /// Tiles that the device computes one after the other.
    tiles: usize,
}

impl<T: Element> TileUpdate<T> {
    fn new(kernel: Kernel<T>, side: usize, block: usize) -> Self {
        // Small numbers of both signs: no overflow and no denormals after any number of repetitions.
        let filled = |length: usize| -> Vec<T> {
            (0..length).map(|i| T::from_f64((i % 13) as f64 / 6.0 - 1.0)).collect()
        };
        let c = vec![kernel.zero(); side * side];
        let blocks = pivot_blocks::<T>(side, block);
        let (a, b) = (filled(side * blocks * block), filled(blocks * block * side));
        Self { kernel, side, block, blocks, next: 0, a, b, c, device: None, tiles: 1 }
    }

    /// The same update by a device with `memory` bytes. C, or a tile of it, and a pivot block stay there: its link is
    /// measured apart.
    fn on_device(mut self, id: &str, memory: Option<u64>) -> Self {
        let Self { kernel, block, .. } = self;
        let length = self.side as u64;
        let [side, _] = device_tile(length, length, block as u64, size_of::<T>() as u64, memory);
        self.tiles = (length.div_ceil(side) as usize).pow(2);
        let side = side as usize;
        let open = || {
            let mut tile = DeviceTile::new(&open_device(id)?, &kernel, side, side, block)?;
            tile.clear()?;
            let width = self.blocks * block;
            let a = View::dense(&self.a, self.side, width).tile(0, 0, side, block);
            let b = View::dense(&self.b, width, self.side).tile(0, 0, block, side);
            tile.update(a, b)?;
            tile.wait()?;
            Ok(tile)
        };
        self.device = Some(open());
        self
    }
}

impl<T: Element> Computation for TileUpdate<T> {
    fn compute(&mut self, threads: usize) -> Result<f64> {
        match &mut self.device {
            Some(Ok(tile)) => {
                return (0..self.tiles).map(|_| Ok(tile.compute()? + tile.wait()?)).sum();
            }
            Some(Err(error)) => return Err(Error::infeasible(error.to_string(), "see `apportion detect`")),
            None => (),
        }
        let Self { kernel, side, block, blocks, .. } = *self;
        let (width, first) = (blocks * block, self.next * block);
        self.next = (self.next + 1) % blocks;
        let a = View::dense(&self.a, side, width).tile(0, first, side, block);
        let b = View::dense(&self.b[first * side..], block, side);
        parallel::update(kernel, threads, a, b, ViewMut::dense(&mut self.c, side, side))?;
        Ok(0.0)
    }
}

/// The subject of a step of an advection. `arrays` are the values that it needs for each cell.
fn cells_subject<'a, T: Advectable>(
    platform: &'a Platform,
    sizes: &Sizes,
    arrays: f64,
    example: &str,
) -> Result<Subject<'a>> {
    let (bytes, processors) = (arrays * size_of::<T>() as f64, platform.len());
    let certain = sizes.certain();
    check_sizes(&certain, example, |size| {
        (!(size.is_finite() && size >= 1.0)).then(|| format!("size {size} is not at least 1"))
    })?;
    let most = certain.into_iter().fold(1.0, f64::max);
    require_memory(format!("{most} cells"), most * bytes, processors)?;
    Ok(Subject {
        platform,
        kernel: String::new(),
        unit: String::new(),
        parameters: BTreeMap::new(),
        rounded: |size| size.sqrt().round().powi(2),
        largest: Box::new(move |processor| memory_of(processor, processors) / bytes),
    })
}

/// One upwind (donor-cell) step. The size is the number of cells, on a grid as square as whole numbers allow.
/// The kernel's name is `"stencil-f64"` or `"stencil-f32"`, its parameters are `dimensions` = 2 and `passes`
/// = 1. Courant numbers differ from cell to cell. Every step starts from the same field, so that repetition
/// does not change the values.
#[derive(Debug, Clone, Copy, Default)]
pub struct UpwindStep<T>(PhantomData<T>);

impl<T: Advectable> Workload for UpwindStep<T> {
    type Trial<'a> = ComputationTrial<UpwindGrid<T>>;

    fn subject<'a>(&'a self, platform: &'a Platform, sizes: &Sizes) -> Result<Subject<'a>> {
        // Values per cell: psi before and after, two Courant numbers.
        let subject = cells_subject::<T>(platform, sizes, 4.0, "4096,65536,1000000")?;
        Ok(Subject {
            kernel: format!("stencil-{}", T::NAME),
            unit: "grid cells advected by one upwind step".into(),
            parameters: BTreeMap::from([("dimensions".into(), 2.0), ("passes".into(), 1.0)]),
            ..subject
        })
    }

    fn trial<'a>(&'a self, processor: &'a Processor, _: Rank, size: f64) -> Self::Trial<'a> {
        ComputationTrial::new(UpwindGrid::new(size.sqrt() as usize), processor)
    }
}

/// A square grid with a field and Courant numbers.
pub struct UpwindGrid<T> {
    side: usize,
    psi: Vec<T>,
    courant: [Vec<T>; 2],
    out: Vec<T>,
}

impl<T: Advectable> UpwindGrid<T> {
    fn new(side: usize) -> Self {
        let filled = |length: usize, scale: f64, shift: f64| -> Vec<T> {
            (0..length).map(|i| T::from_f64((i % 13) as f64 * scale + shift)).collect()
        };
        let faces = (side + 1) * side;
        Self {
            side,
            psi: filled((side + 2) * (side + 2), 0.1, 0.1),
            courant: [filled(faces, 0.04, -0.24), filled(faces, 0.03, -0.18)],
            out: filled(side * side, 0.0, 0.0),
        }
    }
}

impl<T: Advectable> Computation for UpwindGrid<T> {
    /// The threads share the rows.
    fn compute(&mut self, threads: usize) -> Result<f64> {
        let Self { side, psi, courant: [down, right], out } = self;
        let field = Advected { rows: *side, cols: *side, psi, down, right };
        let threads = threads.clamp(1, *side);
        let (mut rest, mut parts) = (&mut out[..], Vec::with_capacity(threads));
        for t in 0..threads {
            let rows = t * field.rows / threads..(t + 1) * field.rows / threads;
            let (mine, others) = rest.split_at_mut(rows.len() * field.cols);
            rest = others;
            parts.push((rows, mine));
        }
        parallel::all(parts, |(rows, mine)| donor_cell(&field, rows, mine))?;
        Ok(0.0)
    }
}

/// Levels of the grids that are measured, in three dimensions.
const LEVELS: usize = 64;

/// A whole MPDATA step. The size is the number of cells, on a periodic grid of 64 levels that is as square as
/// whole numbers allow. Repetitions go on from the field that the one before left.
#[derive(Debug, Clone, Copy)]
pub struct MpdataStep<T> {
    scheme: Scheme,
    has_courant_on_faces: bool,
    element: PhantomData<T>,
}

impl<T: Advectable> MpdataStep<T> {
    /// A step of a scheme. Its Courant number differs from face to face, as from files, or is one for each
    /// axis: that is faster.
    pub fn new(scheme: Scheme, has_courant_on_faces: bool) -> Self {
        Self { scheme, has_courant_on_faces, element: PhantomData }
    }

    /// The name of the kernel in models: `mpdata-f64`, `mpdata-nonoscillatory-f64`, …
    pub fn name(&self) -> String {
        let option = if self.scheme.nonoscillatory { "-nonoscillatory" } else { "" };
        format!("mpdata{option}-{}", T::NAME)
    }
}

impl<T: Advectable> Workload for MpdataStep<T> {
    type Trial<'a> = ComputationTrial<MpdataGrid<T>>;

    fn subject<'a>(&'a self, platform: &'a Platform, sizes: &Sizes) -> Result<Subject<'a>> {
        let scheme = self.scheme;
        let option = |on: bool| f64::from(u8::from(on));
        let mut parameters = BTreeMap::from([
            ("dimensions".into(), 3.0),
            ("passes".into(), scheme.passes as f64),
            ("infinite_gauge".into(), option(scheme.infinite_gauge)),
            ("third_order".into(), option(scheme.third_order)),
        ]);
        if self.has_courant_on_faces {
            // Only then: earlier models are of constants, and do not say so.
            parameters.insert("courant_on_faces".into(), 1.0);
        }
        // Arrays of a box: the field twice, and the Courant numbers.
        let subject = cells_subject::<T>(platform, sizes, 5.0, "65536,1048576,16777216")?;
        Ok(Subject {
            kernel: self.name(),
            unit: "grid cells advanced by one step".into(),
            parameters,
            rounded: |size| grid_sides(size).iter().map(|side| *side as f64).product(),
            ..subject
        })
    }

    fn trial<'a>(&'a self, processor: &'a Processor, _: Rank, size: f64) -> Self::Trial<'a> {
        ComputationTrial::new(MpdataGrid::new(self, size), processor)
    }
}

/// The sides of a grid of about this number of cells.
fn grid_sides(size: f64) -> [usize; 3] {
    let levels = (size.cbrt().round() as usize).clamp(1, LEVELS);
    let side = (size / levels as f64).sqrt().round().max(1.0) as usize;
    [side, side, levels]
}

/// A periodic grid with its field.
pub struct MpdataGrid<T> {
    domain: Domain,
    room: Cells,
    cells: Cells,
    subdomain: Subdomain<T>,
    /// Elements on their way across the periodic boundary.
    elements: Vec<T>,
}

impl<T: Advectable> MpdataGrid<T> {
    fn new(step: &MpdataStep<T>, size: f64) -> Self {
        let domain = Domain::new(&grid_sides(size), &[Boundary::Periodic; 3]);
        let (with, cells) = (Stencil { scheme: step.scheme, exchange: Exchange::Wide }, domain.whole());
        let mut subdomain = Subdomain::new(domain, with, cells, [true; 3], false);
        let field: Vec<T> = (0..cells.count()).map(|i| T::from_f64(1.0 + (i % 97) as f64 / 97.0)).collect();
        subdomain.unpack(Place::Centre, 1, &cells, &field);
        let room = Subdomain::<T>::room(&domain, with, &cells, [true; 3]);
        for (axis, courant) in [0.25, 0.125, 0.1875].into_iter().enumerate() {
            let courant = T::from_f64(courant);
            if step.has_courant_on_faces {
                subdomain.unpack(Place::Face(axis), 1, &room, &vec![courant; room.count()]);
            } else {
                subdomain.fill_courant(axis, courant);
            }
        }
        Self { domain, room, cells, subdomain, elements: Vec::new() }
    }
}

impl<T: Advectable> Computation for MpdataGrid<T> {
    fn compute(&mut self, threads: usize) -> Result<f64> {
        let Self { domain, room, cells, subdomain, elements } = self;
        for source in sources(domain, Place::Centre, room, true) {
            if source.shift != [0; 3] {
                elements.resize(source.here.count(), T::ZERO);
                subdomain.pack(Place::Centre, 1, &source.there(), elements);
                subdomain.unpack(Place::Centre, 1, &source.here, elements);
            }
        }
        subdomain.close(Place::Centre, 1);
        parallel::all(subdomain.parts(cells, 0, threads), Part::compute)?;
        subdomain.finish(0);
        Ok(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{MeasureOptions, measure_speeds};
    use crate::model::Models;
    use crate::run::Monitor;

    const GEMM: fn(u64) -> KernelUpdate<f64> = |block| KernelUpdate { kernel: Kernel::plus_times(), block };

    fn slowed(slowdowns: &[f64]) -> Platform {
        let mut platform = Platform::from_speeds(&vec![1.0; slowdowns.len()]).unwrap();
        for (processor, &slowdown) in platform.processors.iter_mut().zip(slowdowns) {
            processor.slowdown = slowdown;
        }
        platform
    }

    fn check_models(models: &Models, kernel: &str, sizes: &[f64]) {
        assert_eq!((models.names(), models.kernel.as_str()), (vec!["p0".to_owned(), "p1".into()], kernel));
        for model in &models.models {
            let measured: Vec<f64> = model.points().iter().map(|p| p.size).collect();
            assert_eq!(measured, sizes);
            assert!(
                model.points().iter().all(|p| p.repetitions >= 2 && p.seconds > 0.0 && p.ci >= Some(0.0))
            );
        }
    }

    /// The benchmarks check the times. This test only checks that every processor gets a complete, ordered
    /// model.
    #[test]
    fn every_processor_gets_a_model() {
        let options = MeasureOptions { seconds_per_size: 0.05, ..MeasureOptions::quick() };
        for alone in [false, true] {
            let (options, monitor) = (MeasureOptions { alone, ..options }, Monitor::new());
            let platform = slowed(&[1.0, 3.0]);
            let models =
                measure_speeds(&GEMM(16), &platform, &[900.0, 100.0, 99.0], options, &monitor).unwrap();
            // 99 and 100 are the same square.
            check_models(&models, "gemm-f64", &[100.0, 900.0]);
            assert_eq!((models.block(), monitor.progress().done, monitor.progress().total), (Some(16), 4, 4));
        }
        let (platform, monitor) = (slowed(&[1.0, 2.0]), Monitor::new());
        let step = UpwindStep::<f32>::default();
        let models = measure_speeds(&step, &platform, &[400.0, 90.0], options, &monitor).unwrap();
        check_models(&models, "stencil-f32", &[81.0, 400.0]);
        assert_eq!(models.parameters["passes"], 1.0);
        let mut platform = slowed(&[1.0, 1.0]);
        platform.processors[1].cores = vec![0, 1];
        let step = MpdataStep::<f64>::new(Scheme { nonoscillatory: true, ..Scheme::new(2).unwrap() }, true);
        let models = measure_speeds(&step, &platform, &[4096.0, 600.0], options, &monitor).unwrap();
        check_models(&models, "mpdata-nonoscillatory-f64", &[648.0, 4096.0]);
        assert_eq!((models.parameters["passes"], models.parameters["courant_on_faces"]), (2.0, 1.0));
    }

    /// What is measured before a run is what fits, and what does not is refused without the names of flags.
    #[test]
    fn sizes_that_do_not_fit_are_left_out_or_refused() {
        let sizes = [4096.0, 65_536.0, 1e15, 2e15];
        assert_eq!(GEMM(64).fitting_sizes(&sizes, 2), 2);
        assert_eq!(GEMM(64).fitting_sizes(&sizes[2..], 2), 1);
        let measured =
            measure_speeds(&GEMM(64), &slowed(&[1.0]), &sizes, MeasureOptions::quick(), &Monitor::new());
        let error = measured.unwrap_err().to_string();
        assert!(error.contains("more than is free") && !error.contains("`sizes`"), "{error}");
    }

    /// C in thousands of tiles would be measured without end.
    #[test]
    fn a_device_with_little_memory_is_not_measured() {
        let mut platform = slowed(&[1.0]);
        platform.processors[0].device = Some("opencl:0".into());
        for (bytes, refused) in [(16_000, true), (300_000, true), (100_000_000, false)] {
            platform.processors[0].memory = Some(bytes);
            let checked = GEMM(256).check_device(&platform.processors[0]);
            assert_eq!(checked.is_err(), refused, "{bytes}");
        }
    }

    #[test]
    fn bad_sizes_and_interrupts_are_errors() {
        let (options, monitor) = (MeasureOptions::quick(), Monitor::new());
        let platform = slowed(&[1.0, 2.0]);
        for bad in [vec![], vec![0.0], vec![f64::NAN], vec![1e30]] {
            let errors = [
                measure_speeds(&GEMM(64), &platform, &bad, options, &monitor).unwrap_err(),
                measure_speeds(&UpwindStep::<f64>::default(), &platform, &bad, options, &monitor)
                    .unwrap_err(),
                measure_speeds(
                    &MpdataStep::<f32>::new(Scheme::new(1).unwrap(), false),
                    &platform,
                    &bad,
                    options,
                    &monitor,
                )
                .unwrap_err(),
            ];
            assert!(errors.iter().all(|error| error.exit_code() == 2), "{errors:?}");
        }
        monitor.stop();
        let error = measure_speeds(&GEMM(64), &platform, &[100.0], options, &monitor).unwrap_err();
        assert!(matches!(error, Error::Interrupted));
    }

    #[test]
    fn threads_share_the_rows_of_a_step() {
        let [mut one, mut more] = [UpwindGrid::<f64>::new(37), UpwindGrid::<f64>::new(37)];
        one.compute(1).unwrap();
        more.compute(5).unwrap();
        assert_eq!(one.out, more.out);
        more.compute(100).unwrap();
        assert_eq!(one.out, more.out);
    }
}
