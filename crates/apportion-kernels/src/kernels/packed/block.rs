//! The outer loops: they cut A and B into blocks that fit the caches, and copy them so that tiles read memory
//! in order.

#![allow(unsafe_code)]

use crate::kernels::instructions::{prefetch, second_level};
use crate::kernels::packed::together::Stage;
use crate::kernels::packed::vector::{Number, Operation, Seen, Vector};
use crate::kernels::view::check_shapes;
use crate::kernels::{View, ViewMut};
use crate::process_memory::prefer_large_pages;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice::from_raw_parts_mut;

/// Bytes in a row of a block: its depth is 384 elements of eight bytes, or 768 of four. Each block reads and
/// writes C once. It is the same for every processor, so that all add in the same order.
const DEPTH_BYTES: usize = 3 << 10;
/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;
/// The most rows and columns of a tile.
const MOST_ROWS: usize = 8;
const MOST_COLS: usize = 48;
/// Bytes of a packed block of A: a share of the last cache.
const A_BYTES: usize = 4 << 20;
/// Bytes of the packed panel of B that a team shares. A wider B is taken panel by panel, and A is packed again for
/// each.
const PANEL_BYTES: usize = 16 << 20;
/// The least number of bytes of a packed block of B.
const LEAST_B_BYTES: usize = 128 << 10;

/// A second-level cache of this many bytes is large.
const LARGE_CACHE: usize = 2 << 20;

/// Bytes of a packed block of B: half of a large second-level cache, an eighth of a smaller one. On Sapphire Rapids (2
/// MiB) products from n = 1,000 on are 3 to 5 % faster with half of it than with an eighth, by AVX-512 and by AVX2; on
/// Zen 4 (1 MiB) they are 3 to 10 % faster with an eighth than with half. Likely reasons, not measured apart: a
/// strip of A comes from memory again for each block of B; and a virtual machine may share the core's cache.
fn b_bytes() -> usize {
    let cache = second_level();
    (cache / if cache < LARGE_CACHE { 8 } else { 2 }).max(LEAST_B_BYTES)
}

/// C := C + A B over the semiring, with the given tile. Returns false, with C updated by only some of the
/// sums, if an integer is too large for plain sums. Shapes must fit. Inlined, as is everything below, into
/// functions compiled for the tile's registers, since packing also benefits from vectors.
///
/// A block of B stays in the second-level cache while the strips of A pass by, one at a time in the first.
/// The tiles of a strip of A follow each other along rows of C: on the way down, each tile would need other
/// pages, and where C's rows are far apart their translation would take longer than the arithmetic (6 x 8
/// tiles, rows of 1,000 and more f64: 0.66 to 0.72 of OpenBLAS down, 0.90 to 0.99 along).
///
/// # Safety
/// The processor has the registers of `V`, and the caller is compiled for them.
#[inline(always)]
pub(super) unsafe fn product<V: Vector, O: Operation<V>>(
    tile: &MicroKernel<V::Element>,
    a: View<V::Element>,
    b: View<V::Element>,
    mut c: ViewMut<V::Element>,
) -> bool {
    check_shapes(&a, &b, &c);
    let sizes =
        BlockSizes::of(size_of::<V::Element>(), [a.rows(), a.cols(), b.cols()], [tile.rows, tile.cols]);
    let (most_rows, most_cols) = (sizes.most_rows(), sizes.most_cols());
    let mut memory = PackedMemory::of_thread();
    let [a_block, b_block] = memory.blocks(sizes.alone());
    let mut tame = true;
    'all: for depth in pieces(a.cols(), sizes.most_depth(), 1) {
        for rows in pieces(a.rows(), most_rows, tile.rows) {
            let a_block = &mut a_block[..depth.len() * rows.len().next_multiple_of(tile.rows)];
            // SAFETY: guaranteed by the caller, here and below.
            tame = unsafe { pack_cols::<V, O>(tile, a_block, a, &rows, &depth) };
            if !tame {
                break 'all;
            }
            for cols in pieces(b.cols(), most_cols, tile.cols) {
                let b_block = &mut b_block[..depth.len() * cols.len().next_multiple_of(tile.cols)];
                // SAFETY: as above.
                tame = unsafe { pack_rows::<V, O>(b_block, b, &depth, &cols, tile.cols) };
                if !tame {
                    break 'all;
                }
                let part = c.tile(rows.start, cols.start, rows.len(), cols.len());
                sweep::<V, O>(tile, depth.len(), a_block, b_block, part);
            }
        }
    }
    memory.keep();
    tame
}

