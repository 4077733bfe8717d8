//! How much memory a run in slabs takes, and how high slabs may be.

use super::Slabs;
use super::files::{CHUNK, plane_elements};
use crate::{Advance, AdvectProblem, AdvectSchedule, Region};
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::kernels::mpdata::{Advectable, Place, Subdomain};
use apportion::platform::Platform;

/// Bytes that a process needs for any computation: the program and what is written at once.
const BASE: u64 = 16 << 20;

/// Bytes that a thread keeps, besides the arrays between the passes.
const THREAD: u64 = 2 << 20;

/// Predicted peak memory of the process in bytes: the boxes, the arrays between the passes on every thread,
/// halos under way, and the planes that are read or written.
pub(crate) fn slab_bytes<T: Advectable>(schedule: &AdvectSchedule, platform: &Platform) -> u64 {
    let (problem, element) = (schedule.problem(), size_of::<T>() as u64);
    let one = schedule.with_steps(1);
    let of = |rank: usize| {
        let threads = platform.processors[rank].cores.len().max(1) as u64;
        let rank = Rank(rank);
        let between = schedule.boxes(rank).iter().map(|cells| {
            Subdomain::<T>::between_bytes(schedule.domain(), schedule.stencil(), cells, schedule.undivided())
        });
        let all = Advance { pass: 0, region: Region::All, amount: 0.0 };
        let own = schedule.own_pieces(rank, &all).iter().map(|piece| piece.here.count() as u64).max();
        // A message is held by its sender and its receiver.
        let under_way = 2 * one.volume(rank) + own.unwrap_or(0);
        schedule.memory(rank, element) + under_way * element + threads * (THREAD + between.max().unwrap_or(0))
    };
    let places = schedule.domain().axes().iter().map(|axis| Place::Face(*axis));
    let plane = places.map(|place| plane_elements(problem, place)).max().unwrap_or(1) * element;
    BASE + 3 * plane.max(CHUNK) + (0..schedule.boxes_by_rank()).map(of).sum::<u64>()
}

/// The height of the highest slabs with which a process stays within `memory` bytes, and what `make` made for
/// them: the need that it returns grows with the height.
///
/// # Errors
/// Not even the lowest slab fits: exit code 1, with the bytes that it needs.
pub(crate) fn tallest_slab<M>(
    problem: &AdvectProblem,
    memory: u64,
    make: &mut dyn FnMut(Slabs) -> Result<(u64, M)>,
) -> Result<(Slabs, M)> {
    let (least, planes) = (Slabs::least(problem), problem.sizes[0] as u64);
    let (lowest, made) = make(Slabs::new(problem, least))?;
    if lowest > memory {
        return Err(least_memory(problem, memory, lowest));
    }
    let mut best = (least, made);
    // Between heights that fit and heights that do not, the need is nearly a line.
    let (mut low, mut high) = ((least, lowest), planes + 1);
    let mut next = planes;
    while high - low.0 > 1 {
        let height = next.clamp(low.0 + 1, high - 1);
        let (need, made) = make(Slabs::new(problem, height))?;
        if need <= memory {
            (best, low) = ((height, made), (height, need));
            // A slab that is nearly as high as possible is high enough.
            if memory - need < memory / 64 {
                break;
            }
        } else {
            high = height;
        }
        let slope = (need.saturating_sub(lowest) / (height - least).max(1)).max(1);
        next = low.0 + (memory - low.1) / slope;
    }
    Ok((Slabs::new(problem, best.0), best.1))
}

/// The refusal of a limit.
pub(crate) fn least_memory(problem: &AdvectProblem, memory: u64, needed: u64) -> Error {
    let least = Slabs::least(problem);
    let planes = if least == 1 { "plane" } else { "planes" };
    Error::infeasible(
        format!(
            "{memory} bytes of memory are too few: the thinnest slab, of {least} {planes}, needs {needed}"
        ),
        "give more `memory`, fewer `iterations`, or fewer processors",
    )
}
