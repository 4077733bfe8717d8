//! Sharing of link bandwidth: weighted, bounded max-min fairness.

/// One sharing problem: links with capacities, and flows with weights, bounds and the links that they use.
/// The memory is reused between problems, so there is no allocation once the largest has been solved.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    capacities: Vec<f64>,
    flows: Vec<Claim>,
    /// Per flow, a slice of (link, bandwidth per unit of rate).
    uses: Vec<(u32, f64)>,
    // Scratch.
    rest: Vec<f64>,
    levels: Vec<f64>,
    demand: Vec<f64>,
    unfixed: Vec<u32>,
    first_user: Vec<u32>,
    users: Vec<u32>,
    by_level: Vec<(f64, u32)>,
    by_bound: Vec<(f64, u32)>,
}

#[derive(Debug, Clone, Copy)]
struct Claim {
    /// Number of flows alike.
    count: f64,
    weight: f64,
    bound: f64,
    begin: u32,
    end: u32,
}

impl Sharing {
    /// Clears the problem.
    pub(crate) fn clear(&mut self) {
        self.capacities.clear();
        self.flows.clear();
        self.uses.clear();
    }

    /// Adds a link, and returns its number.
    pub(crate) fn link(&mut self, capacity: f64) -> u32 {
        self.capacities.push(capacity);
        self.capacities.len() as u32 - 1
    }

    /// The level of `weight x rate` at which a link was full in the last solution; infinite if it has
    /// bandwidth left or was full with others.
    pub(crate) fn level(&self, link: u32) -> f64 {
        self.levels[link as usize]
    }

    /// Adds `count` flows that are alike, whose rates have weight `weight` and upper bound `bound`; `uses`
    /// names each link at most once.
    pub(crate) fn flows(
        &mut self,
        count: u32,
        weight: f64,
        bound: f64,
        uses: impl Iterator<Item = (u32, f64)>,
    ) {
        let begin = self.uses.len() as u32;
        self.uses.extend(uses);
        self.flows.push(Claim { count: count.into(), weight, bound, begin, end: self.uses.len() as u32 });
    }

    /// Computes the max-min fair rates, one for all flows that are alike: they maximise the smallest `weight
    /// x rate`, then the next smallest, and so on (unique), such that no link exceeds its capacity and no
    /// flow its bound. The algorithm is progressive filling: the common level of `weight x rate` rises until
    /// a link is full or a flow reaches its bound. Those flows keep their rates, and the level of the others
    /// rises further. O((u + f) log (l + f)) for u uses, f flows, l links: a link's level never falls, so an
    /// outdated entry of the queue is reinserted at most once for each flow fixed on it. Flows that are alike
    /// count as one.
    ///
    /// Source: Bertsekas and Gallager, Data Networks (1992), section 6.5.2; weights and bounds as in Casanova
    /// and Marchal, A network model for simulation of grid applications (INRIA 2002).
    pub(crate) fn solve(&mut self, rates: &mut Vec<f64>) {
        rates.clear();
        rates.resize(self.flows.len(), f64::NAN);
        self.index();
        let mut left = self.flows.len();
        while left > 0 {
            let link = self.fullest();
            let bound = self.by_bound.last().copied();
            match (link, bound) {
                (None, None) => unreachable!("every unfixed flow is queued by its bound"),
                (link, Some((level, flow))) if link.is_none_or(|(other, _)| level <= other) => {
                    self.by_bound.pop();
                    if rates[flow as usize].is_nan() {
                        self.fix(flow, self.flows[flow as usize].bound, rates);
                        left -= 1;
                    }
                }
                (Some((level, link)), _) => {
                    self.levels[link as usize] = level;
                    let (from, to) = (self.first_user[link as usize], self.first_user[link as usize + 1]);
                    for place in from..to {
                        let flow = self.users[place as usize];
                        if rates[flow as usize].is_nan() {
                            self.fix(flow, level / self.flows[flow as usize].weight, rates);
                            left -= 1;
                        }
                    }
                }
                (None, Some(_)) => unreachable!("taken by the second arm"),
            }
        }
    }

