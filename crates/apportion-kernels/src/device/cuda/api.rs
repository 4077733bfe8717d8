//! The functions of the CUDA driver that are used, by their addresses.
//!
//! Source of the interface: NVIDIA, "CUDA Driver API", 12, and its header of C. All functions are in drivers since
//! CUDA 7.

use crate::device::library::table;
use std::ffi::{c_char, c_void};

/// The driver as the loader finds it.
pub(crate) const LIBRARIES: [&str; 2] = ["libcuda.so.1", "nvcuda.dll"];

/// A `CUcontext`, `CUstream`, `CUevent`, …
pub(crate) type Handle = *mut c_void;
/// A `CUdeviceptr`.
pub(crate) type Address = u64;

table! {
    init = "cuInit": fn(u32) -> i32;
    version = "cuDriverGetVersion": fn(*mut i32) -> i32;
    count = "cuDeviceGetCount": fn(*mut i32) -> i32;
    device = "cuDeviceGet": fn(*mut i32, i32) -> i32;
    name = "cuDeviceGetName": fn(*mut c_char, i32, i32) -> i32;
    total_memory = "cuDeviceTotalMem_v2": fn(*mut usize, i32) -> i32;
    context = "cuDevicePrimaryCtxRetain": fn(*mut Handle, i32) -> i32;
    push = "cuCtxPushCurrent_v2": fn(Handle) -> i32;
    pop = "cuCtxPopCurrent_v2": fn(*mut Handle) -> i32;
    memory = "cuMemGetInfo_v2": fn(*mut usize, *mut usize) -> i32;
    allocate = "cuMemAlloc_v2": fn(*mut Address, usize) -> i32;
    free = "cuMemFree_v2": fn(Address) -> i32;
    write = "cuMemcpyHtoDAsync_v2": fn(Address, *const c_void, usize, Handle) -> i32;
    read = "cuMemcpyDtoHAsync_v2": fn(*mut c_void, Address, usize, Handle) -> i32;
    copy_rows = "cuMemcpy2DAsync_v2": fn(*const CopyRows, Handle) -> i32;
    stream = "cuStreamCreate": fn(*mut Handle, u32) -> i32;
    wait_stream = "cuStreamSynchronize": fn(Handle) -> i32;
    event = "cuEventCreate": fn(*mut Handle, u32) -> i32;
    record = "cuEventRecord": fn(Handle, Handle) -> i32;
    query = "cuEventQuery": fn(Handle) -> i32;
    wait = "cuEventSynchronize": fn(Handle) -> i32;
    milliseconds = "cuEventElapsedTime": fn(*mut f32, Handle, Handle) -> i32;
    release_event = "cuEventDestroy_v2": fn(Handle) -> i32;
    module = "cuModuleLoadDataEx": fn(*mut Handle, *const c_void, u32, *const i32, *mut *mut c_void) -> i32;
    function = "cuModuleGetFunction": fn(*mut Handle, Handle, *const c_char) -> i32;
    release_module = "cuModuleUnload": fn(Handle) -> i32;
    launch = "cuLaunchKernel":
        fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *const *mut c_void, *const *mut c_void) -> i32;
}

/// A `CUDA_MEMCPY2D`.
#[repr(C)]
pub(crate) struct CopyRows {
    pub from: End,
    pub to: End,
    /// Bytes of a row.
    pub bytes: usize,
    pub rows: usize,
}

/// Where the rows of a copy begin, and how far apart.
#[repr(C)]
pub(crate) struct End {
    /// Bytes before a row, and rows before the first.
    pub offset: [usize; 2],
    /// [`HOST`] or [`DEVICE`].
    pub kind: u32,
    pub host: *mut c_void,
    pub device: Address,
    /// A `CUarray`; not used.
    pub array: Handle,
    pub pitch: usize,
}

/// `CU_MEMORYTYPE_HOST` and `CU_MEMORYTYPE_DEVICE`.
pub(crate) const HOST: u32 = 1;
pub(crate) const DEVICE: u32 = 2;
