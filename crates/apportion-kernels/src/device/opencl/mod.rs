//! Devices by OpenCL, with a library that is found while running.

#![allow(unsafe_code)]

mod api;
mod list;

use crate::device::fault::{Fault, does_not_build, too_large};
use crate::device::host::{HostRows, HostRowsMut, Placed};
use crate::device::variant::{Arithmetic, SOURCE, Variant};
use crate::device::{Argument, Buffer, Device, DeviceInfo, DeviceKind, Event, Launch, Program};
use crate::error::Result;
pub(crate) use api::LIBRARIES;
use api::{Api, Handle, number, text};
use list::Listed;
pub(crate) use list::devices;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// `CL_QUEUE_PROFILING_ENABLE`.
const PROFILING: u64 = 2;
/// `CL_MEM_READ_WRITE`.
const READ_WRITE: u64 = 1;
/// `CL_CONTEXT_PLATFORM`.
const PLATFORM: isize = 0x1084;
/// `CL_FALSE`: a copy returns before it has ended.
const AT_ONCE: u32 = 0;
/// `CL_EVENT_COMMAND_EXECUTION_STATUS`, and `CL_COMPLETE`.
const STATUS: u32 = 0x11D3;
const COMPLETE: i32 = 0;
/// `CL_PROFILING_COMMAND_START` and `CL_PROFILING_COMMAND_END`.
const TIMES: [u32; 2] = [0x1282, 0x1283];
/// `CL_PROGRAM_BUILD_LOG`.
const LOG: u32 = 0x1183;
/// `CL_PROGRAM_BINARY_SIZES` and `CL_PROGRAM_BINARIES`, of the one device of a program.
const BINARY_SIZES: u32 = 0x1165;
const BINARIES: u32 = 0x1166;
/// `CL_DEVICE_GLOBAL_FREE_MEMORY_AMD`: KiB.
const FREE_AMD: u32 = 0x4039;

/// Error codes.
const NO_MEMORY: i32 = -4;
const NO_RESOURCES: i32 = -5;
const NO_HOST_MEMORY: i32 = -6;
const BUILD_FAILURE: i32 = -11;
const INVALID_BUFFER_SIZE: i32 = -61;

/// A device with its context and its queues. They stay until the process ends.
pub(crate) struct OpenCl {
    api: &'static Api,
    info: DeviceInfo,
    device: Handle,
    context: Handle,
    uploads: Handle,
    kernels: Handle,
    downloads: Handle,
    /// Bytes that this process has allocated.
    allocated: Arc<AtomicU64>,
}

// SAFETY: the library's functions may be called by any thread at any time, with the exception of those that change
// the arguments of one kernel, which a lock guards.
unsafe impl Send for OpenCl {}
// SAFETY: as above.
unsafe impl Sync for OpenCl {}

impl fmt::Debug for OpenCl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenCl").field("info", &self.info).finish_non_exhaustive()
    }
}

/// An object of the library, released when it is dropped.
struct Object {
    handle: Handle,
    release: unsafe extern "system" fn(Handle) -> i32,
}

// SAFETY: as for `OpenCl`.
unsafe impl Send for Object {}
// SAFETY: as for `OpenCl`.
unsafe impl Sync for Object {}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the object is the library's, and this is the only reference to it. What still runs keeps what it
        // needs.
        let _ = unsafe { (self.release)(self.handle) };
    }
}

/// A copy that uses memory of the host. It has ended when this is gone, also after a panic.
struct Transfer {
    api: &'static Api,
    event: Object,
}

