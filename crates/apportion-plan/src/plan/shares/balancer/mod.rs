//! Balances a loop over unequal processors while it runs: times in, shares out.
//!
//! The balancer is a value. It reads no clock, and its arithmetic consists of operations that IEEE 754 rounds
//! exactly, so equal times give bit-identical shares on every rank, whatever its processor.
//!
//! Source: the partial speed functions of DFPA (Lastovetsky and Reddy, "Distributed data partitioning for
//! heterogeneous processors based on partial estimation of their functional performance models", HeteroPar
//! 2009). Added: the median of the rounds at a share, an estimate of their noise and a test against it, run
//! rules that notice a processor whose speed has changed, a cost of moving, limits on shares, and known
//! models to start from.

mod checks;
mod decision;
mod observed;

pub(super) use checks::{
    check_adopted, check_limits, check_models, check_size, check_times, check_tolerance,
};
pub(crate) use decision::offsets;
pub use decision::{Decision, MovingCost, Reason};

use super::noise::UNKNOWN_NOISE;
use super::{Limits, even, fpm_within, noise};
use crate::error::{Error, Result};
use crate::model::{Model, Point};
use observed::{Memory, Observations};
use serde::{Deserialize, Serialize};

/// Number of rounds near the present share whose median counts.
const WINDOW: usize = 32;
/// Shares that differ by at most this fraction are assumed to take the same time per unit: less if there is
/// little noise, which would hide the difference.
const NEAR: f64 = 0.1;

/// Balances a loop over processors of unequal or changing speed.
///
/// Each round of the loop divides `units` units of work. After a round, give the times to
/// [`Balancer::observe`] and use the shares of its decision in the next round. On several processes, every
/// process holds a balancer and observes the times of all: all decide the same without a message.
///
/// The first round that is used moves the shares to where the times suggest. From then on a change must be certain,
/// beyond the noise that repeated rounds show, and worth it: it must save more than the hysteresis, and more than it
/// costs. A processor that becomes slower or faster is noticed after two rounds if the change is large, and
/// later if it is close to the noise. What was seen at other shares is forgotten after a few rounds, so that no
/// disturbance, whenever it comes, decides for long. A processor without units is not observed: give it a minimum
/// share to keep watching it.
///
/// # Example
/// ```
/// use apportion_plan::plan::shares::{Balancer, Reason};
/// let mut balancer = Balancer::new(1000, 2)?;
/// // The first processor is three times as fast.
/// let round = |shares: &[u64]| vec![shares[0] as f64 / 3e3, shares[1] as f64 / 1e3];
/// let decision = balancer.observe(&round(balancer.shares()))?;
/// assert_eq!((decision.reason, decision.slowest), (Reason::WarmingUp, 1));
/// let decision = balancer.observe(&round(balancer.shares()))?;
/// assert!(decision.is_move());
/// assert_eq!(decision.shares, [750, 250]);
/// assert_eq!(decision.offsets, [0, 750, 1000]);
/// let mut balancer = balancer.with_warm_up(0);
/// assert_eq!(balancer.observe(&round(balancer.shares()))?.reason, Reason::Balanced);
/// # Ok::<(), apportion_plan::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balancer {
    units: u64,
    tolerance: f64,
    hysteresis: f64,
    cost: MovingCost,
    /// One per processor, or none.
    limits: Vec<Limits>,
    warm_up: u32,
    /// Rounds to come that are not used.
    unused: u32,
    /// True if the first shares follow models.
    from_models: bool,
    processors: Vec<Observations>,
    shares: Vec<u64>,
    rounds: u64,
}

impl Balancer {
    /// A balancer of `units` units on `processors` processors, starting from equal shares. Tolerance 0.05,
    /// hysteresis 0.02, one round of warm-up; moving costs nothing.
    ///
    /// # Errors
    /// No processors, no units, or more than 2^53 units or 2^20 processors.
    pub fn new(units: u64, processors: usize) -> Result<Self> {
        check_size(units, processors)?;
        Ok(Self {
            units,
            tolerance: 0.05,
            hysteresis: 0.02,
            cost: MovingCost::default(),
            limits: Vec::new(),
            warm_up: 1,
            unused: 1,
            from_models: false,
            processors: vec![Observations::none(); processors],
            shares: even(units, processors),
            rounds: 0,
        })
    }

