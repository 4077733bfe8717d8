//! The cards that the CUDA driver finds.

use super::api::{Api, LIBRARIES};
use crate::device::fault::no_such_device;
use crate::device::library::{Missing, one_line};
use crate::device::{DeviceInfo, DeviceKind};
use crate::error::{Error, Result};
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: i32 = 100;
/// Bytes of a name.
const NAME: usize = 256;

/// The driver, with its cards.
struct Driver {
    api: Api,
    cards: Vec<Listed>,
}

/// A card.
pub(crate) struct Listed {
    /// Its `CUdevice`.
    pub device: i32,
    pub info: DeviceInfo,
}

/// Why there are no cards, and what to do.
struct Absence {
    what: String,
    remedy: &'static str,
}

/// The driver of this machine, which is started once.
fn driver() -> std::result::Result<&'static Driver, &'static Absence> {
    static DRIVER: OnceLock<std::result::Result<Driver, Absence>> = OnceLock::new();
    DRIVER.get_or_init(|| start(&LIBRARIES)).as_ref()
}

/// Loads and starts the first of these libraries.
fn start(libraries: &[&str]) -> std::result::Result<Driver, Absence> {
    let absence = |what: &str, remedy| Absence { what: what.into(), remedy };
    let api = Api::load(libraries).map_err(|missing| match missing {
        Missing::Library => absence(
            "there is no CUDA driver",
            "install the driver of the card, or give `opencl:0`, if `apportion detect` lists it: OpenCL serves the \
             same cards",
        ),
        Missing::Function(name) => absence(
            &format!("the CUDA driver has no {name}"),
            "update the driver of the card, or give `opencl:0`, if `apportion detect` lists it",
        ),
    })?;
    let none = || {
        absence(
            "the CUDA driver finds no card",
            "look whether `nvidia-smi` lists it and CUDA_VISIBLE_DEVICES does not hide it",
        )
    };
    // SAFETY: there are no flags.
    match unsafe { (api.init)(0) } {
        0 => {}
        NO_DEVICE => return Err(none()),
        code => {
            return Err(absence(
                &format!("the CUDA driver does not start (cuInit: error {code})"),
                "look at the message of `nvidia-smi`, or give `opencl:0`, if `apportion detect` lists it",
            ));
        }
    }
    let cards = look_up(&api);
    if cards.is_empty() { Err(none()) } else { Ok(Driver { api, cards }) }
}

/// What [`find`] says where these libraries start no driver.
#[cfg(test)]
pub(crate) fn refusal(libraries: &[&str]) -> String {
    let absence = start(libraries).err().expect("no driver");
    format!("{}; {}", absence.what, absence.remedy)
}

fn look_up(api: &Api) -> Vec<Listed> {
    let (mut count, mut version) = (0, 0);
    // SAFETY: places for two integers. What fails leaves zeros.
    unsafe {
        (api.count)(&mut count);
        (api.version)(&mut version);
    }
    (0..count).filter_map(|number| describe(api, number, version)).collect()
}

/// A card, unless the driver does not say what it is.
fn describe(api: &Api, number: i32, version: i32) -> Option<Listed> {
    let (mut device, mut bytes, mut name) = (0, 0, [0u8; NAME]);
    // SAFETY: a place for the device, whose number is below their count, and for its memory; the place for the name
    // is as long as the call is told.
    let done = unsafe {
        (api.device)(&mut device, number) == 0
            && (api.total_memory)(&mut bytes, device) == 0
            && (api.name)(name.as_mut_ptr().cast::<c_char>(), NAME as i32, device) == 0
    };
    let name = CStr::from_bytes_until_nul(&name).ok().filter(|_| done)?;
    let info = DeviceInfo {
        id: format!("cuda:{number}"),
        name: one_line(&name.to_string_lossy()),
        driver: format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
        kind: DeviceKind::Gpu,
        memory_bytes: bytes as u64,
        // One allocation may take all.
        allocation_bytes: bytes as u64,
        // All cards that the driver serves have both.
        f64: true,
        subnormal_f32: true,
    };
    Some(Listed { device, info })
}

/// The cards, in the order of the driver; none without a driver.
pub(crate) fn devices() -> Vec<DeviceInfo> {
    driver().map_or_else(|_| Vec::new(), |driver| driver.cards.iter().map(|card| card.info.clone()).collect())
}

/// A card by its number, with the driver's functions.
///
/// # Errors
/// There is no such card, or no driver: exit code 2.
pub(crate) fn find(number: usize) -> Result<(&'static Api, &'static Listed)> {
    let id = format!("cuda:{number}");
    let Driver { api, cards } = driver().map_err(|Absence { what, remedy }| {
        Error::input(format!("`device = {id}`"), what.clone(), *remedy)
    })?;
    match cards.iter().find(|card| card.info.id == id) {
        Some(listed) => Ok((api, listed)),
        None => Err(no_such_device(&id, cards.iter().map(|card| &card.info))),
    }
}
