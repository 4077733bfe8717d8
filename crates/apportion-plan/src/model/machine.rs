//! A machine: processors with their network, and the speed of each as a function of the size of its task.

use super::{Model, WorkUnit, only_ratios, platform_models};
use crate::error::Result;
use crate::platform::Platform;
use std::borrow::Cow;

/// Processors with their speed functions.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The processors and their network.
    pub platform: Platform,
    /// The speed functions, by rank. For a matrix product, a size counts elements of C.
    pub models: Vec<Model>,
    /// The pivot block for which the models give the seconds of one update; 1 for speeds in multiply-adds per
    /// second, and for work that has no pivot blocks.
    pub block: u64,
}

impl Machine {
    /// A machine of these processors and speed functions, one for each processor in the same order.
    pub fn new(platform: Platform, models: Vec<Model>, block: u64) -> Self {
        debug_assert_eq!(platform.len(), models.len(), "one speed function for each processor");
        Self { platform, models, block }
    }

    /// A machine whose speeds are those of the platform.
    ///
    /// # Errors
    /// As [`platform_models`].
    pub fn from_platform(platform: Platform, work: WorkUnit) -> Result<Self> {
        let models = platform_models(&platform, work)?;
        Ok(Self::new(platform, models, 1))
    }

    /// A machine of processors p0, p1, … with these ratios of speeds, whose network costs nothing.
    ///
    /// # Errors
    /// Speeds that are not finite or negative; only speeds of 0.
    pub fn from_speeds(speeds: &[f64]) -> Result<Self> {
        Self::from_platform(Platform::from_speeds(speeds)?, WorkUnit::Unit)
    }

    /// The number of processors.
    pub fn processors(&self) -> usize {
        self.platform.len()
    }

    /// True if only ratios of speeds are known, so that computation has no seconds.
    pub fn only_ratios(&self) -> bool {
        only_ratios(&self.models)
    }

    /// The machine of these processors, renumbered in the order given.
    pub fn select(&self, ranks: &[usize]) -> Self {
        let names: Vec<String> =
            ranks.iter().map(|&rank| self.platform.processors[rank].name.clone()).collect();
        let models = ranks.iter().map(|&rank| self.models[rank].clone()).collect();
        Self::new(self.platform.select(&names), models, self.block)
    }

    /// The same processors with other speed functions.
    pub fn with_models(&self, models: Vec<Model>) -> Self {
        Self::new(self.platform.clone(), models, self.block)
    }

    /// The same machine for matrix products: from the largest tile on that a device holds, with elements of `element`
    /// bytes, its speed is that of the tile, since it computes a larger part of C tile by tile.
    ///
    /// # Errors
    /// None with valid speed functions.
    pub fn with_device_tiles(&self, element: u64) -> Result<Cow<'_, Self>> {
        let mut machine = Cow::Borrowed(self);
        for (rank, memory) in &self.platform.network.devices {
            if let Some(tile) = memory.tile_elements(self.block, element) {
                machine.to_mut().models[rank.0] = self.models[rank.0].constant_from(tile)?;
            }
        }
        Ok(machine)
    }

    /// Multiply-adds per second of each processor at these sizes: its share of C, or the
    /// [size](crate::plan::Layout::sizes) of its boxes.
    ///
    /// Ratios of speeds have no rates: every processor then computes in no time, so that a simulation with
    /// these rates gives the times of communication alone.
    pub fn rates(&self, sizes: &[u64]) -> Vec<f64> {
        rates(&self.models, sizes, self.block)
    }
}

/// [`Machine::rates`] of models for pivot blocks of `block` indices.
pub fn rates(models: &[Model], sizes: &[u64], block: u64) -> Vec<f64> {
    if only_ratios(models) {
        return vec![f64::MAX; models.len()];
    }
    models.iter().zip(sizes).map(|(m, &size)| m.speed(size as f64) * block as f64).collect()
}
