//! Devices by the CUDA driver, which is found while running.
//!
//! Copies are between the card and memory as programs have it, which the driver copies on through its own buffers.
//! Registering that memory would be faster where it is used again and again, but takes longer than one copy, and
//! two parts of a matrix may share a page, which can be registered once only.

#![allow(unsafe_code)]

mod api;
mod list;
mod ptx;

use crate::device::fault::{Fault, does_not_build, too_large};
use crate::device::host::{HostRows, HostRowsMut, Placed, RowShape};
use crate::device::variant::{Arithmetic, Variant};
use crate::device::{Argument, Buffer, Device, DeviceInfo, Event, Launch, Program};
use crate::error::Result;
pub(crate) use api::LIBRARIES;
use api::{Address, Api, CopyRows, DEVICE, End, HOST, Handle};
use list::Listed;
pub(crate) use list::devices;
use std::ffi::{CString, c_void};
use std::fmt;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::{Arc, Mutex, PoisonError};

/// `CU_STREAM_NON_BLOCKING`: not one after the other with the streams of other libraries.
const NON_BLOCKING: u32 = 1;
/// `CU_EVENT_DEFAULT`, and `CU_EVENT_BLOCKING_SYNC`: who waits leaves the core to others.
const TIMED: u32 = 0;
const BLOCKING: u32 = 1;
/// `CU_JIT_ERROR_LOG_BUFFER` and `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`.
const LOG: [i32; 2] = [5, 6];
/// Bytes of the compiler's messages.
const LOG_BYTES: usize = 4096;
/// `CU_DEVICE_ATTRIBUTE_MAX_PITCH` of all cards: bytes from the start of one row to the start of the next that a copy
/// of rows allows.
const MOST_PITCH: usize = i32::MAX as usize;
/// The most groups of a grid across, and in each of the other directions.
const MOST_ACROSS: usize = i32::MAX as usize;
const MOST_GROUPS: usize = 65_535;

/// Error codes.
const OUT_OF_MEMORY: i32 = 2;
const NO_BINARY_FOR_GPU: i32 = 209;
const INVALID_PTX: i32 = 218;
/// `CUDA_ERROR_JIT_COMPILER_NOT_FOUND` to `CUDA_ERROR_JIT_COMPILATION_DISABLED`, and
/// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION` between them.
const NO_COMPILER: i32 = 221;
const COMPILER_OFF: i32 = 223;
const NOT_READY: i32 = 600;
const LAUNCH_OUT_OF_RESOURCES: i32 = 701;
const LAUNCH_TIMEOUT: i32 = 702;

/// A card that is open.
pub(crate) struct Cuda(Arc<Card>);

/// A card with its context and its streams. They stay until the process ends.
struct Card {
    api: &'static Api,
    info: DeviceInfo,
    /// The context that all libraries of the process share.
    context: Handle,
    uploads: Handle,
    kernels: Handle,
    downloads: Handle,
    /// Held while a kernel starts between the two events that time it.
    start: Mutex<()>,
}

// SAFETY: the driver's functions may be called by any thread at any time, where the context is current, and its handles
// belong to no thread.
unsafe impl Send for Card {}
// SAFETY: as above.
unsafe impl Sync for Card {}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuda").field("info", &self.0.info).finish_non_exhaustive()
    }
}

/// A card's context is the thread's current one while this lives; then it is the one before, which may be another
/// library's.
struct Current<'a>(&'a Card);

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut context = null_mut();
        // SAFETY: a place for the context, which was pushed.
        let _ = unsafe { (self.0.api.pop)(&mut context) };
    }
}

/// Memory.
struct Memory {
    card: Arc<Card>,
    address: Address,
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Ok(_current) = self.card.current() else { return };
        // SAFETY: copies have ended when their calls return; kernels that use the memory have when their stream is
        // empty. This is the only reference to the memory.
        unsafe {
            (self.card.api.wait_stream)(self.card.kernels);
            (self.card.api.free)(self.address);
        }
    }
}

/// Compiled kernels.
struct Module {
    card: Arc<Card>,
    handle: Handle,
}

