//! Tinetti's time model of the broadcast flow on strips, for comparison with the simulated and the measured
//! time.
//!
//! Source: Tinetti, chapter 3, equations (3.1) to (3.11). The model applies to row shares in proportion to
//! speed, a bus on which a broadcast is one message, and a size that is divisible by the number of
//! processors.

use apportion::plan::Shape;

/// Duration of one turn, and the number of turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BroadcastTime {
    /// t_bcast, seconds of one broadcast: alpha + beta k n / (P blocks) (3.7).
    pub broadcast: f64,
    /// t_comp, seconds of one computation: (2 k - 1) m n / (P blocks pw) (3.8), the same on all processors.
    pub compute: f64,
    /// Number of turns: P x blocks.
    turns: u64,
}

impl BroadcastTime {
    /// Creates the model from the latency alpha (seconds) and beta (seconds per element) of a message (3.1),
    /// the processors' speeds in flop/s, whose sum is pw (3.9), and the number of blocks in which each
    /// processor's part of B is sent (3.4.4).
    ///
    /// # Panics
    /// If there is no processor or no block.
    pub fn new(shape: Shape, alpha: f64, beta: f64, speeds: &[f64], blocks: u64) -> Self {
        assert!(!speeds.is_empty() && blocks > 0, "at least one processor and one block");
        let turns = speeds.len() as u64 * blocks;
        let power: f64 = speeds.iter().sum();
        let operations = (2.0 * shape.k as f64 - 1.0) * shape.m as f64 * shape.n as f64;
        Self {
            broadcast: alpha + beta * shape.k as f64 * shape.n as f64 / turns as f64,
            compute: operations / (turns as f64 * power),
            turns,
        }
    }

    /// Seconds without overlap: P (t_bcast + t_comp) (3.6), which is P alpha + beta k n + all operations / pw
    /// (3.10).
    pub fn sequential(&self) -> f64 {
        self.turns as f64 * (self.broadcast + self.compute)
    }

    /// Seconds with overlap: t_bcast + (P - 1) max(t_bcast, t_comp) + t_comp (3.11).
    pub fn overlapped(&self) -> f64 {
        self.broadcast + (self.turns - 1) as f64 * self.broadcast.max(self.compute) + self.compute
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::plan::shapes;
    use apportion::plan::shapes::LayoutMethod;
    use apportion::platform::{Network, Topology};
    use apportion::schedule::{Flow, MatmulSchedule, ScheduleOptions};
    use apportion::simulate::{CostModel, simulate};

    /// Four processors of 40, 30, 20 and 10 Mflop/s, n = 100: by hand from the equations.
    #[test]
    fn equations_by_hand() {
        let shape = Shape::new(100, 100, 100, "test").unwrap();
        let (alpha, beta) = (0.002, 4e-6);
        let model = BroadcastTime::new(shape, alpha, beta, &[40e6, 30e6, 20e6, 10e6], 1);
        // (3.7): 0.002 + 4e-6 * 10,000 / 4; (3.8), (3.9): 1,990,000 / (4 * 100e6).
        assert!((model.broadcast - 0.012).abs() < 1e-15);
        assert!((model.compute - 0.004_975).abs() < 1e-15);
        // (3.6) = (3.10): 4 * 0.002 + 4e-6 * 10,000 + 1,990,000 / 100e6; (3.11): 0.012 + 3 * 0.012 +
        // 0.004975.
        assert!((model.sequential() - 0.0679).abs() < 1e-15);
        assert!((model.overlapped() - 0.052_975).abs() < 1e-15);
        // In ten blocks, ten times the latency: 40 (0.002 + 0.001 + 0.0004975).
        let blocks = BroadcastTime::new(shape, alpha, beta, &[40e6, 30e6, 20e6, 10e6], 10);
        assert!((blocks.sequential() - 0.1399).abs() < 1e-15);
    }

    /// On a bus, the simulated schedule takes the time of the equations, whether communication or computation
    /// is longer, with one block or several.
    #[test]
    fn the_simulated_schedule_takes_as_long() {
        let shape = Shape::new(100, 100, 100, "test").unwrap();
        let speeds = [40e6, 30e6, 20e6, 10e6];
        let layout = shapes::Rows::default().layout(shape, &speeds).unwrap();
        // The simulator counts 2 k operations for an element of C, the equations 2 k - 1.
        let rates = speeds.map(|s| s / 2.0 * (2.0 * 100.0 / 199.0));
        for (latency, bandwidth) in [(0.002, 2e6), (0.0001, 8e7)] {
            let mut network = Network::uniform(latency, bandwidth);
            network.topology = Topology::Bus;
            let costs = CostModel { rates: &rates, network: &network, element: 8 };
            for blocks in [1, 2, 10] {
                let model = BroadcastTime::new(shape, latency, 8.0 / bandwidth, &speeds, blocks);
                for overlap in [false, true] {
                    let order = ScheduleOptions::new(Flow::Broadcast, 100 / blocks)
                        .with_look_ahead(u64::from(overlap));
                    let seconds = simulate(&MatmulSchedule::new(&layout, order), costs).unwrap().seconds();
                    let expected = if overlap { model.overlapped() } else { model.sequential() };
                    assert!(
                        (seconds / expected - 1.0).abs() < 1e-9,
                        "{blocks} {overlap}: {seconds} {expected}"
                    );
                }
            }
        }
    }
}
