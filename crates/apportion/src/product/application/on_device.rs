//! The tiles of C of a processor that is a device: while it computes with two panels, the next two go up, and a tile
//! comes down while the first panels of the next go up. Among threads it computes one tile after the other when its
//! operands are all on its host; that of a rank computes step by step, since a rank frees operands as it goes.

use super::{Product, Tiles, parts_of, place};
use crate::device::{DeviceTile, open_device};
use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span};
use crate::kernels::{Kernel, View, ViewMut};
use crate::matrix::Element;
use crate::platform::{DeviceMemory, Platform, device_tile};
use crate::schedule::Update;
use crate::units::show_bytes;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What a device computes for its processor.
#[derive(Debug)]
pub(super) struct OnDevice<T> {
    /// Memory for tiles on the device, or why there is none.
    tiles: std::result::Result<OnTiles<T>, Option<Error>>,
    memory: DeviceMemory,
    /// True if transfers take the time that the link's costs give.
    emulated: bool,
    /// Inner indices of a panel.
    depth: u64,
    /// Tiles to compute, or to bring home.
    left: VecDeque<Rect>,
    /// The tile that is being computed, and the inner index of its next panels.
    current: Option<(Rect, u64)>,
    /// A tile that is computed, and comes down with the first panels of the next.
    computed: Option<Rect>,
}

/// Tiles of C on a device.
#[derive(Debug)]
enum OnTiles<T> {
    /// One at a time, which is computed when its operands are all on the host.
    InTurn(Box<DeviceTile<T>>),
    /// All, which are updated step by step.
    Resident(Vec<(Rect, DeviceTile<T>)>),
}

impl<T: Element> OnDevice<T> {
    /// The device of a processor, if it is one and has tiles, with memory for them.
    pub(super) fn new(
        product: &Product<'_, T>,
        platform: &Platform,
        rank: Rank,
        tiles: &mut Tiles<'_, T>,
    ) -> Option<Self> {
        let id = platform.processors[rank.0].device.as_ref()?;
        let memory = platform.network.devices.get(&rank)?.clone();
        let depth = product.schedule.order().block;
        let rects: Vec<Rect> = tiles.iter().map(|(rect, _)| *rect).filter(|rect| !rect.is_empty()).collect();
        if rects.is_empty() {
            return None;
        }
        let found = match memory.resident {
            false => memory_in_turn(id, product.kernel, &rects, depth, memory.bytes),
            true => resident(id, product, tiles, depth, &memory)
                .map(|tiles| (tiles, rects.iter().copied().collect())),
        };
        let (tiles, left) = match found {
            Ok((tiles, left)) => (Ok(tiles), left),
            // The error is that of the first tile.
            Err(error) => (Err(Some(error)), rects.into()),
        };
        let emulated = platform.network.emulate;
        Some(Self { tiles, memory, emulated, depth, left, current: None, computed: None })
    }

    /// Whether the steps of the schedule compute nothing.
    pub(super) fn computes_last(&self) -> bool {
        !self.memory.resident
    }

    /// Bytes that went up to the device, and that came down.
    pub(super) fn moved(&self) -> [u64; 2] {
        let of = |tile: &DeviceTile<T>| [tile.bytes_up(), tile.bytes_down()];
        match &self.tiles {
            Ok(OnTiles::InTurn(tile)) => of(tile),
            Ok(OnTiles::Resident(tiles)) => tiles
                .iter()
                .map(|(_, tile)| of(tile))
                .fold([0; 2], |sum, more| [sum[0] + more[0], sum[1] + more[1]]),
            Err(_) => [0; 2],
        }
    }

    /// What [`finish`](Self::finish) does next in a product of `inner` inner indices: two panels of a tile, or none,
    /// which brings a tile home.
    pub(super) fn next_step(&mut self, inner: u64) -> Option<Update> {
        let home = |rect| Some(Update { rect, inner: Span::new(inner, inner) });
        if !self.computes_last() {
            return self.left.pop_front().and_then(home);
        }
        let (rect, start) = match self.current.take() {
            Some((rect, start)) if start < inner => (rect, start),
            Some((rect, _)) if self.left.is_empty() => return home(rect),
            computed => {
                self.computed = computed.map(|(rect, _)| rect);
                (self.left.pop_front()?, 0)
            }
        };
        let end = inner.min(start + self.depth.max(1));
        self.current = Some((rect, end)).filter(|_| end > start);
        Some(Update { rect, inner: Span::new(start, end) })
    }