impl Transfer {
    /// Waits for the end; returns the error code.
    fn wait(&self) -> i32 {
        // SAFETY: one event, which lives.
        unsafe { (self.api.wait)(1, &self.event.handle) }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Memory.
struct Memory {
    object: Object,
    bytes: u64,
    allocated: Arc<AtomicU64>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.allocated.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A program with those of its kernels that have been used. The lock is held while a kernel gets its arguments
/// and starts.
struct Kernels {
    // Before the program: kernels are released first.
    by_name: Mutex<BTreeMap<&'static str, Object>>,
    program: Object,
}

/// Opens a device by its number.
///
/// # Errors
/// There is no such device, or no library or driver: exit code 2. The driver fails: exit code 1.
pub(crate) fn open(number: usize) -> Result<OpenCl> {
    let (api, Listed { platform, device, info }) = list::find(number)?;
    let (device, mut code) = (*device, 0);
    let properties = [PLATFORM, *platform as isize, 0];
    // SAFETY: the properties end with a zero, the device is of the platform, and there is no function to call.
    let context = unsafe { (api.context)(properties.as_ptr(), 1, &device, null(), null_mut(), &mut code) };
    check(info, "clCreateContext", code)?;
    let queue = || {
        let mut code = 0;
        // SAFETY: the device is of the context.
        let queue = unsafe { (api.queue)(context, device, PROFILING, &mut code) };
        check(info, "clCreateCommandQueue", code).map(|()| queue)
    };
    let (uploads, kernels, downloads) = (queue()?, queue()?, queue()?);
    let allocated = Arc::default();
    Ok(OpenCl { api, info: info.clone(), device, context, uploads, kernels, downloads, allocated })
}

/// Turns an error code into an error.
fn check(info: &DeviceInfo, call: &str, code: i32) -> Result<()> {
    let fault = match code {
        0 => return Ok(()),
        NO_MEMORY => Fault::Memory,
        NO_HOST_MEMORY => Fault::HostMemory,
        // Drivers say so of memory, of a kernel with too many registers, and of a kernel that was ended for a
        // fault or for its time.
        NO_RESOURCES => Fault::Resources,
        _ => Fault::Other,
    };
    Err(fault.error(info, call, code))
}

impl OpenCl {
    fn check(&self, call: &str, code: i32) -> Result<()> {
        check(&self.info, call, code)
    }

    /// Compiles kernels from their source and the definitions of its macros.
    ///
    /// # Errors
    /// The source is wrong, or the device lacks what it needs: the compiler's first line; exit code 1.
    pub(crate) fn build_source(&self, source: &str, options: &str) -> Result<Program> {
        let api = self.api;
        let (mut code, text_start, length) = (0, source.as_ptr().cast(), source.len());
        // SAFETY: one text with its length, which the call copies.
        let handle = unsafe { (api.program)(self.context, 1, &text_start, &length, &mut code) };
        self.check("clCreateProgramWithSource", code)?;
        // Without warnings, which some drivers print to stderr.
        self.built(Object { handle, release: api.release_program }, &format!("-w {options}"))
    }

    /// Makes a program of what [`Device::binary`] gave on the same device, by the same driver.
    ///
    /// # Errors
    /// The driver refuses it: exit code 1.
    pub(crate) fn build_binary(&self, binary: &[u8]) -> Result<Program> {
        let (api, start, length, mut accepted, mut code) = (self.api, binary.as_ptr(), binary.len(), 0, 0);
        // SAFETY: one device with one binary and its length, which the call copies, and places for two codes.
        let handle = unsafe {
            (api.program_of_binary)(self.context, 1, &self.device, &length, &start, &mut accepted, &mut code)
        };
        self.check("clCreateProgramWithBinary", code)?;
        let program = Object { handle, release: api.release_program };
        self.check("clCreateProgramWithBinary", accepted)?;
        self.built(program, "")
    }

    /// Builds a program.
    fn built(&self, program: Object, options: &str) -> Result<Program> {
        let (api, handle) = (self.api, program.handle);
        let options = CString::new(options).expect("options without zeros");
        // SAFETY: the program and the device are of the context, the options end with a zero; without a function
        // to call, the call returns when the program is built.
        let code = unsafe { (api.build)(handle, 1, &self.device, options.as_ptr(), null(), null_mut()) };
        if code == BUILD_FAILURE {
            let log = text(|size, place, length| {
                // SAFETY: as above; the place has the size that the call is told.
                unsafe { (api.build_info)(handle, self.device, LOG, size, place, length) }
            });
            return Err(does_not_build(&self.info, &log));
        }
        self.check("clBuildProgram", code)?;
        Ok(Program(Box::new(Kernels { program, by_name: Mutex::default() })))
    }

    /// The handles of an event to wait for.
    fn wait_list(after: Option<&Event>) -> Vec<Handle> {
        after.map(event_handle).into_iter().collect()
    }

    /// Does something else until copies of a queue have ended.
    fn end_of(
        &self,
        queue: Handle,
        copies: &[Transfer],
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        if copies.is_empty() {
            return meanwhile();
        }
        // SAFETY: the queue is of the library. Without this, a driver may wait with what it was given.
        let code = unsafe { (self.api.flush)(queue) };
        let done = self.check("clFlush", code).and_then(|()| meanwhile());
        let code = copies.iter().map(Transfer::wait).find(|code| *code != 0).unwrap_or(0);
        done.and_then(|()| self.check("clWaitForEvents", code))
    }

    /// An integer of an event.
    fn event_status(&self, event: Handle) -> Result<i32> {
        let (mut status, mut length) = (0i32, 0);
        let place = (&raw mut status).cast();
        // SAFETY: the event lives, and the place has the size that the call is told.
        let code = unsafe { (self.api.event_info)(event, STATUS, size_of::<i32>(), place, &mut length) };
        self.check("clGetEventInfo", code)?;
        Ok(status)
    }
}

/// What a copy waits for: the first for the event, all others for the one before, as their queue has it.
fn first_waits(copies: &[Transfer], list: &[Handle]) -> (u32, *const Handle) {
    if copies.is_empty() && !list.is_empty() { (list.len() as u32, list.as_ptr()) } else { (0, null()) }
}

fn event_handle(event: &Event) -> Handle {
    event.0.downcast_ref::<Object>().expect("an event of an OpenCL device").handle
}

fn memory_handle(buffer: &Buffer) -> Handle {
    buffer.inner.downcast_ref::<Memory>().expect("memory of an OpenCL device").object.handle
}

impl Device for OpenCl {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn free_bytes(&self) -> u64 {
        let left = self.info.memory_bytes.saturating_sub(self.allocated.load(Ordering::Relaxed));
        let said = number(|size, place, length| {
            // SAFETY: the device is one of the library's; the place has the size that the call is told.
            unsafe { (self.api.device_info)(self.device, FREE_AMD, size, place, length) }
        });
        said.filter(|&kib| kib > 0).map_or(left, |kib| left.min(kib.saturating_mul(1024)))
    }

    fn allocate(&self, bytes: u64) -> Result<Buffer> {
        let (mut code, mut handle) = (INVALID_BUFFER_SIZE, null_mut());
        if let (true, Ok(size)) = (bytes <= self.info.allocation_bytes, usize::try_from(bytes)) {
            // SAFETY: without memory of the host, the call only allocates.
            handle = unsafe { (self.api.buffer)(self.context, READ_WRITE, size, null_mut(), &mut code) };
        }
        if code == INVALID_BUFFER_SIZE {
            return Err(too_large(&self.info, bytes));
        }
        self.check("clCreateBuffer", code)?;
        self.allocated.fetch_add(bytes, Ordering::Relaxed);
        let object = Object { handle, release: self.api.release_buffer };
        let memory = Memory { object, bytes, allocated: Arc::clone(&self.allocated) };
        Ok(Buffer { bytes, inner: Box::new(memory) })
    }

    fn upload(&self, after: Option<&Event>, from: &[Placed<HostRows<'_>>], to: &Buffer) -> Result<()> {
        let (api, memory, list) = (self.api, memory_handle(to), Self::wait_list(after));
        let mut copies: Vec<Transfer> = Vec::new();
        for Placed { rows, first, pitch } in from {
            let Some(shape) = rows.shape().within(*first, *pitch, to.bytes) else { continue };
            let (host, mut event) = (rows.first().cast(), null_mut());
            let (count, list) = first_waits(&copies, &list);
            if shape.is_dense(*pitch) {
                let bytes = shape.rows * shape.bytes;
                // SAFETY: as many bytes can be read, and the buffer holds them, as was checked. The rows stay borrowed
                // until the copy has ended, which `Transfer` waits for.
                let code = unsafe {
                    (api.write)(self.uploads, memory, AT_ONCE, *first, bytes, host, count, list, &mut event)
                };
                self.check("clEnqueueWriteBuffer", code)?;
            } else {
                let (origin, region) = ([first % pitch, first / pitch, 0], [shape.bytes, shape.rows, 1]);
                // SAFETY: the rows can be read, and the buffer holds them at this pitch, as was checked. As above,
                // they stay borrowed until the copy has ended.
                let code = unsafe {
                    (api.write_rows)(
                        self.uploads,
                        memory,
                        AT_ONCE,
                        origin.as_ptr(),
                        [0; 3].as_ptr(),
                        region.as_ptr(),
                        *pitch,
                        0,
                        shape.stride,
                        0,
                        host,
                        count,
                        list,
                        &mut event,
                    )
                };
                self.check("clEnqueueWriteBufferRect", code)?;
            }
            copies.push(Transfer { api, event: Object { handle: event, release: api.release_event } });
        }
        self.end_of(self.uploads, &copies, &mut || Ok(()))
    }

    fn download(
        &self,
        after: Option<&Event>,
        from: &Buffer,
        to: &mut [Placed<HostRowsMut<'_>>],
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let (api, memory, list) = (self.api, memory_handle(from), Self::wait_list(after));
        let mut copies: Vec<Transfer> = Vec::new();
        for Placed { rows, first, pitch } in to {
            let Some(shape) = rows.shape().within(*first, *pitch, from.bytes) else { continue };
            let (host, mut event) = (rows.first().cast(), null_mut());
            let (count, list) = first_waits(&copies, &list);
            if shape.is_dense(*pitch) {
                let bytes = shape.rows * shape.bytes;
                // SAFETY: as many bytes can be written, and the buffer holds them, as was checked. The rows stay
                // borrowed until the copy has ended, which `Transfer` waits for.
                let code = unsafe {
                    (api.read)(self.downloads, memory, AT_ONCE, *first, bytes, host, count, list, &mut event)
                };
                self.check("clEnqueueReadBuffer", code)?;
            } else {
                let (origin, region) = ([*first % *pitch, *first / *pitch, 0], [shape.bytes, shape.rows, 1]);
                // SAFETY: the rows can be written, and nothing between them is; the buffer holds them at this pitch, as
                // was checked. As above, they stay borrowed until the copy has ended.
                let code = unsafe {
                    (api.read_rows)(
                        self.downloads,
                        memory,
                        AT_ONCE,
                        origin.as_ptr(),
                        [0; 3].as_ptr(),
                        region.as_ptr(),
                        *pitch,
                        0,
                        shape.stride,
                        0,
                        host,
                        count,
                        list,
                        &mut event,
                    )
                };
                self.check("clEnqueueReadBufferRect", code)?;
            }
            copies.push(Transfer { api, event: Object { handle: event, release: api.release_event } });
        }
        self.end_of(self.downloads, &copies, meanwhile)
    }

    fn styles(&self, arithmetic: Arithmetic) -> Vec<Vec<Variant>> {
        let mut styles = Variant::styles(arithmetic);
        if self.info.kind == DeviceKind::Cpu {
            styles.reverse();
        }
        styles.into()
    }

    fn build(&self, arithmetic: Arithmetic, variant: Variant, binary: Option<&[u8]>) -> Result<Program> {
        match binary.map(|binary| self.build_binary(binary)) {
            Some(Ok(program)) => Ok(program),
            _ => self.build_source(SOURCE, &variant.options(arithmetic)),
        }
    }

    fn binary(&self, program: &Program) -> Option<Vec<u8>> {
        let program = program.0.downcast_ref::<Kernels>().expect("a program of an OpenCL device");
        let program = program.program.handle;
        let length = number(|size, place, length| {
            // SAFETY: the program lives, and the place has the size that the call is told.
            unsafe { (self.api.program_info)(program, BINARY_SIZES, size, place, length) }
        })?;
        let mut binary = vec![0u8; usize::try_from(length).ok().filter(|length| *length > 0)?];
        let mut start = binary.as_mut_ptr();
        let place = (&raw mut start).cast();
        // SAFETY: one device, and so the address of one binary, which has as many bytes as the driver said.
        let code =
            unsafe { (self.api.program_info)(program, BINARIES, size_of::<*mut u8>(), place, null_mut()) };
        (code == 0).then_some(binary)
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<Event> {
        let Launch { program, kernel: name, global, local, arguments } = *launch;
        let api = self.api;
        let kernels = program.0.downcast_ref::<Kernels>().expect("a program of an OpenCL device");
        let mut by_name = kernels.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if !by_name.contains_key(name) {
            let (text, mut code) = (CString::new(name).expect("a name without zeros"), 0);
            // SAFETY: the program is built, and the name ends with a zero.
            let handle = unsafe { (api.kernel)(kernels.program.handle, text.as_ptr(), &mut code) };
            self.check("clCreateKernel", code)?;
            by_name.insert(name, Object { handle, release: api.release_kernel });
        }
        let kernel = by_name[name].handle;
        for (place, argument) in (0..).zip(arguments) {
            // SAFETY: each value is as long as the call is told, and copied; the lock keeps other threads from the
            // kernel's arguments.
            let code = unsafe {
                match argument {
                    Argument::Buffer(buffer) => {
                        let handle = memory_handle(buffer);
                        (api.argument)(kernel, place, size_of::<Handle>(), (&raw const handle).cast())
                    }
                    Argument::U32(word) => {
                        (api.argument)(kernel, place, size_of::<u32>(), std::ptr::from_ref(word).cast())
                    }
                    Argument::U64(word) => {
                        (api.argument)(kernel, place, size_of::<u64>(), std::ptr::from_ref(word).cast())
                    }
                }
            };
            self.check("clSetKernelArg", code)?;
        }
        let local = if local[0] == 0 { null() } else { local.as_ptr() };
        let mut event = null_mut();
        // SAFETY: three sizes each, and no event to wait for: the queue runs in order. What the kernel does is the
        // caller's promise.
        let code = unsafe {
            (api.launch)(self.kernels, kernel, 3, null(), global.as_ptr(), local, 0, null(), &mut event)
        };
        self.check("clEnqueueNDRangeKernel", code)?;
        let event = Object { handle: event, release: api.release_event };
        // SAFETY: the queue is of the library. Without this, a driver may wait with what it was given.
        let code = unsafe { (api.flush)(self.kernels) };
        self.check("clFlush", code)?;
        Ok(Event(Box::new(event)))
    }

    fn seconds(&self, event: &Event, wait: bool) -> Result<Option<f64>> {
        let event = event_handle(event);
        if wait {
            // SAFETY: one event, which lives.
            let code = unsafe { (self.api.wait)(1, &event) };
            self.check("clWaitForEvents", code)?;
        }
        match self.event_status(event)? {
            COMPLETE => {}
            status if status < 0 => self.check("a kernel", status)?,
            _ => return Ok(None),
        }
        let mut times = [0; 2];
        for (property, time) in TIMES.into_iter().zip(&mut times) {
            let get = |size, place, length: *mut usize| {
                // SAFETY: the event has ended, and the place has the size that the call is told.
                unsafe { (self.api.event_times)(event, property, size, place, length) }
            };
            *time = number(get).unwrap_or(0);
        }
        Ok(Some(times[1].saturating_sub(times[0]) as f64 * 1e-9))
    }
}
