//! Devices: processors with a memory of their own, such as a GPU, that update a tile of C while panels of A
//! and B are on their way to it.
//!
//! [`DeviceTile`] is what a product uses. Beneath it, a [`Device`] allocates memory, copies rectangles in both
//! directions, and runs the kernels of `kernels.cl`; `opencl` and `cuda` implement it by libraries that are loaded
//! while running. A short race ([`race`]) chooses the kernel's tile.

mod cuda;
mod fault;
mod host;
mod interface;
mod library;
mod opencl;
mod race;
mod tile;
mod variant;

use crate::error::{Error, Result};
use crate::kernels::{View, ViewMut};
use host::{HostRows, HostRowsMut, Placed};
pub use interface::Interface;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
pub use tile::DeviceTile;
use variant::{Arithmetic, Variant};

/// What a device is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The interface and the number in it: `opencl:0`, `cuda:0`.
    pub id: String,
    /// What its driver calls it.
    pub name: String,
    /// The driver and its version.
    pub driver: String,
    /// Whether it is the cores themselves, a GPU, or something else.
    pub kind: DeviceKind,
    /// The bytes of its memory.
    pub memory_bytes: u64,
    /// The bytes of its largest allocation.
    pub allocation_bytes: u64,
    /// It computes in double precision.
    pub f64: bool,
    /// Its single precision has subnormal numbers.
    pub subnormal_f32: bool,
}

impl Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.bytes)
    }
}

impl Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Program")
    }
}

impl Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Event")
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.name)
    }
}

/// What a device consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// The cores of the host.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Any other.
    Accelerator,
}

impl DeviceKind {
    /// The name in outputs: `cpu`, `gpu` or `accelerator`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Accelerator => "accelerator",
        }
    }
}

/// A device that is open: memory, copies, kernels.
///
/// Uploads, kernels and downloads each run in order, and beside each other: a copy that needs the result of a
/// kernel waits for its [`Event`]. What one call has allocated or built is used with the same device.
pub trait Device: Send + Sync + Debug {
    /// What it is.
    fn info(&self) -> &DeviceInfo;

    /// The bytes of memory that can be allocated now: what the driver says, or else what this process has not
    /// allocated.
    fn free_bytes(&self) -> u64;

    /// Allocates memory with unspecified contents, which is freed when it is dropped and no longer in use.
    ///
    /// # Errors
    /// There is not enough memory, or one allocation cannot be as large: exit code 1.
    fn allocate(&self, bytes: u64) -> Result<Buffer>;