    /// Updates a part of a tile that is resident. Returns the seconds for which the device computed since the last
    /// update.
    pub(super) fn update(&mut self, part: Rect, [a, b]: [View<'_, T>; 2]) -> Result<f64> {
        let tiles = match &mut self.tiles {
            Ok(OnTiles::Resident(tiles)) => tiles,
            Ok(OnTiles::InTurn(_)) => return Ok(0.0),
            Err(error) => return Err(error.take().unwrap_or(Error::Interrupted)),
        };
        let holds = |(rect, _): &&mut (Rect, DeviceTile<T>)| rect.contains(part);
        let (rect, tile) = tiles.iter_mut().find(holds).expect("an update is in one tile");
        let [row, col, ..] = place(part.relative_to(*rect));
        tile.update_part([row, col], a, b)
    }

    /// Does a step of [`next_step`](Self::next_step). Returns the seconds for which the device computed since the
    /// last.
    pub(super) fn finish(
        &mut self,
        product: &Product<'_, T>,
        c: &mut Tiles<'_, T>,
        step: &Update,
    ) -> Result<f64> {
        let tile = match &mut self.tiles {
            Ok(OnTiles::InTurn(tile)) => tile,
            Ok(OnTiles::Resident(tiles)) => {
                let found = tiles.iter_mut().find(|(rect, _)| *rect == step.rect);
                return found.map_or(Ok(0.0), |(_, tile)| tile.download(view_of(c, step.rect)));
            }
            Err(error) => return Err(error.take().unwrap_or(Error::Interrupted)),
        };
        let start = Instant::now();
        let (memory, bytes) = (&self.memory, |elements: u64| (elements * size_of::<T>() as u64) as f64);
        let down = |rect: Rect| memory.seconds_down(1, bytes(rect.area()));
        let [_, _, rows, cols] = place(step.rect);
        if step.inner.is_empty() {
            // Without inner indices, nothing was computed.
            if step.inner.start == 0 {
                tile.reshape(rows, cols);
                begin(tile, product.fresh, &mut view_of(c, step.rect))?;
            }
            let seconds = tile.download(view_of(c, step.rect))?;
            self.emulated.then(|| wait_until(start, down(step.rect)));
            return Ok(seconds);
        }
        let [a, b] = product.operands(step);
        let mut transfer = memory.seconds_up(2, bytes((rows + cols) as u64 * step.inner.len()));
        let mut seconds = 0.0;
        match self.computed.take() {
            None => tile.send(a, b)?,
            Some(rect) => {
                seconds += tile.replace(view_of(c, rect), a, b)?;
                transfer = memory.seconds_both(transfer, down(rect));
            }
        }
        self.emulated.then(|| wait_until(start, transfer));
        if step.inner.start == 0 {
            tile.reshape(rows, cols);
            begin(tile, product.fresh, &mut view_of(c, step.rect))?;
        }
        seconds += tile.compute()?;
        // The last tile comes down alone.
        if self.left.is_empty() && step.inner.end == product.schedule.layout().shape().k {
            seconds += tile.wait()?;
        }
        Ok(seconds)
    }
}

/// The elements of a tile on the host.
fn view_of<'t, T>(c: &'t mut Tiles<'_, T>, rect: Rect) -> ViewMut<'t, T> {
    parts_of(c, rect).next().expect("a tile is in one of the processor's").1
}

/// The first content of a tile.
fn begin<T: Element>(tile: &mut DeviceTile<T>, fresh: bool, view: &mut ViewMut<'_, T>) -> Result<()> {
    if fresh {
        return tile.clear();
    }
    let (rows, cols) = (view.rows(), view.cols());
    let held: Vec<T> = (0..rows).flat_map(|i| view.row(i).to_vec()).collect();
    tile.upload(View::dense(&held, rows, cols))
}

/// Memory on a device for all tiles of a processor, with their first contents.
fn resident<T: Element>(
    id: &str,
    product: &Product<'_, T>,
    tiles: &mut Tiles<'_, T>,
    depth: u64,
    memory: &DeviceMemory,
) -> Result<OnTiles<T>> {
    let device = open_device(id)?;
    let bytes = |rect: &Rect| {
        DeviceTile::<T>::bytes(product.kernel.semiring(), rect.rows.len(), rect.cols.len(), depth)
    };
    let needed: u64 = tiles.iter().map(|(rect, _)| bytes(rect)).sum();
    if memory.bytes.is_some_and(|most| needed > most) {
        return Err(Error::TooLittleMemory {
            what: format!(
                "{}: a part of C with its panels needs {}, and the device of a rank may hold {}",
                device.info(),
                show_bytes(needed as f64),
                show_bytes(memory.bytes.unwrap_or(0) as f64)
            ),
            remedy: "cut C with `panels = N`, raise the device's `memory`, or use `engine = threads`".into(),
        });
    }
    let mut all = Vec::new();
    for (rect, view) in tiles.iter_mut().filter(|(rect, _)| !rect.is_empty()) {
        let mut tile = DeviceTile::new(&device, &product.kernel, view.rows(), view.cols(), depth as usize)?;
        tile.touch()?;
        begin(&mut tile, product.fresh, view)?;
        tile.wait()?;
        all.push((*rect, tile));
    }
    Ok(OnTiles::Resident(all))
}

/// Memory on a device for the largest of the tiles into which these rectangles are cut so that they fit, and the
/// tiles.
fn memory_in_turn<T: Element>(
    id: &str,
    kernel: Kernel<T>,
    rects: &[Rect],
    depth: u64,
    memory: Option<u64>,
) -> Result<(OnTiles<T>, VecDeque<Rect>)> {
    let device = open_device(id)?;
    let (most, largest) = (memory.unwrap_or(u64::MAX), device.info().allocation_bytes);
    let element = size_of::<T>() as u64;
    let (mut budget, mut sizes) = (most, [0, 0]);
    loop {
        let fitting = Some(budget).filter(|budget| *budget < u64::MAX);
        let of = |rect: &Rect| device_tile(rect.rows.len(), rect.cols.len(), depth, element, fitting);
        let tiles: VecDeque<Rect> = rects.iter().flat_map(|rect| cut(*rect, of(rect))).collect();
        let widest = |side: fn(&Rect) -> u64| tiles.iter().map(side).max().unwrap_or(1);
        let last = std::mem::replace(&mut sizes, [widest(|t| t.rows.len()), widest(|t| t.cols.len())]);
        let [rows, cols] = sizes;
        let needed = DeviceTile::<T>::bytes(kernel.semiring(), rows, cols, depth);
        if (needed <= most && rows * cols * element <= largest) || (sizes == last && rows * cols == 1) {
            if needed > most {
                return Err(Error::TooLittleMemory {
                    what: format!(
                        "{}: an element of C with its panels of {depth} needs {} of the device, which may hold {}",
                        device.info(),
                        show_bytes(needed as f64),
                        show_bytes(most as f64)
                    ),
                    remedy: "raise the device's `memory`, or use a smaller `block`".into(),
                });
            }
            let mut tile = DeviceTile::new(&device, &kernel, rows as usize, cols as usize, depth as usize)?;
            // Before the clock starts.
            tile.touch()?;
            return Ok((OnTiles::InTurn(Box::new(tile)), tiles));
        }
        // Padding, and the largest allocation.
        budget = (budget.min(needed) as f64 * 0.95) as u64;
    }
}

/// A rectangle in tiles of at most this many rows and columns, along its rows.
fn cut(rect: Rect, [rows, cols]: [u64; 2]) -> Vec<Rect> {
    let across = |rows: Span| rect.cols.blocks(cols).map(move |cols| Rect::new(rows, cols));
    rect.rows.blocks(rows).flat_map(across).collect()
}

/// Sleeps until some seconds after `begin`.
fn wait_until(begin: Instant, seconds: f64) {
    std::thread::sleep(
        (begin + Duration::from_secs_f64(seconds.min(MOST))).saturating_duration_since(Instant::now()),
    );
}

/// Seconds of an emulated transfer that is as good as endless.
const MOST: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    /// The engine asks between steps whether it is to stop: after each pair of panels.
    #[test]
    fn steps_are_panels_and_tiles_come_down_with_the_next_ones_first_panels() {
        let tile = |col: u64| Rect::new(Span::new(0, 5), Span::new(col, col + 4));
        let steps = |inner: u64| {
            let mut device = OnDevice::<f64> {
                tiles: Err(None),
                memory: DeviceMemory::behind_unknown_link(None),
                emulated: false,
                depth: 3,
                left: VecDeque::from([tile(0), tile(4)]),
                current: None,
                computed: None,
            };
            let mut all = Vec::new();
            while let Some(Update { rect, inner }) = device.next_step(inner) {
                all.push((rect, [inner.start, inner.end], device.computed.take()));
            }
            all
        };
        let (first, second) = (tile(0), tile(4));
        let wanted = [
            (first, [0, 3], None),
            (first, [3, 6], None),
            (first, [6, 7], None),
            (second, [0, 3], Some(first)),
            (second, [3, 6], None),
            (second, [6, 7], None),
            (second, [7, 7], None),
        ];
        assert_eq!(steps(7), wanted);
        // Without inner indices, C is zero.
        assert_eq!(steps(0), [(first, [0, 0], None), (second, [0, 0], None)]);
    }
}
