//! The processes of an MPI communicator of the caller.

use crate::boundary::{check, free, guard, hand_out, refuse};
use apportion::Result;
use apportion::run::{Monitor, World};
use std::ffi::{c_int, c_void};

/// A world on a duplicate of a communicator.
pub struct Adopted {
    pub world: World,
    pub monitor: Monitor,
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_world_adopt(
    communicator: *const c_void,
    size_of_communicator: i64,
    world: *mut *mut Adopted,
) -> c_int {
    guard(|| {
        // SAFETY: the caller promises the address of a communicator of this size, which may be copied.
        let handle = unsafe {
            match size_of_communicator {
                4 => {
                    check(communicator.cast::<u32>(), 1, "communicator")?;
                    communicator.cast::<u32>().read() as usize
                }
                8 => {
                    check(communicator.cast::<u64>(), 1, "communicator")?;
                    communicator.cast::<u64>().read() as usize
                }
                other => {
                    let what = format!("{other} bytes are no MPI_Comm");
                    return Err(refuse("communicator", what, "give sizeof(MPI_Comm)"));
                }
            }
        };
        hand(world, |monitor| World::adopt(handle, monitor))
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_world_adopt_fortran(
    communicator: c_int,
    world: *mut *mut Adopted,
) -> c_int {
    guard(|| hand(world, |monitor| World::adopt_fortran(communicator, monitor)))
}

fn hand(place: *mut *mut Adopted, adopt: impl FnOnce(&Monitor) -> Result<World>) -> Result<()> {
    // Before the others wait for this process.
    check(place.cast_const(), 1, "world")?;
    let monitor = Monitor::new();
    let world = adopt(&monitor)?;
    // SAFETY: the caller of the two functions above promises room for a pointer.
    unsafe { hand_out(place, Adopted { world, monitor }, "world") }
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_world_free(world: *mut Adopted) {
    let _ = guard(|| {
        // SAFETY: the caller's promise.
        if let Some(adopted) = unsafe { free(world) } {
            adopted.world.finalize();
        }
        Ok(())
    });
}