// SAFETY: as for `Card`.
unsafe impl Send for Module {}
// SAFETY: as for `Card`.
unsafe impl Sync for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        let Ok(_current) = self.card.current() else { return };
        // SAFETY: kernels of the module have ended when their stream is empty. This is the only reference to it.
        unsafe {
            (self.card.api.wait_stream)(self.card.kernels);
            (self.card.api.release_module)(self.handle);
        }
    }
}

/// A moment of the stream of kernels.
struct Moment {
    card: Arc<Card>,
    handle: Handle,
}

// SAFETY: as for `Card`.
unsafe impl Send for Moment {}
// SAFETY: as for `Card`.
unsafe impl Sync for Moment {}

impl Drop for Moment {
    fn drop(&mut self) {
        let Ok(_current) = self.card.current() else { return };
        // SAFETY: the event is the driver's, and this is the only reference to it; the driver keeps one that is
        // still to happen.
        let _ = unsafe { (self.card.api.release_event)(self.handle) };
    }
}

/// The start and the end of a kernel.
struct Span {
    start: Moment,
    end: Moment,
}

/// Opens a card by its number.
///
/// # Errors
/// There is no such card, or no driver: exit code 2. The driver fails: exit code 1.
pub(crate) fn open(number: usize) -> Result<Cuda> {
    let (api, Listed { device, info }) = list::find(number)?;
    let mut card = Card {
        api,
        info: info.clone(),
        context: null_mut(),
        uploads: null_mut(),
        kernels: null_mut(),
        downloads: null_mut(),
        start: Mutex::new(()),
    };
    // SAFETY: a place for the context of a device that the driver has listed.
    let code = unsafe { (api.context)(&mut card.context, *device) };
    card.check("cuDevicePrimaryCtxRetain", code)?;
    let mut streams = [null_mut(); 3];
    {
        let _current = card.current()?;
        for stream in &mut streams {
            // SAFETY: a place for the stream.
            let code = unsafe { (api.stream)(stream, NON_BLOCKING) };
            card.check("cuStreamCreate", code)?;
        }
    }
    [card.uploads, card.kernels, card.downloads] = streams;
    Ok(Cuda(Arc::new(card)))
}

/// The end of a copy that is on the host.
#[derive(Clone, Copy)]
enum Host {
    From(*const u8),
    To(*mut u8),
}

/// A copy of rows, which begin `pitch` bytes apart on the card.
#[derive(Clone, Copy)]
struct RowCopy {
    host: Host,
    device: Address,
    shape: RowShape,
    pitch: usize,
}

impl Host {
    /// So many bytes further.
    fn add(self, bytes: usize) -> Self {
        match self {
            Self::From(first) => Self::From(first.wrapping_add(bytes)),
            Self::To(first) => Self::To(first.wrapping_add(bytes)),
        }
    }
}

impl Card {
    /// Turns an error code into an error.
    fn check(&self, call: &str, code: i32) -> Result<()> {
        let fault = match code {
            0 => return Ok(()),
            OUT_OF_MEMORY => Fault::Memory,
            LAUNCH_OUT_OF_RESOURCES | LAUNCH_TIMEOUT => Fault::Resources,
            _ => Fault::Other,
        };
        Err(fault.error(&self.info, call, code))
    }

