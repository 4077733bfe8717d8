//! A tile of C on a device.

#![allow(unsafe_code)]

use crate::device::host::{HostRows, HostRowsMut, Placed};
use crate::device::race::{self, Compiled};
use crate::device::variant::{Arithmetic, Items, Sizes, Strips, pitch};
use crate::device::{Argument, Buffer, Device, Event, Launch};
use crate::error::{Error, Result};
use crate::kernels::{Kernel, Semiring, View, ViewMut};
use crate::matrix::Element;
use crate::units::show_bytes;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// A tile of C that stays on a device while panels of A and B go up, two at a time: one is being used while the
/// next is written.
#[derive(Debug)]
pub struct DeviceTile<T> {
    device: Arc<dyn Device>,
    arithmetic: Arithmetic,
    compiled: Arc<Compiled>,
    sizes: Sizes,
    rows: usize,
    cols: usize,
    buffers: Buffers,
    /// The end of the last kernel that read A and B as they had arrived.
    packed: Option<Arc<Event>>,
    /// Kernels whose seconds are not counted yet, in the order of their starts.
    pending: VecDeque<Arc<Event>>,
    /// Seconds of kernels that have ended, not returned yet.
    seconds: f64,
    /// The number of the last update.
    number: u32,
    /// Rows, depth and columns of the panels that are on the device.
    panels: Option<[usize; 3]>,
    bytes_up: u64,
    bytes_down: u64,
    elements: PhantomData<fn(T) -> T>,
}

/// The memory of a tile.
#[derive(Debug)]
struct Buffers {
    c: Buffer,
    a: Buffer,
    b: Buffer,
    packed_a: Buffer,
    packed_b: Buffer,
    flag: Buffer,
}

impl<T: Element> DeviceTile<T> {
    /// Finds the fastest variant of a kernel on a device: at first use by a short race, which compiles all variants
    /// and needs a few MB of the device's memory for a moment. The choice is kept in the user's cache directory.
    /// `progress` hears how many of how many variants are compiled; an error of it is that of the call.
    ///
    /// # Errors
    /// As [`DeviceTile::new`].
    ///
    /// # Panics
    /// As [`DeviceTile::new`].
    pub fn prepare(
        device: &Arc<dyn Device>,
        kernel: &Kernel<T>,
        progress: &mut dyn FnMut(usize, usize) -> Result<()>,
    ) -> Result<()> {
        race::fastest::<T>(device, Self::arithmetic(device, kernel)?, progress).map(|_| ())
    }

    /// The arithmetic of a kernel that the device computes.
    fn arithmetic(device: &Arc<dyn Device>, kernel: &Kernel<T>) -> Result<Arithmetic> {
        assert!(Self::supports(kernel), "a device does not compute over {}", kernel.name());
        let arithmetic = Arithmetic::of::<T>(kernel.semiring()).expect("supported");
        arithmetic.check(device.info())?;
        Ok(arithmetic)
    }

    /// A tile of `rows` x `cols` elements with unspecified contents. `depth` is the largest number of columns of
    /// A in an update. The first tile of a kernel [prepares](DeviceTile::prepare) it.
    ///
    /// # Errors
    /// The device has no double precision, or is not exact where the semiring is: exit code 2. It has too little
    /// memory, or fails: exit code 1.
    ///
    /// # Panics
    /// If devices do not compute over the kernel ([`DeviceTile::supports`]).
    pub fn new(
        device: &Arc<dyn Device>,
        kernel: &Kernel<T>,
        rows: usize,
        cols: usize,
        depth: usize,
    ) -> Result<Self> {
        let arithmetic = Self::arithmetic(device, kernel)?;
        let needed = Self::bytes(kernel.semiring(), rows as u64, cols as u64, depth as u64);
        let free = device.free_bytes();
        if needed > free {
            return Err(Error::TooLittleMemory {
                what: format!(
                    "{} has {} of memory free, and a tile of {rows} x {cols} needs {}",
                    device.info(),
                    show_bytes(free as f64),
                    show_bytes(needed as f64)
                ),
                remedy: "give the device less `memory` in the platform file, so that its tiles are smaller"
                    .into(),
            });
        }
        let compiled = race::fastest::<T>(device, arithmetic, &mut |_, _| Ok(()))?;
        Self::with(device, arithmetic, compiled, [rows, cols, depth])
    }