    /// With the largest (longest - shortest) / shortest time that counts as balanced.
    ///
    /// # Errors
    /// Not a positive number.
    pub fn with_tolerance(self, tolerance: f64) -> Result<Self> {
        check_tolerance(tolerance)?;
        Ok(Self { tolerance, ..self })
    }

    /// With the least saving that is worth a change: a fraction of the longest time of a round.
    ///
    /// # Errors
    /// Not in [0, 1).
    pub fn with_hysteresis(self, hysteresis: f64) -> Result<Self> {
        check_hysteresis(hysteresis)?;
        Ok(Self { hysteresis, ..self })
    }

    /// With a cost of moving units, which a change must earn.
    ///
    /// # Errors
    /// A negative or infinite time; a number of rounds that is not positive.
    pub fn with_moving_cost(self, cost: MovingCost) -> Result<Self> {
        Ok(Self { cost: cost.checked()?, ..self })
    }

    /// With limits on each share: minimum, maximum, granularity.
    ///
    /// # Errors
    /// Not one per processor (or none); limits that no shares satisfy (exit code 1).
    pub fn with_limits(self, limits: &[Limits]) -> Result<Self> {
        check_limits(limits, self.processors.len())?;
        Self { limits: limits.to_vec(), ..self }.restarted()
    }

    /// Starting from speeds instead of equal shares: ratios are enough.
    ///
    /// # Errors
    /// Not one per processor; a speed that is not a number of at least 0.
    pub fn with_speeds(self, speeds: &[f64]) -> Result<Self> {
        let models: Vec<Model> = (speeds.iter().enumerate())
            .map(|(i, &speed)| Model::ratio(format!("p{i}"), speed))
            .collect::<Result<_>>()?;
        self.with_models(&models).map(|balancer| Self { from_models: false, ..balancer })
    }

    /// Starting from known speed functions instead of equal shares; their caps hold throughout. Each function
    /// is scaled by the times observed on its processor: the balancer relies on its shape, not on its height.
    ///
    /// # Errors
    /// Not one per processor; caps and limits that leave too little room (exit code 1).
    pub fn with_models(self, models: &[Model]) -> Result<Self> {
        check_models(models, self.processors.len())?;
        let processors = models.iter().map(Observations::from_model).collect();
        Self { processors, from_models: true, ..self }.restarted()
    }

    /// With a number of rounds that are not used, at the start and after each change of shares, such as those that
    /// touch memory for the first time; 1 by default.
    #[must_use]
    pub fn with_warm_up(self, rounds: u32) -> Self {
        Self { warm_up: rounds, unused: rounds, ..self }
    }

    /// The first shares, by what is known.
    fn restarted(self) -> Result<Self> {
        let p = self.processors.len();
        let shares = match (self.known_models()?, self.limits.is_empty()) {
            (None, true) => even(self.units, p),
            (None, false) => {
                let equal = vec![Model::ratio("p", 1.0)?; p];
                fpm_within(&equal, self.units, &self.limits)?
            }
            (Some(models), _) => fpm_within(&models, self.units, &self.limits)?,
        };
        Ok(Self { shares, ..self })
    }

    /// Number of units of a round.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Number of processors.
    pub fn processors(&self) -> usize {
        self.processors.len()
    }

    /// The shares of the present round, by rank.
    pub fn shares(&self) -> &[u64] {
        &self.shares
    }

    /// The first unit of each processor, and the number of units: rank i has the units `offsets[i]` to
    /// `offsets[i + 1]`.
    pub fn offsets(&self) -> Vec<u64> {
        offsets(&self.shares)
    }

    /// The cost of moving units.
    pub fn moving_cost(&self) -> MovingCost {
        self.cost
    }

