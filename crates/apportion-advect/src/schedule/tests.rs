//! The pieces cover what a box needs, and the three counts agree.

use super::*;
use apportion::geometry::Span;
use apportion::plan::Part;
use apportion::plan::Shape;
use apportion::platform::{Direction, Network};
use apportion::schedule::Piece;
use apportion::simulate::{CostModel, simulate};

fn layout(rows: u64, cols: u64, rects: &[(usize, [u64; 4])]) -> Layout {
    let part = |(owner, [a, b, c, d]): &(usize, [u64; 4])| Part {
        owner: Rank(*owner),
        rows: Span::new(*a, *b),
        cols: Span::new(*c, *d),
    };
    let owners = rects.iter().map(|(owner, _)| owner + 1).max().unwrap();
    Layout::new(Shape::new(rows, 1, cols, "t").unwrap(), owners, rects.iter().map(part)).unwrap()
}

fn problem(sizes: &[usize], boundary: Boundary, scheme: Scheme) -> AdvectProblem {
    AdvectProblem { sizes: sizes.to_vec(), boundary: vec![boundary; sizes.len()], scheme }
}

#[test]
fn two_boxes_side_by_side_exchange_what_the_passes_look_at() {
    let scheme = Scheme::new(2).unwrap();
    let two = layout(8, 10, &[(0, [0, 8, 0, 6]), (1, [0, 8, 6, 10])]);
    let order = AdvectOrder { exchange: Exchange::Wide, overlap: false };
    let schedule =
        AdvectSchedule::new(&problem(&[8, 10, 4], Boundary::Zero, scheme), &two, order, 3).unwrap();
    // Two columns of 8 x 4 cells each way.
    assert_eq!(schedule.volume(Rank(0)), 3 * 2 * 8 * 4);
    let pieces = pieces(&schedule, Rank(0), Rank(1), 1);
    assert!(pieces.iter().all(|piece| piece.direction() == Direction::Horizontal));
    let narrow = AdvectOrder { exchange: Exchange::Narrow, overlap: false };
    let schedule =
        AdvectSchedule::new(&problem(&[8, 10, 4], Boundary::Zero, scheme), &two, narrow, 3).unwrap();
    assert_eq!(schedule.volume(Rank(0)), 3 * 2 * 8 * 4);
    // On a ring, both ends; with corners nothing more, as all rows are there.
    let round = problem(&[8, 10, 4], Boundary::Periodic, scheme);
    let schedule = AdvectSchedule::new(&round, &two, order, 1).unwrap();
    assert_eq!(schedule.volume(Rank(1)), 2 * 2 * (8 + 4) * 4);
}

#[test]
fn the_counts_agree_and_the_simulator_ends() {
    let uneven =
        layout(13, 11, &[(0, [0, 6, 0, 7]), (1, [6, 13, 0, 7]), (2, [0, 9, 7, 11]), (3, [9, 13, 7, 11])]);
    for (boundary, passes, order) in [Boundary::Periodic, Boundary::Zero, Boundary::Extrapolated]
        .into_iter()
        .flat_map(|b| (1..=4).flat_map(move |k| AdvectOrder::ALL.map(move |order| (b, k, order))))
    {
        let scheme = Scheme { nonoscillatory: passes > 1, ..Scheme::new(passes).unwrap() };
        let schedule = AdvectSchedule::new(&problem(&[13, 11], boundary, scheme), &uneven, order, 2).unwrap();
        let network = Network::uniform(1e-6, 1e9);
        let trace =
            simulate(&schedule, CostModel { rates: &[1e8; 4], network: &network, element: 8 }).unwrap();
        for to in (0..4).map(Rank) {
            let by_steps: u64 = (0..4)
                .map(Rank)
                .flat_map(|from| schedule.steps(from).collect::<Vec<_>>())
                .flat_map(|step| step.sent().to_vec())
                .filter(|message| message.to == to)
                .map(|message| message.elements())
                .sum();
            assert_eq!(by_steps, schedule.volume(to), "{boundary:?} {scheme} {order}");
            assert_eq!(trace.lanes[to.0].received.iter().sum::<u64>(), by_steps);
            let amounts: f64 = schedule
                .steps(to)
                .map(|step| if let Step::Compute(work) = step { work.amount } else { 0.0 })
                .sum();
            assert!((amounts - schedule.work(to)).abs() < 1e-9 * amounts);
            assert!(amounts >= 2.0 * schedule.share(to) * 0.999);
        }
    }
}

#[test]
fn a_layout_of_another_plane_is_refused() {
    let scheme = Scheme::new(2).unwrap();
    let one = layout(8, 10, &[(0, [0, 8, 0, 10])]);
    let order = AdvectOrder::ALL[0];
    let error = AdvectSchedule::new(&problem(&[10, 8], Boundary::Zero, scheme), &one, order, 1).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("--shape 10x8"), "{error}");
}
