//! The work of a device: tile by tile, panels go up while it computes with those before, then the tile comes down
//! while the first panels of the next go up.

use crate::platform::{DeviceMemory, DeviceUploads};

/// Transfers to a device for each update of a tile: a panel of A and one of B.
const PANELS: u64 = 2;

/// Pieces of work in the order in which the device does them.
#[derive(Debug, Clone, Default)]
pub(super) struct DeviceWork {
    /// Seconds in which the operands of a piece go up, and in which the device computes with them, of the pieces
    /// that have not started.
    pieces: Vec<[f64; 2]>,
    /// The most tiles of a piece.
    tiles: u64,
    /// When the device ends the last piece that has started, and the one before.
    ends: Option<[f64; 2]>,
}

impl DeviceWork {
    /// Adds a piece of work that takes the device `seconds`.
    pub(super) fn push(&mut self, memory: &DeviceMemory, uploads: DeviceUploads, element: u64, seconds: f64) {
        let DeviceUploads { elements, tiles } = uploads;
        let up = memory.seconds_up(PANELS * tiles, (elements * element) as f64);
        self.pieces.push([up, seconds]);
        self.tiles = self.tiles.max(tiles);
    }

    /// Starts all pieces at `now`, or when the device can. There are two pairs of panels: one is written to while the
    /// device computes with the other, if it can do both. Returns when the last panels have gone up.
    pub(super) fn start(&mut self, now: f64, memory: &DeviceMemory) -> f64 {
        let mut sent = now;
        for [up, seconds] in self.pieces.drain(..) {
            let [last, before] = self.ends.unwrap_or([now, now]);
            sent = sent.max(if memory.overlaps { before } else { last }) + up;
            self.ends = Some([sent.max(last) + seconds, last]);
        }
        sent
    }

    /// When the device has nothing to do, from `now` on.
    pub(super) fn idle(&self, now: f64) -> f64 {
        self.ends.map_or(now, |[last, _]| last.max(now))
    }

    /// Starts what has not started, and returns when `bytes` of results are on the host. Tiles take equal parts of all
    /// pieces; the first panels of a tile go up while the device computes with the last ones of the tile before, and
    /// while that comes down.
    pub(super) fn end(&mut self, now: f64, memory: &DeviceMemory, bytes: f64) -> f64 {
        let tiles = self.tiles.max(1) as f64;
        self.pieces.iter_mut().flatten().for_each(|seconds| *seconds /= tiles);
        let [first, _] = self.pieces.first().copied().unwrap_or_default();
        let [_, hidden] = self.pieces.last().copied().filter(|_| memory.overlaps).unwrap_or_default();
        let sent = self.start(now, memory);
        let Some([last, _]) = self.ends else { return now };
        let (end, down) = (last.max(sent), memory.seconds_down(1, bytes / tiles));
        let between = memory.seconds_both((first - hidden).max(0.0), down);
        end + (tiles - 1.0) * (between + (end - now - first).max(0.0)) + down
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, on a link of 1 element of 1 byte per second and no latency.
    #[test]
    fn the_slower_of_link_and_device_counts() {
        let memory = DeviceMemory { up: 1.0, down: 2.0, ..DeviceMemory::behind_unknown_link(None) };
        let of = |elements, tiles, seconds| {
            let mut work = DeviceWork::default();
            for _ in 0..3 {
                work.push(&memory, DeviceUploads { elements, tiles }, 1, seconds);
            }
            work.end(100.0, &memory, 8.0) - 100.0
        };
        // Three pieces of 5 s hide all transfers but the first one of 2 s; 8 bytes take 4 s to come down.
        assert_eq!(of(2, 1, 5.0), 2.0 + 15.0 + 4.0);
        // Pieces of 1 s wait for the link.
        assert_eq!(of(2, 1, 1.0), 6.0 + 1.0 + 4.0);
        let serial = DeviceMemory { overlaps: false, ..memory.clone() };
        let mut work = DeviceWork::default();
        for _ in 0..3 {
            work.push(&serial, DeviceUploads { elements: 2, tiles: 1 }, 1, 5.0);
        }
        assert_eq!(work.end(0.0, &serial, 8.0), 3.0 * (2.0 + 5.0) + 4.0, "nothing is hidden");
        // In two tiles, the second tile's first panels go up in 1 s while the device computes.
        assert_eq!(of(2, 2, 5.0), 1.0 + 15.0 + 4.0);
        assert_eq!(DeviceWork::default().end(3.0, &memory, 8.0), 3.0);
    }

    /// One piece of 6 s up, in two tiles of 3 s up, 1 s of computing and 2 s down.
    #[test]
    fn a_tile_comes_down_while_the_next_panels_go_up() {
        let both = DeviceMemory { up: 1.0, down: 2.0, ..DeviceMemory::behind_unknown_link(None) };
        let of = |memory: &DeviceMemory| {
            let mut work = DeviceWork::default();
            work.push(memory, DeviceUploads { elements: 6, tiles: 2 }, 1, 2.0);
            work.end(0.0, memory, 8.0)
        };
        // 1 s of the second tile's 3 s up is hidden by computing, and the rest by the first tile's way down.
        assert_eq!(of(&both), 3.0 + 1.0 + 2.0 + 1.0 + 2.0);
        let half = DeviceMemory { duplex: false, ..both };
        assert_eq!(of(&half), 3.0 + 1.0 + (2.0 + 2.0) + 1.0 + 2.0);
        let serial = DeviceMemory { overlaps: false, ..half };
        assert_eq!(of(&serial), 3.0 + 1.0 + (3.0 + 2.0) + 1.0 + 2.0);
    }

    /// A device that computes while its processor waits for messages ends earlier.
    #[test]
    fn work_starts_when_its_operands_are_there() {
        let memory = DeviceMemory { up: 1.0, down: 2.0, ..DeviceMemory::behind_unknown_link(None) };
        let mut work = DeviceWork::default();
        let one = DeviceUploads { elements: 2, tiles: 1 };
        for (now, free) in [(0.0, 2.0), (10.0, 12.0), (12.0, 14.0)] {
            work.push(&memory, one, 1, 5.0);
            assert_eq!(work.start(now, &memory), free);
        }
        // From 2 to 7, from 12 to 17, and from 17 to 22; then 4 s down.
        assert_eq!(work.end(14.0, &memory, 8.0), 26.0);
    }
}