/// How a product is cut into blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockSizes {
    /// Bytes of an element.
    size: usize,
    m: usize,
    n: usize,
    /// Inner indices of the deepest block.
    depth: usize,
    /// Rows and columns of a tile.
    tile: [usize; 2],
}

impl BlockSizes {
    pub(super) fn of(size: usize, [m, k, n]: [usize; 3], tile: [usize; 2]) -> Self {
        Self { size, m, n, depth: longest(k, DEPTH_BYTES / size, 1), tile }
    }

    /// The most inner indices of a block.
    pub(super) fn most_depth(&self) -> usize {
        DEPTH_BYTES / self.size
    }

    /// The most rows of a block of A.
    pub(super) fn most_rows(&self) -> usize {
        A_BYTES / (self.depth * self.size)
    }

    /// The most columns of a block of B.
    pub(super) fn most_cols(&self) -> usize {
        b_bytes() / (self.depth * self.size)
    }

    /// The most columns of a panel of B that a team shares.
    pub(super) fn most_panel_cols(&self) -> usize {
        PANEL_BYTES / (self.depth * self.size)
    }

    /// Elements of a packed block of A.
    fn block_of_a(&self) -> usize {
        self.depth * longest(self.m, self.most_rows(), self.tile[0])
    }

    /// Elements of the packed blocks of one thread: of A and of B.
    fn alone(&self) -> [usize; 2] {
        [self.block_of_a(), self.depth * longest(self.n, self.most_cols(), self.tile[1])]
    }

    /// Elements of the packed blocks of a team: a panel of B, and rows of A, of which some are packed while others are
    /// in use.
    pub(super) fn together(&self) -> [usize; 3] {
        let rows = self.block_of_a();
        let others = if longest(self.m, self.most_rows(), self.tile[0]) < self.m { rows } else { 0 };
        [self.depth * longest(self.n, self.most_panel_cols(), self.tile[1]), rows, others]
    }
}

/// The length of each of [`pieces`] but the last.
pub(super) fn longest(n: usize, most: usize, unit: usize) -> usize {
    n.div_ceil(n.div_ceil(most.max(1)).max(1)).next_multiple_of(unit).max(1)
}

/// 0..n in near-equal pieces of at most about `most`, all but the last a multiple of `unit`.
pub(super) fn pieces(n: usize, most: usize, unit: usize) -> impl Iterator<Item = Range<usize>> {
    let length = longest(n, most, unit);
    (0..n).step_by(length).map(move |start| start..(start + length).min(n))
}

/// Memory for packed blocks. Each thread keeps its own between products, since fresh pages would cost as much as the
/// packing; a thread that ends may [pass it on](PackedMemory::exchange).
#[derive(Debug)]
pub struct PackedMemory {
    first: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is the only access to its bytes.
unsafe impl Send for PackedMemory {}

thread_local! {
    /// Taken out while a product runs: code within `with` would not be compiled for the tile's registers.
    static MEMORY: Cell<PackedMemory> = const { Cell::new(PackedMemory { first: NonNull::dangling(), bytes: 0 }) };
}

/// Bytes of a large page. Packed blocks of several fit the translation caches only in these.
const LARGE_PAGE: usize = 2 << 20;

impl Default for PackedMemory {
    fn default() -> Self {
        Self { first: NonNull::dangling(), bytes: 0 }
    }
}

impl Drop for PackedMemory {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: allocated with this layout.
            unsafe { dealloc(self.first.as_ptr(), Self::layout(self.bytes)) }
        }
    }
}

impl PackedMemory {
    /// Exchanges it for that of the calling thread.
    pub fn exchange(&mut self) {
        MEMORY.set(std::mem::replace(self, MEMORY.take()));
    }

