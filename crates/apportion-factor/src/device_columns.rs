//! The block columns of a processor that is a device: they stay in its memory, where they are updated with the panels
//! that go up to it. A block column comes down when it is to become a panel, and rows of U when they are to be solved
//! for: both are done by the cores that drive the device, and remain on the host.

use crate::LocalColumns;
use apportion::device::{DeviceTile, open_device};
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::kernels::{Kernel, Real, View, ViewMut};
use apportion::platform::{DeviceMemory, Platform};
use apportion::units::show_bytes;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Seconds of an emulated transfer that is as good as endless.
const ENDLESS: f64 = 1e6;

/// The device of a processor.
#[derive(Debug, Clone)]
pub(crate) struct DevicePlace {
    id: String,
    memory: DeviceMemory,
    /// True if transfers take the time that the link's costs give.
    emulated: bool,
}

impl DevicePlace {
    /// That of a platform's processor, if it is one.
    pub(crate) fn of(platform: &Platform, rank: Rank) -> Option<Self> {
        let id = platform.processors[rank.0].device.clone()?;
        let memory = platform.network.devices.get(&rank)?.clone();
        Some(Self { id, memory, emulated: platform.network.emulate })
    }
}

/// The columns of a processor on its device, side by side as on its host.
#[derive(Debug)]
pub(crate) struct DeviceColumns<T> {
    /// Or why there is none: the error of what is done first.
    tile: std::result::Result<DeviceTile<T>, Option<Error>>,
    place: DevicePlace,
    /// Seconds for which the device computed, not returned yet.
    seconds: f64,
}

/// A rectangle of a processor's columns, down to the last row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rectangle {
    /// Its first row.
    pub row: usize,
    /// The columns among those of the processor.
    pub cols: Range<usize>,
}

impl<T: Real> DeviceColumns<T> {
    /// Copies columns to a device, for panels of at most `block` columns.
    pub(crate) fn new(
        place: &DevicePlace,
        kernel: &Kernel<T>,
        columns: &LocalColumns<T>,
        block: usize,
    ) -> Self {
        let open = || {
            let (device, rows, width) = (open_device(&place.id)?, columns.rows(), columns.width());
            let needed = DeviceTile::<T>::bytes(kernel.semiring(), rows as u64, width as u64, block as u64);
            if let Some(most) = place.memory.bytes.filter(|most| needed > *most) {
                let [needed, most] = [needed, most].map(|bytes| show_bytes(bytes as f64));
                return Err(Error::TooLittleMemory {
                    what: format!(
                        "{}: {width} columns of {rows} rows with a panel of {block} need {needed}, and the device may \
                         hold {most}",
                        device.info()
                    ),
                    remedy: "raise its `memory`, give it a lower speed, or leave the plan open".into(),
                });
            }
            let mut tile = DeviceTile::new(&device, kernel, rows, width, block)?;
            // Before the clock starts.
            tile.touch()?;
            tile.upload(columns.view())?;
            Ok(tile)
        };
        Self { tile: open().map_err(Some), place: place.clone(), seconds: 0.0 }
    }

    /// Bytes that went up to the device, and that came down.
    pub(crate) fn moved(&self) -> [u64; 2] {
        self.tile.as_ref().map_or([0; 2], |tile| [tile.bytes_up(), tile.bytes_down()])
    }

    /// The seconds for which the device computed since the last call, as far as they are known.
    pub(crate) fn take_seconds(&mut self) -> f64 {
        std::mem::take(&mut self.seconds)
    }

    /// Waits until the device has ended.
    ///
    /// # Errors
    /// The device fails.
    pub(crate) fn wait(&mut self) -> Result<()> {
        self.using(DeviceTile::wait)
    }