    /// A tile that one variant computes.
    pub(super) fn with(
        device: &Arc<dyn Device>,
        arithmetic: Arithmetic,
        compiled: Arc<Compiled>,
        [rows, cols, depth]: [usize; 3],
    ) -> Result<Self> {
        let sizes = Sizes::new(arithmetic, rows as u64, cols as u64, depth as u64);
        let buffers = Buffers {
            c: device.allocate(sizes.c)?,
            a: device.allocate(sizes.a)?,
            b: device.allocate(sizes.b)?,
            packed_a: device.allocate(sizes.packed_a)?,
            packed_b: device.allocate(sizes.packed_b)?,
            flag: device.allocate(Sizes::FLAG)?,
        };
        let no_update = HostRows::of(View::dense(&[0u32], 1, 1));
        device.upload(None, &[Placed::at_start(no_update, size_of::<u32>())], &buffers.flag)?;
        Ok(Self {
            device: Arc::clone(device),
            arithmetic,
            compiled,
            sizes,
            rows,
            cols,
            buffers,
            packed: None,
            pending: VecDeque::new(),
            seconds: 0.0,
            number: 0,
            panels: None,
            bytes_up: 0,
            bytes_down: 0,
            elements: PhantomData,
        })
    }

    /// Bytes of device memory that [`DeviceTile::new`] allocates.
    ///
    /// # Panics
    /// If devices do not compute over the semiring with these elements.
    pub fn bytes(semiring: Semiring, rows: u64, cols: u64, depth: u64) -> u64 {
        let arithmetic = Arithmetic::of::<T>(semiring).expect("a semiring that devices compute over");
        Sizes::new(arithmetic, rows, cols, depth).total()
    }

    /// True if devices can compute over this kernel: a semiring over plain elements, and no loop of the caller's
    /// own. A kernel that uses a library on cores is computed by the device's own kernel.
    pub fn supports(kernel: &Kernel<T>) -> bool {
        !kernel.is_own() && Arithmetic::of::<T>(kernel.semiring()).is_some()
    }

    /// Makes this a tile of another shape, with unspecified contents.
    ///
    /// # Panics
    /// If C does not fit into the memory. A tile with no more rows and no more columns than the first always fits.
    pub fn reshape(&mut self, rows: usize, cols: usize) {
        let sizes = Sizes::new(self.arithmetic, rows as u64, cols as u64, 0);
        assert!(
            sizes.c <= self.sizes.c,
            "a tile of {rows} x {cols} fits the memory of the first: {} bytes",
            self.sizes.c
        );
        (self.rows, self.cols) = (rows, cols);
    }

    /// C := zero of the semiring, on the device.
    ///
    /// # Errors
    /// The device fails: exit code 1.
    pub fn clear(&mut self) -> Result<()> {
        let length = self.rows as u64 * pitch(self.cols as u64);
        self.fill(length, |buffers| &buffers.c)
    }

    /// Writes to all memory of the tile: drivers find memory where it is used first.
    ///
    /// # Errors
    /// The device fails: exit code 1.
    pub fn touch(&mut self) -> Result<()> {
        let (Sizes { c, a, b, packed_a, packed_b }, element) = (self.sizes, size_of::<T>() as u64);
        self.fill(c / element, |buffers| &buffers.c)?;
        self.fill(a / element, |buffers| &buffers.a)?;
        self.fill(b / element, |buffers| &buffers.b)?;
        self.fill(packed_a / element, |buffers| &buffers.packed_a)?;
        self.fill(packed_b / element, |buffers| &buffers.packed_b)?;
        self.wait().map(|_| ())
    }