    /// Makes room in that of the calling thread for a product of m x k x n elements of `size` bytes by a team, so that
    /// it touches no new pages.
    pub(in crate::kernels) fn reserve_for(size: usize, [m, k, n]: [usize; 3], threads: usize) {
        let sizes = BlockSizes::of(size, [m, k, n], [MOST_ROWS, MOST_COLS]);
        let blocks = if threads < 2 { sizes.alone().to_vec() } else { sizes.together().to_vec() };
        let mut memory = Self::of_thread();
        memory.reserve(blocks.iter().map(|elements| (elements * size).next_multiple_of(LINE)).sum());
        memory.keep();
    }

    /// That of the calling thread, until [`PackedMemory::keep`].
    pub(in crate::kernels) fn of_thread() -> Self {
        MEMORY.take()
    }

    /// Gives it back to the calling thread, unless it is larger than that of any product.
    pub(in crate::kernels) fn keep(self) {
        if self.bytes <= PANEL_BYTES + 2 * A_BYTES + 3 * LARGE_PAGE {
            MEMORY.set(self);
        }
    }

    /// Blocks of the given numbers of elements, aligned to cache lines, so that no vector straddles two. Their
    /// contents are unspecified.
    pub(in crate::kernels) fn blocks<T: Number, const COUNT: usize>(
        &mut self,
        lengths: [usize; COUNT],
    ) -> [&mut [T]; COUNT] {
        let room = |elements: usize| (elements * size_of::<T>()).next_multiple_of(LINE);
        self.reserve(lengths.iter().map(|length| room(*length)).sum());
        let mut from = self.first;
        lengths.map(|length| {
            let block = from;
            // SAFETY: there are bytes enough for all blocks.
            from = unsafe { from.add(room(length)) };
            // SAFETY: the bytes are initialised, and aligned for any number; every bit pattern is a number of the four
            // types that are `Number`; the slices do not overlap and live as long as the borrow.
            unsafe { from_raw_parts_mut(block.as_ptr().cast(), length) }
        })
    }

    /// Makes room for this many bytes.
    fn reserve(&mut self, bytes: usize) {
        if bytes <= self.bytes {
            return;
        }
        let bytes = if bytes < LARGE_PAGE { bytes } else { bytes.next_multiple_of(LARGE_PAGE) };
        // The old memory is free before there is more.
        *self = Self::default();
        let layout = Self::layout(bytes);
        // SAFETY: there is at least one byte.
        let Some(first) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        *self = Self { first, bytes };
        // SAFETY: these are the bytes; none of them is read before the next line has written it.
        prefer_large_pages(unsafe { from_raw_parts_mut(first.as_ptr().cast::<MaybeUninit<u8>>(), bytes) });
        // SAFETY: as above.
        unsafe { first.write_bytes(0, bytes) };
    }

    fn layout(bytes: usize) -> Layout {
        let align = if bytes < LARGE_PAGE { LINE } else { LARGE_PAGE };
        Layout::from_size_align(bytes, align).expect("packed blocks fit the address space")
    }
}

/// A block of B as strips of `width` columns, row after row, with the last strip padded with zeros. False if
/// an element is too large for plain sums.
///
/// # Safety
/// As [`product`].
#[inline(always)]
pub(super) unsafe fn pack_rows<V: Vector, O: Operation<V>>(
    block: &mut [V::Element],
    b: View<V::Element>,
    depth: &Range<usize>,
    cols: &Range<usize>,
    width: usize,
) -> bool {
    // SAFETY: guaranteed by the caller, here and below.
    let mut seen = unsafe { Seen::<V>::nothing() };
    for (p, row) in depth.clone().enumerate() {
        for (strip, from) in b.row(row)[cols.clone()].chunks(width).enumerate() {
            let to = &mut block[(strip * depth.len() + p) * width..][..width];
            if from.len() < width || !O::PREPARES {
                to[..from.len()].copy_from_slice(from);
                to[from.len()..].fill(O::zero());
                // SAFETY: as above.
                unsafe { prepare::<V, O>(to, &mut seen) };
                continue;
            }
            for (to, from) in to.chunks_exact_mut(V::LANES).zip(from.chunks_exact(V::LANES)) {
                // SAFETY: both have the elements of a vector; the rest as above.
                unsafe { O::packed(V::load(from.as_ptr()), &mut seen).store(to.as_mut_ptr()) }
            }
        }
    }
    // SAFETY: as above.
    unsafe { O::is_tame(seen) }
}