    /// Number of rounds observed.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Uses other shares than those of the last decision from the next round on.
    ///
    /// # Errors
    /// Not one per processor, or they do not add up to the number of units.
    pub fn adopt(&mut self, shares: &[u64]) -> Result<()> {
        check_adopted(shares, self.units, self.processors.len())?;
        self.shares = shares.to_vec();
        Ok(())
    }

    /// The relative standard deviation of repeated rounds of one processor, by the median of the differences
    /// of successive rounds with equal shares; `None` before there is one.
    pub fn noise(&self) -> Option<f64> {
        noise::noise(self.processors.iter().flat_map(|l| l.differences.iter().copied()))
    }

    /// The speed functions as far as they are known, one per processor. A processor that never worked is
    /// assumed to be as fast as the fastest.
    ///
    /// # Errors
    /// Nothing is known yet.
    pub fn models(&self) -> Result<Vec<Model>> {
        self.known_models()?.ok_or_else(|| {
            Error::input("models", "no round has been observed", "observe the times of a round first")
        })
    }

    fn known_models(&self) -> Result<Option<Vec<Model>>> {
        let near = self.memory().near;
        let name = |i: usize| format!("p{i}");
        let known: Vec<Option<Model>> = (self.processors.iter().enumerate())
            .map(|(i, observed)| observed.model(&name(i), near))
            .collect::<Result<_>>()?;
        let speeds = known.iter().flatten().flat_map(|m| m.points().iter().map(Point::speed));
        let fastest = speeds.fold(0.0, f64::max);
        if fastest == 0.0 {
            return Ok(None);
        }
        let filled = known.into_iter().enumerate().map(|(i, model)| match model {
            Some(model) => Ok(model),
            None => Model::constant(name(i), fastest),
        });
        filled.collect::<Result<_>>().map(Some)
    }

    fn memory(&self) -> Memory {
        let tolerance = self.tolerance;
        let least = f64::max(1e-3, 0.1 * tolerance).min(NEAR);
        let noise = self.noise().unwrap_or(UNKNOWN_NOISE);
        Memory { window: WINDOW, near: (2.0 * noise).clamp(least, NEAR), noise, tolerance }
    }
}

const FORMAT: &str = "apportion-balancer";
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<B> {
    format: String,
    version: u32,
    balancer: B,
}

impl Balancer {
    /// The whole state as one line of JSON. [`Balancer::from_json`] returns an equal balancer.
    pub fn to_json(&self) -> String {
        let file = File { format: FORMAT.into(), version: VERSION, balancer: self };
        serde_json::to_string(&file).expect("the state has finite numbers only")
    }

    /// The balancer of a text by [`Balancer::to_json`].
    ///
    /// # Errors
    /// Another text, or one that was changed so that it is no state of a balancer.
    pub fn from_json(text: &str) -> Result<Self> {
        let refuse =
            |what: String| Error::input("state of a balancer", what, "give a text that to_json has returned");
        let file: File<Self> = serde_json::from_str(text).map_err(|e| refuse(e.to_string()))?;
        if file.format != FORMAT || file.version != VERSION {
            return Err(refuse(format!("format {:?}, version {}", file.format, file.version)));
        }
        let state = file.balancer;
        check_tolerance(state.tolerance)?;
        check_hysteresis(state.hysteresis)?;
        state.cost.checked()?;
        // Equal to a new one where it matters: sizes, limits and models fit together.
        let p = state.processors.len();
        Self::new(state.units, p)?.with_limits(&state.limits)?.adopt(&state.shares)?;
        if let Some(what) = state.processors.iter().find_map(|observed| observed.defect()) {
            return Err(refuse(what.into()));
        }
        state.known_models()?;
        Ok(state)
    }
}

fn check_hysteresis(hysteresis: f64) -> Result<()> {
    match (0.0..1.0).contains(&hysteresis) {
        true => Ok(()),
        false => Err(Error::input(
            "`hysteresis`",
            format!("{hysteresis} is not a fraction from 0 to below 1"),
            "use 0.02",
        )),
    }
}

#[cfg(test)]
mod loops;
#[cfg(test)]
mod tests;