    /// Makes the context the thread's current one.
    fn current(&self) -> Result<Current<'_>> {
        // SAFETY: the context is retained until the process ends.
        let code = unsafe { (self.api.push)(self.context) };
        self.check("cuCtxPushCurrent", code).map(|()| Current(self))
    }

    /// A moment that is not recorded yet. The context is current.
    fn moment(self: &Arc<Self>, flags: u32) -> Result<Moment> {
        let mut handle = null_mut();
        // SAFETY: a place for the event.
        let code = unsafe { (self.api.event)(&mut handle, flags) };
        self.check("cuEventCreate", code).map(|()| Moment { card: Arc::clone(self), handle })
    }

    /// Records a moment after all kernels that have been started. The context is current.
    fn record(&self, moment: &Moment) -> Result<()> {
        // SAFETY: the event and the stream are of the context.
        let code = unsafe { (self.api.record)(moment.handle, self.kernels) };
        self.check("cuEventRecord", code)
    }

    /// Waits for the end of a kernel. The context is current.
    fn wait(&self, event: Option<&Event>) -> Result<()> {
        let Some(event) = event else { return Ok(()) };
        // SAFETY: the event lives.
        let code = unsafe { (self.api.wait)(span(event).end.handle) };
        self.check("cuEventSynchronize", code)
    }

    /// Copies rows between a host and a card, and returns when all copies have ended. The context is current.
    ///
    /// # Safety
    /// The rows of each copy can be read or written on both sides.
    unsafe fn copy(&self, stream: Handle, copies: &[RowCopy]) -> Result<()> {
        // SAFETY: as the caller promises.
        let started = copies.iter().try_for_each(|copy| unsafe { self.start_copy(stream, *copy) });
        // Also after an error: what has been started may still use the rows of the host.
        // SAFETY: the stream is of the context.
        let code = unsafe { (self.api.wait_stream)(stream) };
        started.and_then(|()| self.check("cuStreamSynchronize", code))
    }

    /// Starts a copy of rows.
    ///
    /// # Safety
    /// They can be read or written on both sides until the stream is empty.
    unsafe fn start_copy(&self, stream: Handle, copy: RowCopy) -> Result<()> {
        let RowCopy { host, device, shape, pitch } = copy;
        let RowShape { rows, bytes, stride } = shape;
        // SAFETY: in all three cases these are the rows, which the caller answers for.
        unsafe {
            if shape.is_dense(pitch) {
                self.copy_bytes(stream, host, device, rows * bytes)
            } else if stride.max(pitch) <= MOST_PITCH {
                self.copy_rows(stream, host, device, shape, pitch)
            } else {
                (0..rows).try_for_each(|row| {
                    self.copy_bytes(stream, host.add(row * stride), device + (row * pitch) as u64, bytes)
                })
            }
        }
    }

    /// Starts a copy of bytes.
    ///
    /// # Safety
    /// They can be read or written on both sides until the stream is empty.
    unsafe fn copy_bytes(&self, stream: Handle, host: Host, device: Address, bytes: usize) -> Result<()> {
        match host {
            Host::From(from) => {
                // SAFETY: as the caller promises.
                let code = unsafe { (self.api.write)(device, from.cast(), bytes, stream) };
                self.check("cuMemcpyHtoDAsync", code)
            }
            Host::To(to) => {
                // SAFETY: as the caller promises.
                let code = unsafe { (self.api.read)(to.cast(), device, bytes, stream) };
                self.check("cuMemcpyDtoHAsync", code)
            }
        }
    }

    /// Starts a copy of rows that the driver makes as one.
    ///
    /// # Safety
    /// They can be read or written on both sides until the stream is empty.
    unsafe fn copy_rows(
        &self,
        stream: Handle,
        host: Host,
        device: Address,
        shape: RowShape,
        pitch: usize,
    ) -> Result<()> {
        let end = |kind: u32, host: *mut c_void, device: Address, pitch: usize| End {
            offset: [0; 2],
            kind,
            host,
            device,
            array: null_mut(),
            pitch,
        };
        let on_device = end(DEVICE, null_mut(), device, pitch);
        let on_host = |host: *mut u8| end(HOST, host.cast(), 0, shape.stride);
        let (from, to) = match host {
            // The driver only reads where a copy begins.
            Host::From(from) => (on_host(from.cast_mut()), on_device),
            Host::To(to) => (on_device, on_host(to)),
        };
        let copy = CopyRows { from, to, bytes: shape.bytes, rows: shape.rows };
        // SAFETY: the driver copies the description; the rest is as the caller promises.
        let code = unsafe { (self.api.copy_rows)(&copy, stream) };
        self.check("cuMemcpy2DAsync", code)
    }
}

fn span(event: &Event) -> &Span {
    event.0.downcast_ref().expect("an event of a CUDA device")
}

fn address(buffer: &Buffer) -> Address {
    buffer.inner.downcast_ref::<Memory>().expect("memory of a CUDA device").address
}