/// Turns elements into those of a packed block.
///
/// # Safety
/// As [`product`].
#[inline(always)]
unsafe fn prepare<V: Vector, O: Operation<V>>(elements: &mut [V::Element], seen: &mut Seen<V>) {
    if !O::PREPARES {
        return;
    }
    let mut vectors = elements.chunks_exact_mut(V::LANES);
    for vector in &mut vectors {
        // SAFETY: there are the elements of a vector; the rest is guaranteed by the caller.
        unsafe { O::packed(V::load(vector.as_ptr()), seen).store(vector.as_mut_ptr()) }
    }
    let rest = vectors.into_remainder();
    if !rest.is_empty() {
        let mut whole = [O::zero(); MOST_COLS];
        whole[..rest.len()].copy_from_slice(rest);
        // SAFETY: a vector has fewer elements than a row of a tile; the rest as above.
        unsafe { O::packed(V::load(whole.as_ptr()), seen).store(whole.as_mut_ptr()) }
        rest.copy_from_slice(&whole[..rest.len()]);
    }
}

/// A block of A as strips of `tile.rows` rows, column after column, with the last strip padded with zeros.
/// False if an element is too large for plain sums.
///
/// # Safety
/// As [`product`].
#[inline(always)]
pub(super) unsafe fn pack_cols<V: Vector, O: Operation<V>>(
    tile: &MicroKernel<V::Element>,
    block: &mut [V::Element],
    a: View<V::Element>,
    rows: &Range<usize>,
    depth: &Range<usize>,
) -> bool {
    let height = tile.rows;
    // SAFETY: guaranteed by the caller, here and below.
    let mut seen = unsafe { Seen::<V>::nothing() };
    for (strip, whole) in block.chunks_exact_mut(depth.len() * height).enumerate() {
        let first = rows.start + strip * height;
        let (mut done, to) = (0, &mut *whole);
        if let Some(interleave) = tile.interleave.filter(|_| first + height <= rows.end) {
            done = depth.len() / 8 * 8;
            let mut from = [std::ptr::null(); MOST_ROWS];
            let from = &mut from[..height];
            for (i, from) in from.iter_mut().enumerate() {
                *from = a.row(first + i)[depth.clone()].as_ptr();
            }
            // SAFETY: there are as many rows as the tile has, of at least `done` elements, a multiple of
            // eight, and room for them all; only tiles that the processor supports are offered.
            unsafe { interleave(done, from, to.as_mut_ptr(), height) }
        }
        let to = &mut to[done * height..];
        for i in 0..if to.is_empty() { 0 } else { height } {
            let to = to[i..].iter_mut().step_by(height);
            if first + i < rows.end {
                to.zip(&a.row(first + i)[depth.clone()][done..]).for_each(|(to, from)| *to = *from);
            } else {
                to.for_each(|to| *to = O::zero());
            }
        }
        // While the strip is in the first-level cache.
        // SAFETY: as above.
        unsafe { prepare::<V, O>(whole, &mut seen) };
    }
    // SAFETY: as above.
    unsafe { O::is_tame(seen) }
}

/// All tiles of a part of C, one strip of A at a time.
#[inline(always)]
pub(super) fn sweep<V: Vector, O: Operation<V>>(
    tile: &MicroKernel<V::Element>,
    depth: usize,
    a_block: &[V::Element],
    b_block: &[V::Element],
    mut c: ViewMut<V::Element>,
) {
    for (a_strip, i) in a_block.chunks_exact(depth * tile.rows).zip((0..).step_by(tile.rows)) {
        for (b_strip, j) in b_block.chunks_exact(depth * tile.cols).zip((0..).step_by(tile.cols)) {
            let (rows, cols) = (tile.rows.min(c.rows() - i), tile.cols.min(c.cols() - j));
            let mut part = c.tile(i, j, rows, cols);
            let (a, b) = (a_strip.as_ptr(), b_strip.as_ptr());
            if rows == tile.rows && cols == tile.cols {
                let stride = part.stride();
                // SAFETY: the strips hold `depth` columns and rows of the tile's height and width, `part` is
                // a whole tile, and only tiles that the processor supports are offered.
                unsafe { (tile.update)(depth, a, b, part.as_mut_ptr(), stride) }
                continue;
            }
            // At an edge: a whole tile that holds the part, so that its elements have the same bits as in the
            // middle.
            let mut whole = [O::zero(); MOST_ROWS * MOST_COLS];
            for (i, whole) in whole.chunks_exact_mut(tile.cols).take(rows).enumerate() {
                whole[..cols].copy_from_slice(part.row(i));
            }
            // SAFETY: as above, with `whole` as the tile.
            unsafe { (tile.update)(depth, a, b, whole.as_mut_ptr(), tile.cols) }
            for (i, whole) in whole.chunks_exact(tile.cols).take(rows).enumerate() {
                part.row(i).copy_from_slice(&whole[..cols]);
            }
        }
    }
}