    /// Computes sums, users by link and the two queues.
    fn index(&mut self) {
        let links = self.capacities.len();
        self.rest.clear();
        self.rest.extend_from_slice(&self.capacities);
        self.levels.clear();
        self.levels.resize(links, f64::INFINITY);
        self.demand.clear();
        self.demand.resize(links, 0.0);
        self.unfixed.clear();
        self.unfixed.resize(links, 0);
        for flow in &self.flows {
            for &(link, share) in &self.uses[flow.begin as usize..flow.end as usize] {
                self.demand[link as usize] += flow.count * share / flow.weight;
                self.unfixed[link as usize] += 1;
            }
        }
        self.first_user.clear();
        self.first_user.push(0);
        let mut sum = 0;
        self.first_user.extend(self.unfixed.iter().map(|&n| {
            sum += n;
            sum
        }));
        self.users.clear();
        self.users.resize(sum as usize, 0);
        let mut place: Vec<u32> = self.first_user.clone();
        for (i, flow) in self.flows.iter().enumerate() {
            for &(link, _) in &self.uses[flow.begin as usize..flow.end as usize] {
                self.users[place[link as usize] as usize] = i as u32;
                place[link as usize] += 1;
            }
        }
        // Both queues are sorted in descending order: the minimum is popped from the end.
        self.by_level.clear();
        self.by_level.extend(
            (0..links).filter(|&l| self.unfixed[l] > 0).map(|l| (self.rest[l] / self.demand[l], l as u32)),
        );
        self.by_level.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        self.by_bound.clear();
        self.by_bound.extend(self.flows.iter().enumerate().map(|(i, f)| (f.bound * f.weight, i as u32)));
        self.by_bound.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    }

    /// The link that fills first, and its level.
    fn fullest(&mut self) -> Option<(f64, u32)> {
        while let Some((level, link)) = self.by_level.pop() {
            let l = link as usize;
            if self.unfixed[l] == 0 {
                continue;
            }
            let now = (self.rest[l].max(0.0) / self.demand[l]).max(level);
            let next = self.by_level.last();
            let entry = (now, link);
            if next.is_none_or(|n| (now, link) <= *n) {
                self.by_level.push(entry);
                return Some(entry);
            }
            let place = self.by_level.partition_point(|n| (n.0, n.1) > entry);
            self.by_level.insert(place, entry);
        }
        None
    }

