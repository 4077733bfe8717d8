//! What all measurements share: figures and their middle, clocks, repeated products, and the rivals.

pub mod clock;
pub mod product;
pub mod rivals;

/// Figures in ascending order.
pub struct Sample(Vec<f64>);

impl Sample {
    /// # Panics
    /// If there is none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        assert!(!figures.is_empty(), "a sample of something");
        figures.sort_by(f64::total_cmp);
        Self(figures)
    }

    /// The figure that this part of all is not above.
    pub fn at(&self, part: f64) -> f64 {
        self.0[((self.0.len() as f64 * part) as usize).min(self.0.len() - 1)]
    }

    /// The middle one, or the larger of two.
    pub fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// The least.
    pub fn least(&self) -> f64 {
        self.0[0]
    }

    /// The most.
    pub fn most(&self) -> f64 {
        self.at(1.0)
    }
}

/// The middle of some figures.
///
/// # Panics
/// If there is none.
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    Sample::of(figures).median()
}