// The innermost loop: a tile of C held in registers while one column of A and one row of B pass by.

/// Copies the first columns of some rows one after the other, each as far from the one before as the last number says:
/// (columns, rows, to, stride).
pub(super) type Interleave<T> = unsafe fn(usize, &[*const T], *mut T, usize);

/// A tile of one shape, and the function that updates it: C := C + A B over the semiring, A being `depth`
/// packed columns of `rows` elements, B `depth` packed rows of `cols`, C `rows` x `cols` elements with rows
/// `stride` apart.
#[derive(Clone, Copy)]
pub struct MicroKernel<T> {
    /// The instruction set.
    pub(super) name: &'static str,
    /// Rows of C.
    pub(super) rows: usize,
    /// Columns of C.
    pub(super) cols: usize,
    /// (depth, a, b, c, stride)
    pub(super) update: unsafe fn(usize, *const T, *const T, *mut T, usize),
    /// For the tile's rows, and a multiple of eight columns.
    pub(super) interleave: Option<Interleave<T>>,
    /// [`block::product`](product), compiled for the same registers.
    pub(super) product: unsafe fn(&Self, View<T>, View<T>, ViewMut<T>) -> bool,
    /// [`together::part`](super::together::part), compiled for the same registers.
    pub(super) part: unsafe fn(&Self, &Stage<'_, T>, Range<usize>) -> bool,
}

impl<T> MicroKernel<T> {
    /// The instruction set: "AVX-512", "AVX2", "NEON" or "portable".
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// C := C + A B over the semiring. False, with C updated by only some of the sums, if an integer is too
    /// large for plain sums.
    ///
    /// # Safety
    /// The processor has the instruction set.
    ///
    /// # Panics
    /// If the shapes do not fit: A is m x k, B k x n, C m x n.
    pub(in crate::kernels) unsafe fn product(&self, a: View<T>, b: View<T>, c: ViewMut<T>) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.product)(self, a, b, c) }
    }
}

/// The body of [`MicroKernel::update`], to be compiled for the features of `V`.
///
/// # Safety
/// The processor has the features of `V`; `a`, `b` and `c` are good for what [`MicroKernel`] says of them.
#[inline(always)]
pub(super) unsafe fn tile<V: Vector, O: Operation<V>, const ROWS: usize, const WIDE: usize>(
    depth: usize,
    mut a: *const V::Element,
    mut b: *const V::Element,
    c: *mut V::Element,
    stride: usize,
) {
    // SAFETY: every address is within the packed blocks and the tile of C, as the caller guarantees.
    unsafe {
        let place = |i: usize, j: usize| c.wrapping_add(i * stride + j * V::LANES);
        let mut sums = [[V::splat(O::zero()); WIDE]; ROWS];
        for i in 0..ROWS {
            for j in 0..WIDE {
                prefetch(place(i, j));
            }
        }
        for _ in 0..depth {
            let mut row = [sums[0][0]; WIDE];
            for (j, part) in row.iter_mut().enumerate() {
                *part = V::load(b.add(j * V::LANES));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = V::splat(*a.add(i));
                for (sum, part) in sums.iter_mut().zip(row) {
                    *sum = O::step(x, part, *sum);
                }
            }
            a = a.add(ROWS);
            b = b.add(WIDE * V::LANES);
        }
        for (i, sums) in sums.into_iter().enumerate() {
            for (j, sum) in sums.into_iter().enumerate() {
                O::finish(sum, V::load(place(i, j))).store(place(i, j));
            }
        }
    }
}