    fn fix(&mut self, flow: u32, rate: f64, rates: &mut [f64]) {
        rates[flow as usize] = rate;
        let Claim { count, weight, begin, end, .. } = self.flows[flow as usize];
        for &(link, share) in &self.uses[begin as usize..end as usize] {
            let l = link as usize;
            if self.rest[l].is_finite() {
                self.rest[l] -= count * share * rate;
            }
            self.demand[l] -= count * share / weight;
            self.unfixed[l] -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Flow = (f64, f64, Vec<(u32, f64)>);

    fn solve(capacities: &[f64], flows: &[Flow]) -> Vec<f64> {
        let mut sharing = Sharing::default();
        for &c in capacities {
            sharing.link(c);
        }
        flows.iter().for_each(|(w, b, uses)| sharing.flows(1, *w, *b, uses.iter().copied()));
        let mut rates = Vec::new();
        sharing.solve(&mut rates);
        rates
    }

    fn on(links: &[u32]) -> Flow {
        (1.0, f64::INFINITY, links.iter().map(|&l| (l, 1.0)).collect())
    }

    /// Bertsekas and Gallager's example: bandwidth that a bottlenecked flow cannot use goes to the others.
    #[test]
    fn what_one_cannot_use_goes_to_the_others() {
        assert_eq!(solve(&[1.0, 2.0], &[on(&[0]), on(&[0, 1]), on(&[1])]), [0.5, 0.5, 1.5]);
        assert_eq!(solve(&[9.0], &[(1.0, 1.0, vec![(0, 1.0)]), on(&[0]), on(&[0])]), [1.0, 4.0, 4.0]);
        // Twice the weight is half the rate.
        assert_eq!(solve(&[9.0], &[(2.0, 100.0, vec![(0, 1.0)]), on(&[0])]), [3.0, 6.0]);
        // Acknowledgements take 5 % on the way back.
        let both = [(1.0, 100.0, vec![(0, 1.0), (1, 0.05)]), (1.0, 100.0, vec![(1, 1.0), (0, 0.05)])];
        assert_eq!(solve(&[1.05, 1.05], &both), [1.0, 1.0]);
        assert_eq!(solve(&[f64::INFINITY], &[on(&[0]), (1.0, 5.0, vec![(0, 1.0)])]), [f64::INFINITY, 5.0]);
    }

    /// A slow and simple reference: every round recomputes the level of every link.
    fn oracle(capacities: &[f64], flows: &[Flow]) -> Vec<f64> {
        let mut rates: Vec<Option<f64>> = vec![None; flows.len()];
        while rates.iter().any(Option::is_none) {
            let level = |link: u32| {
                let of = |f: &Flow| f.2.iter().filter(|u| u.0 == link).map(|u| u.1).sum::<f64>();
                let fixed: f64 = flows.iter().zip(&rates).map(|(f, r)| of(f) * r.unwrap_or(0.0)).sum();
                let open: f64 =
                    flows.iter().zip(&rates).filter(|(_, r)| r.is_none()).map(|(f, _)| of(f) / f.0).sum();
                (capacities[link as usize] - fixed).max(0.0) / open
            };
            let levels = flows
                .iter()
                .zip(&rates)
                .filter(|(_, r)| r.is_none())
                .map(|(f, _)| f.2.iter().map(|u| level(u.0)).fold(f.1 * f.0, f64::min));
            let least = levels.fold(f64::INFINITY, f64::min);
            let stops: Vec<bool> = flows
                .iter()
                .map(|f| {
                    f.1 * f.0 <= least * (1.0 + 1e-12)
                        || f.2.iter().any(|u| level(u.0) <= least * (1.0 + 1e-12))
                })
                .collect();
            for ((rate, flow), stop) in rates.iter_mut().zip(flows).zip(stops) {
                if rate.is_none() && stop {
                    *rate = Some((least / flow.0).min(flow.1));
                }
            }
        }
        rates.into_iter().flatten().collect()
    }

    fn problem() -> impl Strategy<Value = (Vec<f64>, Vec<Flow>)> {
        let capacities = prop::collection::vec(1.0f64..100.0, 1..7);
        capacities.prop_flat_map(|c| {
            let links =
                prop::collection::btree_map(0..c.len() as u32, prop_oneof![Just(1.0), Just(0.05)], 1..4);
            let bound = prop_oneof![3 => Just(f64::INFINITY), 1 => 0.5f64..40.0];
            let flow =
                (prop_oneof![Just(1.0), 0.1f64..10.0], bound, links.prop_map(|m| m.into_iter().collect()));
            (Just(c), prop::collection::vec(flow, 1..12))
        })
    }

    proptest! {
        #[test]
        fn equals_filling_by_enumeration((capacities, flows) in problem()) {
            let (ours, theirs) = (solve(&capacities, &flows), oracle(&capacities, &flows));
            for (a, b) in ours.iter().zip(&theirs) {
                prop_assert!((a - b).abs() <= 1e-9 * b, "{ours:?} {theirs:?}");
            }
        }

        /// Flows that are alike get what each would get by itself.
        #[test]
        fn flows_alike_count_as_many((capacities, flows) in problem(), counts in prop::collection::vec(1u32..5, 12)) {
            let mut sharing = Sharing::default();
            for &c in &capacities {
                sharing.link(c);
            }
            for ((w, b, uses), &count) in flows.iter().zip(&counts) {
                sharing.flows(count, *w, *b, uses.iter().copied());
            }
            let mut ours = Vec::new();
            sharing.solve(&mut ours);
            let each = |(flow, &count): (&Flow, &u32)| vec![flow.clone(); count as usize];
            let many: Vec<Flow> = flows.iter().zip(&counts).flat_map(each).collect();
            let mut theirs = oracle(&capacities, &many).into_iter();
            for (rate, &count) in ours.iter().zip(&counts) {
                for single in theirs.by_ref().take(count as usize) {
                    prop_assert!((rate - single).abs() <= 1e-9 * single, "{rate} {single}");
                }
            }
        }

        /// The optimality certificate: no link exceeds its capacity, and every flow is at its bound or
        /// crosses a full link on which no flow's weighted rate exceeds its own.
        #[test]
        fn every_flow_has_its_bottleneck((capacities, flows) in problem()) {
            let rates = solve(&capacities, &flows);
            let load = |link: u32| -> f64 {
                flows.iter().zip(&rates).flat_map(|(f, r)| f.2.iter().filter(move |u| u.0 == link).map(move |u| u.1 * r)).sum()
            };
            for (link, capacity) in capacities.iter().enumerate() {
                prop_assert!(load(link as u32) <= capacity * (1.0 + 1e-9));
            }
            for (flow, rate) in flows.iter().zip(&rates) {
                let bottleneck = flow.2.iter().any(|&(link, _)| {
                    let full = load(link) >= capacities[link as usize] * (1.0 - 1e-9);
                    full && flows.iter().zip(&rates).all(|(f, r)| {
                        f.2.iter().all(|u| u.0 != link) || f.0 * r <= flow.0 * rate * (1.0 + 1e-9)
                    })
                });
                prop_assert!(bottleneck || *rate >= flow.1 * (1.0 - 1e-9));
            }
        }
    }
}
