//! The memory of a device: its size, and its link to the host.

use serde::{Deserialize, Serialize};

/// What lies between a device and the memory of its host. Operands go up to the device while it computes, and
/// results come down when it has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceMemory {
    /// The processor or cluster at the other end of its link.
    pub host: Option<String>,
    /// Bytes that may be on the device; `None` for no limit.
    pub bytes: Option<u64>,
    /// True if the device computes while messages travel, as that of a rank does: all of its part of C stays on it.
    /// Otherwise it computes [tiles](device_tile) when its operands are all on its host.
    pub resident: bool,
    /// True if panels go up while the device computes; a device made of cores may need them for both.
    pub overlaps: bool,
    /// True if transfers in both directions at once take as long as the longer of them, and not as long as both.
    pub duplex: bool,
    /// Seconds before the first byte of a transfer arrives.
    pub latency: f64,
    /// Bytes per second to the device; infinite if the link is not known.
    pub up: f64,
    /// Bytes per second from the device.
    pub down: f64,
}

impl DeviceMemory {
    /// A memory of this size behind a link of unknown cost, which is that of none.
    pub fn behind_unknown_link(bytes: Option<u64>) -> Self {
        Self {
            host: None,
            bytes,
            resident: false,
            overlaps: true,
            duplex: true,
            latency: 0.0,
            up: f64::INFINITY,
            down: f64::INFINITY,
        }
    }

    /// The same memory behind a link: of two bandwidths, the first is that to the device.
    pub(super) fn behind(self, host: &str, latency: f64, (up, down): (f64, f64)) -> Self {
        Self { host: Some(host.to_owned()), latency, up, down, ..self }
    }

    /// True if the link's bandwidths are known.
    pub fn has_known_link(&self) -> bool {
        self.up.is_finite() && self.down.is_finite()
    }

    /// Elements of C in the largest tile that the device computes at a time, with panels of `depth` inner indices;
    /// `None` if it holds any.
    pub(crate) fn tile_elements(&self, depth: u64, element: u64) -> Option<f64> {
        let bytes = self.bytes.filter(|_| !self.resident)?;
        Some(square_tile(depth, element, bytes).max(1.0).powi(2))
    }

    /// The most columns of `rows` rows that stay on the device while panels of `depth` columns, and as many rows, go up
    /// to it; both are packed there.
    ///
    /// By hand, with elements of 8 bytes, 10 rows and depth 16: 10 * 15 + 16 elements for padded rows of columns and 1
    /// for a flag, 10 * 16 of a panel, (10 + 128) * 16 of a packed one; each column takes 10 + 2 * 16 more.
    pub fn most_columns(&self, rows: u64, depth: u64, element: u64) -> u64 {
        /// Rows of columns are padded to a multiple, and so is the depth of packed panels.
        const PADDED: u64 = 16;
        /// Bytes by which the strips of both packed panels are longer than what is in them.
        const STRIPS: u64 = 1024;
        let Some(bytes) = self.bytes else { return u64::MAX };
        let packed = depth.next_multiple_of(PADDED) as f64;
        let (rows, depth) = (rows as f64, depth as f64);
        let padding = rows * (PADDED - 1) as f64 + (PADDED + 1) as f64;
        let panel = rows * depth + (rows + (STRIPS / element.max(1)) as f64) * packed;
        let left = (bytes / element.max(1)) as f64 - padding - panel;
        (left / (rows + depth + packed)).max(0.0) as u64
    }

    /// Seconds of `transfers` transfers to the device, of `bytes` bytes together.
    pub fn seconds_up(&self, transfers: u64, bytes: f64) -> f64 {
        transfers as f64 * self.latency + bytes / self.up
    }

    /// Seconds of `transfers` transfers from the device, of `bytes` bytes together.
    pub fn seconds_down(&self, transfers: u64, bytes: f64) -> f64 {
        transfers as f64 * self.latency + bytes / self.down
    }

    /// Seconds of transfers in both directions at once, which take `up` and `down` seconds alone.
    pub fn seconds_both(&self, up: f64, down: f64) -> f64 {
        if self.duplex { up.max(down) } else { up + down }
    }
}