impl Device for Cuda {
    fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    fn free_bytes(&self) -> u64 {
        let card = &self.0;
        let Ok(_current) = card.current() else { return 0 };
        let (mut free, mut total) = (0, 0);
        // SAFETY: places for two sizes. What fails leaves zeros.
        unsafe { (card.api.memory)(&mut free, &mut total) };
        free as u64
    }

    fn allocate(&self, bytes: u64) -> Result<Buffer> {
        let card = &self.0;
        let size = usize::try_from(bytes).ok().filter(|_| bytes <= card.info.allocation_bytes);
        let Some(size) = size else { return Err(too_large(&card.info, bytes)) };
        let _current = card.current()?;
        let mut address = 0;
        // SAFETY: a place for the address.
        let code = unsafe { (card.api.allocate)(&mut address, size) };
        card.check("cuMemAlloc", code)?;
        let memory = Memory { card: Arc::clone(card), address };
        Ok(Buffer { bytes, inner: Box::new(memory) })
    }

    fn upload(&self, after: Option<&Event>, from: &[Placed<HostRows<'_>>], to: &Buffer) -> Result<()> {
        let (card, device) = (&self.0, address(to));
        let copy = |Placed { rows, first, pitch }: &Placed<HostRows<'_>>| {
            let shape = rows.shape().within(*first, *pitch, to.bytes)?;
            let host = Host::From(rows.first());
            Some(RowCopy { host, device: device + *first as u64, shape, pitch: *pitch })
        };
        let copies: Vec<RowCopy> = from.iter().filter_map(copy).collect();
        let _current = card.current()?;
        card.wait(after)?;
        // SAFETY: the rows can be read, and the buffer holds them at their pitch, as was checked.
        unsafe { card.copy(card.uploads, &copies) }
    }

    fn download(
        &self,
        after: Option<&Event>,
        from: &Buffer,
        to: &mut [Placed<HostRowsMut<'_>>],
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        // A copy to memory that is not registered returns when it has ended. What there is to do goes beside the
        // kernels that still run.
        meanwhile()?;
        let (card, device) = (&self.0, address(from));
        let copy = |Placed { rows, first, pitch }: &mut Placed<HostRowsMut<'_>>| {
            let shape = rows.shape().within(*first, *pitch, from.bytes)?;
            let host = Host::To(rows.first());
            Some(RowCopy { host, device: device + *first as u64, shape, pitch: *pitch })
        };
        let copies: Vec<RowCopy> = to.iter_mut().filter_map(copy).collect();
        let _current = card.current()?;
        card.wait(after)?;
        // SAFETY: the rows can be written, and nothing between them is; the buffer holds them at their pitch, as was
        // checked.
        unsafe { card.copy(card.downloads, &copies) }
    }

    fn styles(&self, arithmetic: Arithmetic) -> Vec<Vec<Variant>> {
        vec![ptx::variants(arithmetic)]
    }

    fn build(&self, arithmetic: Arithmetic, variant: Variant, _: Option<&[u8]>) -> Result<Program> {
        let card = &self.0;
        let text = CString::new(ptx::text(arithmetic, variant).expect("one of the variants"));
        let text = text.expect("PTX is text");
        let (mut handle, mut log) = (null_mut(), [0u8; LOG_BYTES]);
        // The driver reads the size as an integer in the place of an address.
        let mut values = [log.as_mut_ptr().cast(), without_provenance_mut(LOG_BYTES)];
        let _current = card.current()?;
        // SAFETY: the text ends with a zero; there are two options with their values, a buffer and its size.
        let code = unsafe {
            let (options, values) = (LOG.as_ptr(), values.as_mut_ptr());
            (card.api.module)(&mut handle, text.as_ptr().cast(), LOG.len() as u32, options, values)
        };
        if matches!(code, NO_BINARY_FOR_GPU | INVALID_PTX | NO_COMPILER..=COMPILER_OFF) {
            let log = String::from_utf8_lossy(&log);
            let log = log.split('\0').next().filter(|log| !log.trim().is_empty());
            let number = format!("cuModuleLoadDataEx: error {code}");
            return Err(does_not_build(&card.info, log.unwrap_or(&number)));
        }
        card.check("cuModuleLoadDataEx", code)?;
        Ok(Program(Box::new(Module { card: Arc::clone(card), handle })))
    }

