//! Memory that is used again.

/// Buffers that are not in use.
#[derive(Debug)]
pub(crate) struct BufferPool<T>(Vec<Vec<T>>);

impl<T> Default for BufferPool<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: bytemuck::Pod> BufferPool<T> {
    /// Returns the smallest buffer that is long enough, or a new one: pages in use cost nothing more. If none
    /// is long enough, the longest is extended, so that the pool never exceeds the memory that was in use.
    pub(crate) fn take(&mut self, length: u64) -> Vec<T> {
        let length = length as usize;
        let fit = (0..self.0.len()).filter(|&i| self.0[i].capacity() >= length);
        let longest = || (0..self.0.len()).max_by_key(|&i| self.0[i].capacity());
        let best = fit.min_by_key(|&i| self.0[i].capacity()).or_else(longest);
        let Some(best) = best else { return vec![T::zeroed(); length] };
        let mut buffer = self.0.swap_remove(best);
        buffer.resize(length, T::zeroed());
        buffer
    }

    /// Gives buffers back.
    pub(crate) fn extend(&mut self, buffers: impl IntoIterator<Item = Vec<T>>) {
        self.0.extend(buffers);
    }
}
