//! The functions of the OpenCL library that are used, by their addresses.
//!
//! Source of the interface: Khronos, "The OpenCL Specification", 3.0, and its headers of C; all
//! functions are in version 1.1.

use crate::device::library::table;
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

/// The library as the loader finds it.
pub(crate) const LIBRARIES: [&str; 4] =
    ["libOpenCL.so.1", "libOpenCL.so", "/System/Library/Frameworks/OpenCL.framework/OpenCL", "OpenCL.dll"];

/// A `cl_platform_id`, `cl_context`, `cl_mem`, …
pub(crate) type Handle = *mut c_void;
/// A function that is called with errors of a context; none is given.
type Notify = *const c_void;

table! {
    platforms = "clGetPlatformIDs": fn(u32, *mut Handle, *mut u32) -> i32;
    platform_info = "clGetPlatformInfo": fn(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    devices = "clGetDeviceIDs": fn(Handle, u64, u32, *mut Handle, *mut u32) -> i32;
    device_info = "clGetDeviceInfo": fn(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    context = "clCreateContext": fn(*const isize, u32, *const Handle, Notify, *mut c_void, *mut i32) -> Handle;
    queue = "clCreateCommandQueue": fn(Handle, Handle, u64, *mut i32) -> Handle;
    buffer = "clCreateBuffer": fn(Handle, u64, usize, *mut c_void, *mut i32) -> Handle;
    release_buffer = "clReleaseMemObject": fn(Handle) -> i32;
    program = "clCreateProgramWithSource": fn(Handle, u32, *const *const c_char, *const usize, *mut i32) -> Handle;
    program_of_binary = "clCreateProgramWithBinary":
        fn(Handle, u32, *const Handle, *const usize, *const *const u8, *mut i32, *mut i32) -> Handle;
    program_info = "clGetProgramInfo": fn(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    build = "clBuildProgram": fn(Handle, u32, *const Handle, *const c_char, Notify, *mut c_void) -> i32;
    build_info = "clGetProgramBuildInfo": fn(Handle, Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    release_program = "clReleaseProgram": fn(Handle) -> i32;
    kernel = "clCreateKernel": fn(Handle, *const c_char, *mut i32) -> Handle;
    argument = "clSetKernelArg": fn(Handle, u32, usize, *const c_void) -> i32;
    release_kernel = "clReleaseKernel": fn(Handle) -> i32;
    launch = "clEnqueueNDRangeKernel":
        fn(Handle, Handle, u32, *const usize, *const usize, *const usize, u32, *const Handle, *mut Handle) -> i32;
    write = "clEnqueueWriteBuffer":
        fn(Handle, Handle, u32, usize, usize, *const c_void, u32, *const Handle, *mut Handle) -> i32;
    read = "clEnqueueReadBuffer":
        fn(Handle, Handle, u32, usize, usize, *mut c_void, u32, *const Handle, *mut Handle) -> i32;
    write_rows = "clEnqueueWriteBufferRect":
        fn(Handle, Handle, u32, *const usize, *const usize, *const usize, usize, usize, usize, usize,
           *const c_void, u32, *const Handle, *mut Handle) -> i32;
    read_rows = "clEnqueueReadBufferRect":
        fn(Handle, Handle, u32, *const usize, *const usize, *const usize, usize, usize, usize, usize,
           *mut c_void, u32, *const Handle, *mut Handle) -> i32;
    flush = "clFlush": fn(Handle) -> i32;
    wait = "clWaitForEvents": fn(u32, *const Handle) -> i32;
    event_info = "clGetEventInfo": fn(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    event_times = "clGetEventProfilingInfo": fn(Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    release_event = "clReleaseEvent": fn(Handle) -> i32;
}

/// The table of this machine's library; `None` without a library.
pub(crate) fn api() -> Option<&'static Api> {
    static API: OnceLock<Option<Api>> = OnceLock::new();
    API.get_or_init(|| Api::load(&LIBRARIES).ok()).as_ref()
}

/// A property of 64 bits or fewer, by a function that is given the size of the place and the place; `None` if it
/// is not known.
pub(crate) fn number(get: impl FnOnce(usize, *mut c_void, *mut usize) -> i32) -> Option<u64> {
    let (mut number, mut length) = ([0u8; 8], 0);
    let done = get(number.len(), number.as_mut_ptr().cast(), &mut length) == 0;
    // The first bytes hold a shorter number on machines whose lowest byte is first.
    (done && (1..=8).contains(&length)).then(|| u64::from_le_bytes(number))
}

/// A property that is a text, in one line.
pub(crate) fn text(mut get: impl FnMut(usize, *mut c_void, *mut usize) -> i32) -> String {
    let mut length = 0;
    if get(0, std::ptr::null_mut(), &mut length) != 0 {
        return String::new();
    }
    let mut bytes = vec![0u8; length];
    if get(bytes.len(), bytes.as_mut_ptr().cast(), &mut length) != 0 {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
}