    /// Copies rows to their places in a buffer, after an event; returns when they may be overwritten.
    ///
    /// # Errors
    /// The device fails: exit code 1.
    ///
    /// # Panics
    /// If the buffer is too short, or of another kind of device.
    fn upload(&self, after: Option<&Event>, from: &[Placed<HostRows<'_>>], to: &Buffer) -> Result<()>;

    /// Copies rows from their places in a buffer, after an event; does something else `meanwhile`, and returns when
    /// the rows are there.
    ///
    /// # Errors
    /// The device fails: exit code 1. That of what is done meanwhile.
    ///
    /// # Panics
    /// As [`Device::upload`].
    fn download(
        &self,
        after: Option<&Event>,
        from: &Buffer,
        to: &mut [Placed<HostRowsMut<'_>>],
        meanwhile: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()>;

    /// The variants of the kernels that may suit the device, one style after the other, the likely one first.
    fn styles(&self, arithmetic: Arithmetic) -> Vec<Vec<Variant>>;

    /// Compiles the kernels of one of these variants: from what [`Device::binary`] gave for it on the same device, if
    /// the driver still takes that.
    ///
    /// # Errors
    /// The device lacks what they need, or the compiler refuses them: its first line; exit code 1.
    fn build(&self, arithmetic: Arithmetic, variant: Variant, binary: Option<&[u8]>) -> Result<Program>;

    /// What the compiler has made of a program; `None` if the driver does not say, or remembers it by itself.
    fn binary(&self, program: &Program) -> Option<Vec<u8>>;

    /// Starts a kernel when the ones before have ended, and returns at once.
    ///
    /// # Errors
    /// The device fails: exit code 1.
    ///
    /// # Panics
    /// If the program has no such kernel, or something is of another kind of device.
    ///
    /// # Safety
    /// The arguments are those of the kernel, which stays within its buffers.
    #[allow(unsafe_code)]
    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<Event>;

    /// The seconds for which a kernel ran, `None` if it has not ended. With `wait`, waits for its end.
    ///
    /// # Errors
    /// The kernel failed: exit code 1.
    fn seconds(&self, event: &Event, wait: bool) -> Result<Option<f64>>;
}

/// Memory of a device.
pub struct Buffer {
    bytes: u64,
    inner: Box<dyn Any + Send + Sync>,
}

/// Compiled kernels of a device.
pub struct Program(Box<dyn Any + Send + Sync>);

/// The end of a kernel.
pub struct Event(Box<dyn Any + Send + Sync>);

/// A call of a kernel.
pub struct Launch<'a> {
    program: &'a Program,
    kernel: &'static str,
    /// Work-items in each direction, a multiple of those of a group.
    global: [usize; 3],
    /// Work-items of a group.
    local: [usize; 3],
    arguments: &'a [Argument<'a>],
}

/// An argument of a kernel.
#[derive(Clone, Copy)]
enum Argument<'a> {
    Buffer(&'a Buffer),
    U32(u32),
    U64(u64),
}

/// The devices of this machine: those of OpenCL in the order of their numbers, then the cards that only CUDA serves.
/// `None` where no library can find any. All drivers are loaded into this process.
pub fn devices() -> Option<Vec<DeviceInfo>> {
    all_devices(Interface::OpenCl.devices(), Interface::Cuda.devices())
}

/// The devices of both interfaces, as [`devices`] lists them.
pub fn all_devices(
    opencl: Option<Vec<DeviceInfo>>,
    cards: Option<Vec<DeviceInfo>>,
) -> Option<Vec<DeviceInfo>> {
    match (opencl, cards) {
        (devices, None) => devices,
        (devices, Some(cards)) => Some(with_other_cards(devices.unwrap_or_default(), cards)),
    }
}

/// Adds the cards that none of the devices is, by their names: OpenCL drivers may add words to those.
fn with_other_cards(mut devices: Vec<DeviceInfo>, mut cards: Vec<DeviceInfo>) -> Vec<DeviceInfo> {
    cards.retain(|card| !devices.iter().any(|device| device.name.contains(&card.name)));
    devices.append(&mut cards);
    devices
}

/// A device by its `id`, such as `opencl:0`. It is opened once, and stays open until the process ends.
///
/// # Errors
/// There is no such device, or no library or driver: exit code 2. It cannot be opened: exit code 1.
pub fn open_device(id: &str) -> Result<Arc<dyn Device>> {
    static OPEN: Mutex<BTreeMap<String, Arc<dyn Device>>> = Mutex::new(BTreeMap::new());
    let interface = ["opencl", "cuda"].into_iter().find_map(|name| Some((name, id.strip_prefix(name)?)));
    let parts = interface.and_then(|(name, number)| Some((name, number.strip_prefix(':')?.parse().ok()?)));
    let Some((interface, number)) = parts else {
        return Err(Error::input(
            format!("`device = {id}`"),
            "is no device",
            "give opencl: or cuda: and a number, as `opencl:0`",
        ));
    };
    let key = format!("{interface}:{number}");
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = open.get(&key) {
        return Ok(Arc::clone(device));
    }
    let device: Arc<dyn Device> = match interface {
        "cuda" => Arc::new(cuda::open(number)?),
        _ => Arc::new(opencl::open(number)?),
    };
    open.insert(key, Arc::clone(&device));
    Ok(device)
}

/// The seconds of copies between a device and ordinary memory of its host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkSeconds {
    /// To the device.
    pub up: f64,
    /// From the device.
    pub down: f64,
    /// In both directions at once, as many bytes in each.
    pub both: f64,
}

/// The seconds in which a device copies this number of bytes.
///
/// # Errors
/// The device has too little memory, or fails: exit code 1.
pub fn link_seconds(device: &Arc<dyn Device>, bytes: u64) -> Result<LinkSeconds> {
    let length = usize::try_from(bytes).expect("memory that the host holds fits its address space");
    let (to, from) = (device.allocate(bytes.max(1))?, device.allocate(bytes.max(1))?);
    let (sent, mut received) = (vec![1u8; length], vec![1u8; length]);
    let upload = |buffer| {
        let rows = HostRows::of(View::dense(&sent, 1, length));
        device.upload(None, &[Placed::at_start(rows, length)], buffer)
    };
    let mut download = |meanwhile: &mut dyn FnMut() -> Result<()>| {
        let rows = HostRowsMut::of(ViewMut::dense(&mut received, 1, length));
        device.download(None, &from, &mut [Placed::at_start(rows, length)], meanwhile)
    };
    // The first copies also find memory for the buffers.
    upload(&from)?;
    upload(&to)?;
    let start = Instant::now();
    upload(&to)?;
    let up = start.elapsed().as_secs_f64();
    let start = Instant::now();
    download(&mut || Ok(()))?;
    let down = start.elapsed().as_secs_f64();
    let start = Instant::now();
    download(&mut || upload(&to))?;
    Ok(LinkSeconds { up, down, both: start.elapsed().as_secs_f64() })
}

#[cfg(test)]
mod tests;