    /// Fills a buffer with zeros of the semiring up to this number of elements.
    fn fill(&mut self, length: u64, buffer: fn(&Buffers) -> &Buffer) -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        let items = Strips::sweep(self.compiled.variant);
        let launch = launch(&self.compiled, "clear", items, &[]);
        let arguments = [Argument::Buffer(buffer(&self.buffers)), Argument::U64(length)];
        // SAFETY: `clear` takes these arguments, and writes as many elements as the buffer holds.
        let event = unsafe { self.device.launch(&Launch { arguments: &arguments, ..launch }) }?;
        self.pending.push_back(Arc::new(event));
        Ok(())
    }

    /// C := the tile (for products that are added to C).
    ///
    /// # Errors
    /// The device fails: exit code 1.
    ///
    /// # Panics
    /// If the tile has another shape.
    pub fn upload(&mut self, c: View<T>) -> Result<()> {
        assert_eq!([c.rows(), c.cols()], [self.rows, self.cols], "the tile has the shape of C");
        let last = self.pending.back().cloned();
        let rows = Placed::at_start(HostRows::of(c), self.pitch_bytes());
        self.device.upload(last.as_deref(), &[rows], &self.buffers.c)?;
        self.bytes_up += self.tile_bytes();
        Ok(())
    }

    /// Some rows of the tile from column `col` on := those of `c`, one after the other. Waits until what has been
    /// started before has ended.
    ///
    /// # Errors
    /// The device fails: exit code 1.
    ///
    /// # Panics
    /// If there are not as many rows, or they are not within the tile.
    pub fn upload_rows(&mut self, rows: &[usize], col: usize, c: View<T>) -> Result<()> {
        self.check_rows(rows, col, [c.rows(), c.cols()]);
        let (pitch, width) = (self.pitch_bytes(), c.cols());
        let mut done = 0;
        let copies: Vec<Placed<HostRows<'_>>> = runs(rows)
            .map(|run| {
                let part = HostRows::of(c.tile(done, 0, run.len(), width));
                done += run.len();
                Placed { rows: part, first: run.start * pitch + col * size_of::<T>(), pitch }
            })
            .collect();
        let last = self.pending.back().cloned();
        self.device.upload(last.as_deref(), &copies, &self.buffers.c)?;
        self.bytes_up += (rows.len() * width * size_of::<T>()) as u64;
        Ok(())
    }

    /// `c` := some rows of the tile from column `col` on, one after the other. Waits for all kernels; returns seconds as
    /// [`DeviceTile::update`] does.
    ///
    /// # Errors
    /// The device fails: exit code 1.
    ///
    /// # Panics
    /// If there are not as many rows, or they are not within the tile.
    pub fn download_rows(&mut self, rows: &[usize], col: usize, c: ViewMut<T>) -> Result<f64> {
        self.check_rows(rows, col, [c.rows(), c.cols()]);
        let (pitch, width) = (self.pitch_bytes(), c.cols());
        let (mut copies, mut rest) = (Vec::new(), c);
        for run in runs(rows) {
            let (part, others) = rest.split_at_row(run.len());
            rest = others;
            let first = run.start * pitch + col * size_of::<T>();
            copies.push(Placed { rows: HostRowsMut::of(part), first, pitch });
        }
        let last = self.pending.back().cloned();
        self.device.download(last.as_deref(), &self.buffers.c, &mut copies, &mut || Ok(()))?;
        self.bytes_down += (rows.len() * width * size_of::<T>()) as u64;
        self.collect(true)
    }

    /// Panics unless some rows are as many as those of the host, and within the tile.
    fn check_rows(&self, rows: &[usize], col: usize, [count, width]: [usize; 2]) {
        assert_eq!(rows.len(), count, "as many rows on the device as on its host");
        assert!(
            rows.iter().all(|row| *row < self.rows) && col + width <= self.cols,
            "rows of {width} elements from column {col} on are in a tile of {} x {}",
            self.rows,
            self.cols
        );
    }

    /// C := C + A B. Waits until the memory for panels is free (the update before the last has ended), copies A
    /// and B, and returns while the device computes. Returns the seconds for which it computed what ended since
    /// the last call.
    ///
    /// # Errors
    /// The device fails: exit code 1.
    ///
    /// # Panics
    /// If the shapes do not fit: A is m x k, B k x n, C m x n; or the panels do not fit into the memory.
    pub fn update(&mut self, a: View<T>, b: View<T>) -> Result<f64> {
        assert_eq!([a.rows(), b.cols()], [self.rows, self.cols], "the product has the shape of C");
        self.update_part([0, 0], a, b)
    }

    /// The same for a part of C, whose first element is at `corner`.
    ///
    /// # Errors
    /// As [`DeviceTile::update`].
    ///
    /// # Panics
    /// If the part is not within C, or the panels do not fit into the memory.
    pub fn update_part(&mut self, corner: [usize; 2], a: View<T>, b: View<T>) -> Result<f64> {
        let [row, col] = corner;
        assert!(
            row + a.rows() <= self.rows && col + b.cols() <= self.cols && a.cols() == b.rows(),
            "the product of {} x {} and {} x {} at ({row}, {col}) is in a tile of {} x {}",
            a.rows(),
            a.cols(),
            b.rows(),
            b.cols(),
            self.rows,
            self.cols
        );
        let shape = [a.rows(), a.cols(), b.cols()];
        if shape.contains(&0) {
            return self.collect(false);
        }
        self.send(a, b)?;
        self.start(corner, shape)?;
        self.collect(false)
    }

    /// Copies the panels of an update when their memory is free (the update before the last has ended), for
    /// [`DeviceTile::compute`].
    ///
    /// # Errors
    /// The device fails: exit code 1.
    ///
    /// # Panics
    /// If A has other columns than B has rows, or the panels do not fit into the memory.
    pub fn send(&mut self, a: View<T>, b: View<T>) -> Result<()> {
        let shape = self.check_panels(a, b);
        let free = self.packed.take();
        self.copy(free.as_deref(), a, b)?;
        self.sent(shape);
        Ok(())
    }

    /// Panels of this shape have gone up.
    fn sent(&mut self, shape @ [rows, depth, cols]: [usize; 3]) {
        self.bytes_up += ((rows + cols) * depth * size_of::<T>()) as u64;
        self.panels = Some(shape);
    }

    /// Panics unless the panels of an update fit their memory. Returns their rows, depth and columns.
    fn check_panels(&self, a: View<T>, b: View<T>) -> [usize; 3] {
        assert_eq!(a.cols(), b.rows(), "A has as many columns as B has rows");
        let shape @ [rows, depth, cols] = [a.rows(), a.cols(), b.cols()];
        let [packed_a, packed_b] = Strips::new(self.compiled.variant, self.arithmetic, shape).bytes();
        let [a, b] = [rows * depth, depth * cols].map(|elements| (elements * size_of::<T>()) as u64);
        let Sizes { a: most_a, b: most_b, .. } = self.sizes;
        assert!(
            a <= most_a && b <= most_b && packed_a <= self.sizes.packed_a && packed_b <= self.sizes.packed_b,
            "panels of {depth} for a tile of {rows} x {cols} fit the memory of the first"
        );
        shape
    }

    /// Copies panels to the device, where their memory is free after an event.
    fn copy(&self, free: Option<&Event>, a: View<T>, b: View<T>) -> Result<()> {
        for (panel, buffer) in [(a, &self.buffers.a), (b, &self.buffers.b)] {
            let rows = Placed::at_start(HostRows::of(panel), panel.cols() * size_of::<T>());
            self.device.upload(free, &[rows], buffer)?;
        }
        Ok(())
    }

    /// C := C + A B with the panels that are on the device, once more if they have been used. Returns while the
    /// device computes, and seconds as [`DeviceTile::update`] does.
    ///
    /// # Errors
    /// The device fails: exit code 1.
    ///
    /// # Panics
    /// If there are no panels, or those of a tile of another shape.
    pub fn compute(&mut self) -> Result<f64> {
        let shape = self.panels.expect("panels go up before they are used");
        assert_eq!([shape[0], shape[2]], [self.rows, self.cols], "the panels are those of the tile");
        if !shape.contains(&0) {
            self.start([0, 0], shape)?;
        }
        self.collect(false)
    }

    /// Starts the kernels of an update, whose panels have arrived.
    fn start(&mut self, [row, col]: [usize; 2], shape @ [rows, depth, cols]: [usize; 3]) -> Result<()> {
        let strips = Strips::new(self.compiled.variant, self.arithmetic, shape);
        // Zero is the flag of no update.
        self.number = self.number.checked_add(1).expect("fewer than 2^32 updates");
        let word = |size: usize| Argument::U32(u32::try_from(size).expect("sizes of a tile are below 2^32"));
        let Buffers { c, a, b, packed_a, packed_b, flag } = &self.buffers;
        let (flag, number) = (Argument::Buffer(flag), Argument::U32(self.number));
        let mut run = |kernel: &'static str, items: Items, arguments: &[Argument]| {
            // SAFETY: the kernels take these arguments, in the order of their declarations. The strips fit the
            // buffers of packed panels and the panels theirs, as was checked; the part is within the padded rows
            // of C, and its last vector ends within the padding of the buffer.
            let event = unsafe { self.device.launch(&launch(&self.compiled, kernel, items, arguments)) }?;
            let event = Arc::new(event);
            self.pending.push_back(Arc::clone(&event));
            Ok::<_, Error>(event)
        };
        let scans = self.arithmetic.scans(self.compiled.variant);
        if scans {
            let length = |rows: usize, cols: usize| Argument::U64(rows as u64 * cols as u64);
            let (a, b) = (Argument::Buffer(a), Argument::Buffer(b));
            let arguments = [a, length(rows, depth), b, length(depth, cols), flag, number];
            run("scan", Strips::sweep(self.compiled.variant), &arguments)?;
        }
        let padded = word(strips.depth);
        for (kernel, items, from, length, to) in
            [("pack_a", strips.pack_a(), a, rows, packed_a), ("pack_b", strips.pack_b(), b, cols, packed_b)]
        {
            let (from, to) = (Argument::Buffer(from), Argument::Buffer(to));
            let packing = [from, word(length), word(depth), padded, to, flag, number];
            self.packed = Some(run(kernel, items, &packing)?);
        }
        let [a, b, c] = [packed_a, packed_b, c].map(Argument::Buffer);
        let pitch = pitch(self.cols as u64);
        let offset = Argument::U64(row as u64 * pitch + col as u64);
        let pitch = word(pitch as usize);
        for part in strips.parts() {
            let (first, end) = (word(part.start), word(part.end));
            let arguments =
                [a, b, c, offset, pitch, word(rows), word(cols), padded, first, end, flag, number];
            for kernel in ["update", "update_exact"].into_iter().take(1 + usize::from(scans)) {
                run(kernel, strips.update(part.len()), &arguments)?;
            }
        }
        Ok(())
    }

    /// Waits for all kernels; returns seconds as [`DeviceTile::update`] does.
    ///
    /// # Errors
    /// The device fails: exit code 1.
    pub fn wait(&mut self) -> Result<f64> {
        self.collect(true)
    }

    /// Waits for all kernels, and reads C; returns seconds as [`DeviceTile::update`] does.
    ///
    /// # Errors
    /// The device fails: exit code 1.
    ///
    /// # Panics
    /// If the tile has another shape.
    pub fn download(&mut self, c: ViewMut<T>) -> Result<f64> {
        self.read(c, &mut |_| Ok(()))
    }

    /// Reads C as [`DeviceTile::download`] does, and copies the panels of another tile as [`DeviceTile::send`]
    /// does, both at once where the device can.
    ///
    /// # Errors
    /// The device fails: exit code 1.
    ///
    /// # Panics
    /// As both.
    pub fn replace(&mut self, c: ViewMut<T>, a: View<T>, b: View<T>) -> Result<f64> {
        let shape = self.check_panels(a, b);
        let free = self.packed.take();
        let seconds = self.read(c, &mut |tile| tile.copy(free.as_deref(), a, b))?;
        self.sent(shape);
        Ok(seconds)
    }

    /// Reads C, and does something else meanwhile.
    fn read(&mut self, c: ViewMut<T>, meanwhile: &mut dyn FnMut(&Self) -> Result<()>) -> Result<f64> {
        assert_eq!([c.rows(), c.cols()], [self.rows, self.cols], "the tile has the shape of C");
        let last = self.pending.back().cloned();
        let mut rows = [Placed::at_start(HostRowsMut::of(c), self.pitch_bytes())];
        self.device.download(last.as_deref(), &self.buffers.c, &mut rows, &mut || meanwhile(self))?;
        self.bytes_down += self.tile_bytes();
        self.collect(true)
    }

    /// Bytes copied to the device so far.
    pub fn bytes_up(&self) -> u64 {
        self.bytes_up
    }

    /// Bytes copied from the device so far.
    pub fn bytes_down(&self) -> u64 {
        self.bytes_down
    }

    fn tile_bytes(&self) -> u64 {
        (self.rows * self.cols * size_of::<T>()) as u64
    }

    /// Bytes from the start of a row of C on the device to the start of the next.
    fn pitch_bytes(&self) -> usize {
        pitch(self.cols as u64) as usize * size_of::<T>()
    }

    /// The seconds of all kernels that ended since the last call.
    fn collect(&mut self, wait: bool) -> Result<f64> {
        while let Some(event) = self.pending.front() {
            let Some(seconds) = self.device.seconds(event, wait)? else { break };
            self.seconds += seconds;
            self.pending.pop_front();
        }
        Ok(std::mem::take(&mut self.seconds))
    }
}

/// Runs of rows that follow each other.
fn runs(rows: &[usize]) -> impl Iterator<Item = Range<usize>> {
    rows.chunk_by(|row, next| row + 1 == *next).map(|run| run[0]..run[0] + run.len())
}

fn launch<'a>(
    compiled: &'a Compiled,
    kernel: &'static str,
    items: Items,
    arguments: &'a [Argument<'a>],
) -> Launch<'a> {
    let Items { global, local } = items;
    Launch { program: &compiled.program, kernel, global, local, arguments }
}