    /// The driver remembers what it has compiled in a cache of its own.
    fn binary(&self, _: &Program) -> Option<Vec<u8>> {
        None
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<Event> {
        let card = &self.0;
        let module = launch.program.0.downcast_ref::<Module>().expect("a program of a CUDA device");
        let name = CString::new(launch.kernel).expect("a name without zeros");
        let ([x, y, z], [across, down]) = grid(launch.global, launch.local);
        let mut values = values(launch.arguments, address);
        let mut places: Vec<*mut c_void> = values.iter_mut().map(|value| (&raw mut *value).cast()).collect();
        let _current = card.current()?;
        let mut function = null_mut();
        // SAFETY: a place for the function; the module is loaded, and the name ends with a zero.
        let code = unsafe { (card.api.function)(&mut function, module.handle, name.as_ptr()) };
        card.check("cuModuleGetFunction", code)?;
        let span = Span { start: card.moment(TIMED)?, end: card.moment(BLOCKING)? };
        let _alone = card.start.lock().unwrap_or_else(PoisonError::into_inner);
        card.record(&span.start)?;
        // SAFETY: the places of as many arguments as the kernel has, each of which begins a value of its length and
        // is copied. What the kernel does is the caller's promise.
        let code = unsafe {
            (card.api.launch)(
                function,
                x,
                y,
                z,
                across,
                down,
                1,
                0,
                card.kernels,
                places.as_mut_ptr(),
                null_mut(),
            )
        };
        card.check("cuLaunchKernel", code)?;
        card.record(&span.end)?;
        Ok(Event(Box::new(span)))
    }

    fn seconds(&self, event: &Event, wait: bool) -> Result<Option<f64>> {
        let card = &self.0;
        let _current = card.current()?;
        let Span { start, end } = span(event);
        if wait {
            card.wait(Some(event))?;
        } else {
            // SAFETY: the event lives.
            match unsafe { (card.api.query)(end.handle) } {
                NOT_READY => return Ok(None),
                code => card.check("a kernel", code)?,
            }
        }
        let mut milliseconds = 0.0;
        // SAFETY: a place for the number; both events live and have happened.
        let code = unsafe { (card.api.milliseconds)(&mut milliseconds, start.handle, end.handle) };
        card.check("cuEventElapsedTime", code)?;
        Ok(Some(f64::from(milliseconds) * 1e-3))
    }
}

/// The groups of a grid in each direction, and the work-items of a group. Groups along the rows of C are counted in two
/// directions, as `dialect.h` has it; some may be beyond the last.
///
/// # Panics
/// If there are more work-items than a grid holds.
fn grid(global: [usize; 3], local: [usize; 3]) -> ([u32; 3], [u32; 2]) {
    let [across, down, _] = local;
    assert!(across > 0 && down > 0 && local[2] == 1 && global[2] == 1, "kernels through local memory");
    assert!(global[0].is_multiple_of(across) && global[1].is_multiple_of(down), "whole groups");
    let (x, rows) = (global[0] / across, global[1] / down);
    let y = rows.min(MOST_GROUPS);
    let z = if y == 0 { 0 } else { rows.div_ceil(y) };
    assert!(x <= MOST_ACROSS && z <= MOST_GROUPS, "{x} x {rows} groups fit a grid");
    ([x, y, z].map(|groups| groups as u32), [across, down].map(|items| items as u32))
}

/// The values of arguments, each at the start of a word.
fn values(arguments: &[Argument<'_>], address: impl Fn(&Buffer) -> Address) -> Vec<u64> {
    let value = |argument: &Argument<'_>| match *argument {
        Argument::Buffer(buffer) => address(buffer),
        Argument::U64(word) => word,
        Argument::U32(word) => {
            let [a, b, c, d] = word.to_ne_bytes();
            u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
        }
    };
    arguments.iter().map(value).collect()
}

#[cfg(test)]
mod tests;