    /// Does something with the tile, which returns seconds of kernels. It takes as long as its transfers do on an
    /// emulated link.
    fn using(&mut self, work: impl FnOnce(&mut DeviceTile<T>) -> Result<f64>) -> Result<()> {
        let (begin, before) = (Instant::now(), self.moved());
        let tile = match &mut self.tile {
            Ok(tile) => tile,
            Err(error) => return Err(error.take().unwrap_or(Error::Interrupted)),
        };
        self.seconds += work(tile)?;
        if self.place.emulated {
            let [up, down] = [0, 1].map(|way| self.moved()[way] - before[way]);
            let memory = &self.place.memory;
            let seconds = memory.seconds_up(u64::from(up > 0), up as f64)
                + memory.seconds_down(u64::from(down > 0), down as f64);
            let end = begin + Duration::from_secs_f64(seconds.min(ENDLESS));
            std::thread::sleep(end.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    /// Copies some columns to the host, from a row on, when the device has ended.
    ///
    /// # Errors
    /// The device fails.
    pub(crate) fn fetch(&mut self, columns: &mut LocalColumns<T>, part: Rectangle) -> Result<()> {
        let Rectangle { row, cols } = part;
        let rows: Vec<usize> = (row..columns.rows()).collect();
        let mut own = columns.view_mut();
        let here = own.tile(row, cols.start, rows.len(), cols.len());
        self.using(|tile| tile.download_rows(&rows, cols.start, here))
    }

    /// C := C + L U in some rectangles, and returns while the device computes. L has the rows from `first` on, and U
    /// the columns from `left` on.
    ///
    /// # Errors
    /// The device fails.
    pub(crate) fn update(
        &mut self,
        [first, left]: [usize; 2],
        l: View<T>,
        u: View<T>,
        rectangles: impl Iterator<Item = Rectangle>,
    ) -> Result<()> {
        let depth = l.cols();
        for Rectangle { row, cols } in rectangles {
            let a = l.tile(row - first, 0, first + l.rows() - row, depth);
            let b = u.tile(0, cols.start - left, depth, cols.len());
            self.using(|tile| tile.update_part([row, cols.start], a, b))?;
        }
        Ok(())
    }

    /// Solves for rows of U, which become those of the host, where `solve` exchanges rows as these pivots demand. Those
    /// below that were exchanged go up again.
    ///
    /// # Errors
    /// The device fails. That of `solve`.
    pub(crate) fn solve(
        &mut self,
        columns: &mut LocalColumns<T>,
        part: &Rectangle,
        pivots: &[i64],
        solve: impl FnOnce(ViewMut<T>, &[i64]) -> Result<()>,
    ) -> Result<()> {
        let (first, width, across) = (part.row, pivots.len(), part.cols.len());
        let mut below: Vec<usize> = pivots.iter().map(|pivot| *pivot as usize).collect();
        below.retain(|row| *row >= width);
        below.sort_unstable();
        below.dedup();
        let rows: Vec<usize> = (0..width).chain(below.iter().copied()).map(|row| first + row).collect();
        let mut memory = vec![T::ZERO; rows.len() * across];
        let mut here = ViewMut::dense(&mut memory, rows.len(), across);
        self.using(|tile| tile.download_rows(&rows, part.cols.start, here.reborrow()))?;
        // Where the rows that are exchanged are among those that came down.
        let place = |pivot: &i64| match below.binary_search(&(*pivot as usize)) {
            Ok(place) => (width + place) as i64,
            Err(_) => *pivot,
        };
        solve(here, &pivots.iter().map(place).collect::<Vec<_>>())?;
        let (upper, lower) = memory.split_at(width * across);
        let mut own = columns.view_mut();
        for (i, row) in upper.chunks_exact(across).enumerate() {
            own.row(first + i)[part.cols.clone()].copy_from_slice(row);
        }
        let lower = View::dense(lower, below.len(), across);
        self.using(|tile| tile.upload_rows(&rows[width..], part.cols.start, lower).map(|()| 0.0))
    }
}

#[cfg(test)]
mod tests;
