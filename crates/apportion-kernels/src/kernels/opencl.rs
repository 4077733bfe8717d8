//! The OpenCL devices of this machine, by a library that is found while running.
//!
//! Source of the interface: Khronos, "The OpenCL Specification", 3.0, sections 4.1 and 4.2.

#![allow(unsafe_code)]

use libloading::Library;
use std::ffi::{c_uint, c_void};

/// The library as the loader finds it.
const LIBRARIES: [&str; 4] =
    ["libOpenCL.so.1", "libOpenCL.so", "/System/Library/Frameworks/OpenCL.framework/OpenCL", "OpenCL.dll"];

/// Properties of a device: its name, the bytes of its memory, and its abilities in double precision.
const NAME: c_uint = 0x102B;
const MEMORY: c_uint = 0x101F;
const DOUBLE: c_uint = 0x1032;
/// `CL_DEVICE_TYPE_ALL`.
const ALL: u64 = 0xFFFF_FFFF;
/// Maximum number of platforms, and of devices of one.
const MOST: usize = 64;

type Handle = *mut c_void;
type GetPlatforms = unsafe extern "system" fn(c_uint, *mut Handle, *mut c_uint) -> i32;
type GetDevices = unsafe extern "system" fn(Handle, u64, c_uint, *mut Handle, *mut c_uint) -> i32;
type GetInfo = unsafe extern "system" fn(Handle, c_uint, usize, *mut c_void, *mut usize) -> i32;

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenClDevice {
    /// `opencl:` and its number among all devices.
    pub id: String,
    /// What its driver calls it.
    pub name: String,
    /// The bytes of its memory.
    pub memory_bytes: u64,
    /// It computes in double precision.
    pub f64: bool,
}

/// The devices of all platforms, in the order of the library; `None` without an OpenCL library.
pub fn opencl_devices() -> Option<Vec<OpenClDevice>> {
    // SAFETY: loading runs the library's own initialisers, and the loader reports an error for a file that is
    // not a library.
    let library = LIBRARIES.iter().find_map(|name| unsafe { Library::new(name) }.ok())?;
    // SAFETY: these are the types that the OpenCL specification gives for the names.
    let (platforms, devices, info) = unsafe {
        (
            *library.get::<GetPlatforms>(b"clGetPlatformIDs\0").ok()?,
            *library.get::<GetDevices>(b"clGetDeviceIDs\0").ok()?,
            *library.get::<GetInfo>(b"clGetDeviceInfo\0").ok()?,
        )
    };
    // Drivers with threads of their own do not unload safely.
    std::mem::forget(library);
    let mut found = Vec::new();
    let mut handles = [std::ptr::null_mut(); MOST];
    let mut count: c_uint = 0;
    // SAFETY: the array has room for as many handles as the call is told, and the count is a live integer.
    if unsafe { platforms(MOST as c_uint, handles.as_mut_ptr(), &mut count) } != 0 {
        // Without drivers there is no platform, which is an error of its own.
        return Some(found);
    }
    for platform in &handles[..(count as usize).min(MOST)] {
        let (mut own, mut count) = ([std::ptr::null_mut(); MOST], 0);
        // SAFETY: as above, with a platform of the library.
        if unsafe { devices(*platform, ALL, MOST as c_uint, own.as_mut_ptr(), &mut count) } != 0 {
            continue;
        }
        for device in &own[..(count as usize).min(MOST)] {
            found.push(OpenClDevice {
                id: format!("opencl:{}", found.len()),
                name: text(info, *device, NAME),
                memory_bytes: number(info, *device, MEMORY),
                f64: number(info, *device, DOUBLE) != 0,
            });
        }
    }
    Some(found)
}

/// A property that is a text.
fn text(info: GetInfo, device: Handle, property: c_uint) -> String {
    let (mut bytes, mut length) = ([0u8; 512], 0);
    // SAFETY: the device is one of the library's; the buffer has the size that the call is told.
    let done = unsafe { info(device, property, bytes.len(), bytes.as_mut_ptr().cast(), &mut length) } == 0;
    let bytes = if done { &bytes[..length.min(bytes.len())] } else { &[] };
    let text = String::from_utf8_lossy(bytes);
    text.trim_end_matches('\0').split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A property that is a number of 64 bits; 0 if the device does not know it.
fn number(info: GetInfo, device: Handle, property: c_uint) -> u64 {
    let (mut number, mut length) = (0u64, 0);
    let place = std::ptr::from_mut(&mut number).cast();
    // SAFETY: as above; the number is as long as the call is told.
    let done = unsafe { info(device, property, size_of::<u64>(), place, &mut length) } == 0;
    if done && length == size_of::<u64>() { number } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever this machine has, each device has a number, a name and memory.
    #[test]
    fn devices_are_numbered() {
        for (i, device) in opencl_devices().unwrap_or_default().iter().enumerate() {
            assert_eq!(device.id, format!("opencl:{i}"));
            assert!(!device.name.is_empty() && device.memory_bytes > 0, "{device:?}");
        }
    }
}
