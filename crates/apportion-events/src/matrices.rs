//! The matrices of equations (7.3) to (7.6).

use super::{Place, Workcell, shared_places};
use apportion::kernels::BitMatrix;
use std::collections::BTreeMap;

/// The boolean matrices of a workcell, transposed: a state is a row vector, so that the few ones of a state
/// select rows. With v, r and u the jobs done, resources free and parts waiting, and v_D the rules that
/// dispatching permits, the rules that fire are
///
/// x = not (F_v (not v) or F_r (not r) or F_u (not u) or F_D (not v_D))   (7.3)
///
/// and v_s = S_v x, r_s = S_r x, y = S_y x (7.4 to 7.6) are the jobs that start, the resources that are
/// released and the products.
#[derive(Debug, Clone, PartialEq)]
pub struct EventMatrices {
    /// F_v, F_r and F_u beside each other, transposed: places x rules.
    pub(crate) conditions: BitMatrix,
    /// F_D transposed: rules in conflict x rules.
    pub(crate) permission: BitMatrix,
    /// The rules in conflict, by row of `permission`.
    pub(crate) permitted: Vec<usize>,
    /// S_v transposed: rules x jobs.
    pub(crate) starts: BitMatrix,
    /// S_r transposed: rules x resources.
    pub(crate) releases: BitMatrix,
    /// S_y transposed: rules x products.
    pub(crate) products: BitMatrix,
}

impl EventMatrices {
    /// The matrices of a workcell. O(rules x (places + jobs + resources + products)) bits.
    pub fn of(workcell: &Workcell) -> Self {
        let rules = workcell.rules.len();
        let mut conditions = BitMatrix::zeros(workcell.places(), rules);
        let mut starts = BitMatrix::zeros(rules, workcell.jobs.len());
        let mut releases = BitMatrix::zeros(rules, workcell.resources.len());
        let mut products = BitMatrix::zeros(rules, workcell.products.len());
        for (number, rule) in workcell.rules.iter().enumerate() {
            workcell.inputs(number).for_each(|place| conditions.set(place, number));
            rule.start.iter().for_each(|&job| starts.set(number, job));
            rule.release.iter().for_each(|&resource| releases.set(number, resource));
            rule.produce.iter().for_each(|&product| products.set(number, product));
        }
        let permitted = in_conflict(workcell);
        let mut permission = BitMatrix::zeros(permitted.len(), rules);
        permitted.iter().enumerate().for_each(|(row, &rule)| permission.set(row, rule));
        Self { conditions, permission, permitted, starts, releases, products }
    }

    /// The matrices by the names of the equations, as bytes with their rows and columns: F_v, F_r, F_u, F_D,
    /// S_v, S_r, S_y.
    pub fn by_name(&self, workcell: &Workcell) -> Vec<(&'static str, Vec<u8>, [usize; 2])> {
        let rules = workcell.rules.len();
        let columns = |name, matrix: &BitMatrix, from: usize, count: usize| {
            let bytes = (0..rules)
                .flat_map(|rule| (from..from + count).map(move |at| (rule, at)))
                .map(|(rule, at)| u8::from(matrix.get(at, rule)));
            (name, bytes.collect(), [rules, count])
        };
        let (jobs, resources) = (workcell.jobs.len(), workcell.resources.len());
        let first = |place| workcell.number(place);
        let turned = |name, matrix: &BitMatrix| {
            let rows = matrix.cols();
            let bytes = (0..rows)
                .flat_map(|row| (0..rules).map(move |rule| (rule, row)))
                .map(|(rule, row)| u8::from(matrix.get(rule, row)));
            (name, bytes.collect(), [rows, rules])
        };
        vec![
            columns("F_v", &self.conditions, first(Place::Job(0)), jobs),
            columns("F_r", &self.conditions, first(Place::Resource(0)), resources),
            columns("F_u", &self.conditions, first(Place::Part(0)), workcell.parts.len()),
            columns("F_D", &self.permission, 0, self.permitted.len()),
            turned("S_v", &self.starts),
            turned("S_r", &self.releases),
            turned("S_y", &self.products),
        ]
    }
}

/// The rules that dispatching may have to hold back: those that share what they take, or what they give. A
/// step starts a job, releases a resource or finishes a product at most once, so that (7.4) to (7.6) lose
/// nothing; a second instance follows in the next step, at the same time.
fn in_conflict(workcell: &Workcell) -> Vec<usize> {
    let mut shares = vec![false; workcell.rules.len()];
    let mut together = |rules: &[usize]| {
        if rules.len() > 1 {
            rules.iter().for_each(|&rule| shares[rule] = true);
        }
    };
    shared_places(workcell).iter().for_each(|place| together(&place.rules));
    workcell.givers().iter().for_each(|rules| together(rules));
    let mut makers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, rule) in workcell.rules.iter().enumerate() {
        rule.produce.iter().for_each(|&product| makers.entry(product).or_default().push(number));
    }
    makers.values().for_each(|rules| together(rules));
    (0..workcell.rules.len()).filter(|&rule| shares[rule]).collect()
}