/// Rows and columns of the largest tiles, as square as the rectangle allows and all about equal, into which a
/// rectangle of C is cut so that a device of `memory` bytes holds one of them with two panels of A and of B of
/// `depth` inner indices. At least 1 x 1, whether it fits or not.
///
/// By hand, with elements of 8 bytes, depth 1 and 8 * (9 + 4 * 3) = 168 bytes: a 3 x 3 tile and 2 * (3 + 3)
/// elements of panels fit, a 3 x 4 tile and 2 * (3 + 4) do not.
pub fn device_tile(rows: u64, cols: u64, depth: u64, element: u64, memory: Option<u64>) -> [u64; 2] {
    let whole = [rows.max(1), cols.max(1)];
    let Some(memory) = memory else { return whole };
    let elements = (memory / element.max(1)) as f64;
    let twice = 2.0 * depth as f64;
    let square = square_tile(depth, element, memory);
    // With one side s given: t (s + 2 depth) <= elements - 2 s depth.
    let other = |side: u64| ((elements - twice * side as f64) / (side as f64 + twice)).floor();
    let limits = if (rows as f64) < square {
        [rows as f64, other(rows)]
    } else if (cols as f64) < square {
        [other(cols), cols as f64]
    } else {
        [square, square]
    };
    let even = |length: u64, limit: f64| {
        let limit = (limit.max(1.0) as u64).min(length);
        length.div_ceil(length.div_ceil(limit))
    };
    [even(whole[0], limits[0]), even(whole[1], limits[1])]
}

/// Rows of the largest square tile of C that a device of `memory` bytes holds with two panels of A and of B of `depth`
/// inner indices: t^2 + 4 t depth elements.
fn square_tile(depth: u64, element: u64, memory: u64) -> f64 {
    let (elements, twice) = ((memory / element.max(1)) as f64, 2.0 * depth as f64);
    ((elements + twice * twice).sqrt() - twice).floor()
}

/// What goes up to a device for a piece of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceUploads {
    /// Elements.
    pub elements: u64,
    /// Tiles that it computes one after the other, each with uploads of its own.
    pub(crate) tiles: u64,
}

impl DeviceUploads {
    /// The uploads of a product of `rows` x `inner` by `inner` x `cols`, whose panels have `inner` indices, on a
    /// device that holds one [tile](device_tile) of C: a panel goes up once for each tile that uses it.
    pub(crate) fn of_product([rows, inner, cols]: [u64; 3], element: u64, memory: Option<u64>) -> Self {
        let [tall, wide] = device_tile(rows, cols, inner, element, memory);
        let [down, across] = [rows.div_ceil(tall), cols.div_ceil(wide)];
        Self { elements: inner * (rows * across + cols * down), tiles: down * across }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_and_are_even() {
        assert_eq!(device_tile(10, 10, 1, 8, None), [10, 10]);
        assert_eq!(device_tile(6, 6, 1, 8, Some(168)), [3, 3]);
        // One byte less: 2^2 + 4 * 2 = 12 elements fit.
        assert_eq!(device_tile(6, 6, 1, 8, Some(167)), [2, 2]);
        // Four tiles of at most 3 for 10 rows: 3 + 3 + 2 + 2, cut every 3.
        assert_eq!(device_tile(10, 3, 1, 8, Some(168)), [3, 3]);
        // A flat rectangle gets longer tiles: 1 * t + 2 (1 + t) <= 21 gives t = 6.
        assert_eq!(device_tile(1, 100, 1, 8, Some(168)), [1, 6]);
        assert_eq!(device_tile(5, 5, 4, 8, Some(8)), [1, 1]);
        assert_eq!(device_tile(0, 7, 4, 8, None), [1, 7]);
        let memory = DeviceMemory::behind_unknown_link(Some(168));
        assert_eq!(memory.tile_elements(1, 8), Some(9.0));
        assert_eq!(DeviceMemory { resident: true, ..memory }.tile_elements(1, 8), None);
        assert_eq!(DeviceMemory::behind_unknown_link(None).tile_elements(1, 8), None);
        let columns = |bytes| DeviceMemory::behind_unknown_link(bytes).most_columns(10, 16, 8);
        let fixed = 8 * (10 * 15 + 17 + 10 * 16 + (10 + 128) * 16);
        assert_eq!([columns(Some(fixed + 8 * 42)), columns(Some(fixed + 8 * 42 * 5 - 1))], [1, 4]);
        assert_eq!([columns(Some(fixed - 8)), columns(Some(0)), columns(None)], [0, 0, u64::MAX]);
    }

    #[test]
    fn panels_go_up_once_for_each_tile() {
        // Whole: 2 (6 + 6). In tiles of 3 x 3: A twice, B twice.
        let of = |memory| DeviceUploads::of_product([6, 1, 6], 8, memory);
        assert_eq!(of(None), DeviceUploads { elements: 12, tiles: 1 });
        assert_eq!(of(Some(168)), DeviceUploads { elements: 24, tiles: 4 });
    }
}
