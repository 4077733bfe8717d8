//! Rows of the host's memory, as bytes.

#![allow(unsafe_code)]

use crate::kernels::{View, ViewMut};
use bytemuck::Pod;
use std::marker::PhantomData;

/// Rows to be read.
pub struct HostRows<'a> {
    first: *const u8,
    shape: RowShape,
    lives: PhantomData<&'a [u8]>,
}

/// Rows to be written.
pub struct HostRowsMut<'a> {
    first: *mut u8,
    shape: RowShape,
    lives: PhantomData<&'a mut [u8]>,
}

/// Rows of the host with their place in a buffer of a device.
pub struct Placed<R> {
    pub(super) rows: R,
    /// The byte of the buffer where the first begins.
    pub(super) first: usize,
    /// Bytes of the buffer from the start of one row to the start of the next.
    pub(super) pitch: usize,
}

impl<R> Placed<R> {
    /// Rows at the start of a buffer.
    pub(super) fn at_start(rows: R, pitch: usize) -> Self {
        Self { rows, first: 0, pitch }
    }
}

/// How rows of bytes lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowShape {
    /// Number of rows.
    pub rows: usize,
    /// Bytes in a row.
    pub bytes: usize,
    /// Bytes from the start of one row to the start of the next.
    pub stride: usize,
}

impl RowShape {
    fn of<T>(rows: usize, cols: usize, stride: usize) -> Self {
        Self { rows, bytes: cols * size_of::<T>(), stride: stride * size_of::<T>() }
    }

    /// This shape, `None` if there is nothing to copy, of rows that begin `pitch` bytes apart in a buffer of this
    /// length, at byte `first`.
    ///
    /// # Panics
    /// If they do not fit.
    pub(super) fn within(self, first: usize, pitch: usize, length: u64) -> Option<Self> {
        if self.rows == 0 || self.bytes == 0 {
            return None;
        }
        let end = (self.rows.saturating_sub(1) as u64).saturating_mul(pitch as u64) + self.bytes as u64;
        assert!(
            self.bytes <= pitch && end.saturating_add(first as u64) <= length,
            "{} rows of {} bytes, {pitch} bytes apart, fit a buffer of {length} from {first} on",
            self.rows,
            self.bytes
        );
        Some(self)
    }

    /// Whether rows that begin `pitch` bytes apart on the device follow each other without gaps on both sides.
    pub(super) fn is_dense(self, pitch: usize) -> bool {
        self.rows <= 1 || self.bytes == pitch && self.bytes == self.stride
    }
}

impl<'a> HostRows<'a> {
    /// The rows of a view.
    pub(super) fn of<T: Pod>(view: View<'a, T>) -> Self {
        let shape = RowShape::of::<T>(view.rows(), view.cols(), view.stride());
        Self { first: view.as_ptr().cast(), shape, lives: PhantomData }
    }

    /// The address of the first row. Until the rows' lifetime ends, the bytes of `shape` can be read there.
    pub(super) fn first(&self) -> *const u8 {
        self.first
    }

    pub(super) fn shape(&self) -> RowShape {
        self.shape
    }
}

impl<'a> HostRowsMut<'a> {
    /// The rows of a view.
    pub(super) fn of<T: Pod>(mut view: ViewMut<'a, T>) -> Self {
        let shape = RowShape::of::<T>(view.rows(), view.cols(), view.stride());
        Self { first: view.as_mut_ptr().cast(), shape, lives: PhantomData }
    }

    /// The address of the first row. Until the rows' lifetime ends, the bytes of `shape`, and no others, can
    /// be written there: every bit pattern is an element.
    pub(super) fn first(&mut self) -> *mut u8 {
        self.first
    }

    pub(super) fn shape(&self) -> RowShape {
        self.shape
    }
}
