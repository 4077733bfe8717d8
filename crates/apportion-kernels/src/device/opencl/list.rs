//! The devices of all platforms of this machine.

use super::api::{Api, Handle, api, number, text};
use crate::device::fault::no_such_device;
use crate::device::library::one_line;
use crate::device::{DeviceInfo, DeviceKind};
use crate::error::{Error, Result};
use std::sync::OnceLock;

/// Properties of a device.
const KIND: u32 = 0x1000;
const LARGEST_ALLOCATION: u32 = 0x1010;
const SINGLE: u32 = 0x101B;
const MEMORY: u32 = 0x101F;
const NAME: u32 = 0x102B;
const DRIVER: u32 = 0x102D;
const DOUBLE: u32 = 0x1032;
/// Properties of a platform.
const PLATFORM_NAME: u32 = 0x0902;
/// Bits of the kind.
const CPU: u64 = 2;
const GPU: u64 = 4;
/// `CL_FP_DENORM`.
const SUBNORMAL: u64 = 1;
/// `CL_DEVICE_TYPE_ALL`.
const ALL: u64 = 0xFFFF_FFFF;
/// Maximum number of platforms, and of devices of one.
const MOST: usize = 64;

/// A device of the library.
pub(crate) struct Listed {
    pub platform: Handle,
    pub device: Handle,
    pub info: DeviceInfo,
}

// SAFETY: the handles are of platforms and devices, which live as long as the library and may be used by any
// thread.
unsafe impl Send for Listed {}
// SAFETY: as above.
unsafe impl Sync for Listed {}

/// All devices, looked up once; `None` without a library.
fn list() -> Option<&'static [Listed]> {
    static LIST: OnceLock<Vec<Listed>> = OnceLock::new();
    let api = api()?;
    Some(LIST.get_or_init(|| look_up(api)))
}

fn look_up(api: &Api) -> Vec<Listed> {
    let mut found = Vec::new();
    let (mut platforms, mut count) = ([std::ptr::null_mut(); MOST], 0);
    // SAFETY: the array has room for as many handles as the call is told, and the count is a live integer.
    if unsafe { (api.platforms)(MOST as u32, platforms.as_mut_ptr(), &mut count) } != 0 {
        // Without drivers there is no platform, which is an error of its own (-1001).
        return found;
    }
    for &platform in &platforms[..(count as usize).min(MOST)] {
        let (mut devices, mut count) = ([std::ptr::null_mut(); MOST], 0);
        // SAFETY: as above, with a platform of the library.
        if unsafe { (api.devices)(platform, ALL, MOST as u32, devices.as_mut_ptr(), &mut count) } != 0 {
            continue;
        }
        for &device in &devices[..(count as usize).min(MOST)] {
            let id = format!("opencl:{}", found.len());
            found.push(Listed { platform, device, info: describe(api, platform, device, id) });
        }
    }
    found
}

fn describe(api: &Api, platform: Handle, device: Handle, id: String) -> DeviceInfo {
    let number = |property: u32| {
        // SAFETY: the device is one of the library's; the place has the size that the call is told.
        number(|size, place, length| unsafe { (api.device_info)(device, property, size, place, length) })
            .unwrap_or(0)
    };
    let line = |property: u32| {
        // SAFETY: as above.
        one_line(&text(|size, place, length| unsafe {
            (api.device_info)(device, property, size, place, length)
        }))
    };
    // SAFETY: as above, with a platform.
    let platform = one_line(&text(|size, place, length| unsafe {
        (api.platform_info)(platform, PLATFORM_NAME, size, place, length)
    }));
    let kind = number(KIND);
    DeviceInfo {
        id,
        name: line(NAME),
        driver: format!("{platform} {}", line(DRIVER)),
        kind: match kind {
            kind if kind & CPU != 0 => DeviceKind::Cpu,
            kind if kind & GPU != 0 => DeviceKind::Gpu,
            _ => DeviceKind::Accelerator,
        },
        memory_bytes: number(MEMORY),
        allocation_bytes: number(LARGEST_ALLOCATION),
        f64: number(DOUBLE) != 0,
        subnormal_f32: number(SINGLE) & SUBNORMAL != 0,
    }
}

/// The devices of all platforms, in the order of the library; `None` without an OpenCL library.
pub(crate) fn devices() -> Option<Vec<DeviceInfo>> {
    Some(list()?.iter().map(|listed| listed.info.clone()).collect())
}

/// A device by its number, with the library's functions.
///
/// # Errors
/// There is no such device, or no library or driver: exit code 2.
pub(crate) fn find(number: usize) -> Result<(&'static Api, &'static Listed)> {
    let refuse =
        |what: &str, remedy: &str| Err(Error::input(format!("`device = opencl:{number}`"), what, remedy));
    let (Some(api), Some(list)) = (api(), list()) else {
        return refuse(
            "there is no OpenCL library",
            "install one and the driver of the device: `apt install ocl-icd-libopencl1`, and `pocl-opencl-icd` to \
             run on the cores",
        );
    };
    if list.is_empty() {
        return refuse(
            "the OpenCL library finds no driver with a device",
            "install the driver of the device, or `apt install pocl-opencl-icd` to run on the cores",
        );
    }
    match list.get(number) {
        Some(listed) => Ok((api, listed)),
        None => Err(no_such_device(&format!("opencl:{number}"), list.iter().map(|listed| &listed.info))),
    }
}
