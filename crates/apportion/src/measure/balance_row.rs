//! Units of different cost in a search for balance: the search counts cost, and parts end between two units.

use crate::error::Result;
use crate::model::{Model, Point};
use crate::plan::shares::{Chain, Limits, Search};

/// The search's units: so many that a part of the cost is one of their numbers, nearly.
pub(super) const PARTS: u64 = 1 << 40;

/// Units with their costs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    chain: Chain,
    /// [`PARTS`] over the sum of the costs.
    scale: f64,
}

impl Row {
    /// # Errors
    /// As [`Chain::new`].
    pub(crate) fn new(costs: &[f64]) -> Result<Self> {
        let chain = Chain::new(costs)?;
        Ok(Self { scale: PARTS as f64 / chain.total(), chain })
    }

    /// The cost of each processor's units, by rank.
    pub(crate) fn costs(&self, shares: &[u64]) -> Vec<f64> {
        self.chain.parts(&(0..shares.len()).collect::<Vec<_>>(), shares).costs
    }

    /// Speed functions of cost, as the search counts it. Their caps are numbers of units, and left out.
    ///
    /// # Errors
    /// Sizes that become too large.
    pub(crate) fn for_search(&self, models: &[Model]) -> Result<Vec<Model>> {
        models.iter().map(|model| rescaled(model, model.processor(), self.scale, None)).collect()
    }

    /// A speed function that the search has learnt, of cost, with a cap in units.
    ///
    /// # Errors
    /// Sizes that become too small.
    pub(crate) fn of_search(&self, model: &Model, name: &str, most: Option<f64>) -> Result<Model> {
        rescaled(model, name, 1.0 / self.scale, most)
    }

    /// Contiguous parts as the search counts them: of [`PARTS`] in all.
    pub(crate) fn counted(&self, shares: &[u64]) -> Vec<u64> {
        // Ends are rounded, so that the parts add up.
        let (mut end, mut before) = (0.0, 0);
        let mut whole = Vec::with_capacity(shares.len());
        for cost in self.costs(shares) {
            end += cost * self.scale;
            let now = (end.round() as u64).clamp(before, PARTS);
            whole.push(now - before);
            before = now;
        }
        if let Some(last) = shares.iter().rposition(|share| *share > 0) {
            whole[last] += PARTS - before;
        }
        whole
    }

    /// The next parts by what the search knows, whole units within these limits, which it then adopts.
    ///
    /// # Errors
    /// Limits that are no maxima, or leave units over.
    pub(crate) fn cut(&self, search: &mut Search, limits: &[Limits]) -> Result<Vec<u64>> {
        let of_cost = |model: &Model| self.of_search(model, model.processor(), None);
        let models: Vec<Model> = search.functions()?.iter().map(of_cost).collect::<Result<_>>()?;
        let shares = self.chain.least_makespan(&models, limits, &[])?.shares;
        search.adopt(&self.counted(&shares))?;
        Ok(shares)
    }
}

/// The limits of each processor's units, with the caps of its models.
pub(super) fn with_caps(limits: &[Limits], models: &[Model]) -> Vec<Limits> {
    let of_rank = |(rank, model): (usize, &Model)| {
        let limit = limits.get(rank).copied().unwrap_or_default();
        let cap = model.max_size().map(|cap| cap as u64);
        Limits { most: [limit.most, cap].into_iter().flatten().min(), ..limit }
    };
    models.iter().enumerate().map(of_rank).collect()
}

/// The same speeds and times at sizes times `scale`: a size in another unit.
fn rescaled(model: &Model, name: &str, scale: f64, most: Option<f64>) -> Result<Model> {
    let points = model.points().iter().map(|point| Point { size: point.size * scale, ..*point }).collect();
    Model::new(name, model.interpolation(), points, most)
}
