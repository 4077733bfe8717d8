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

    /// Whether there is nothing to copy.
    pub(super) fn is_empty(self) -> bool {
        self.rows == 0 || self.bytes == 0
    }

    /// Panics unless the rows fit a buffer of this length, where they begin `pitch` bytes apart.
    pub(super) fn check(self, pitch: usize, length: u64) {
        let end = (self.rows.saturating_sub(1) as u64).saturating_mul(pitch as u64) + self.bytes as u64;
        assert!(
            self.bytes <= pitch && end <= length,
            "{} rows of {} bytes, {pitch} bytes apart, fit a buffer of {length}",
            self.rows,
            self.bytes
        );
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
