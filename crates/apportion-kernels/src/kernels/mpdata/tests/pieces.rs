//! A grid computed in pieces is bit for bit the grid computed at once: boxes of any size, whatever is
//! exchanged when, on all instruction sets.

use super::*;
use crate::kernels::mpdata::frame::Frame;
use proptest::prelude::*;

/// Deterministic numbers from 0 to 1 that look random.
fn noise(at: [isize; 3], seed: u64) -> f64 {
    let mut x = seed ^ 0x9e37_79b9_7f4a_7c15;
    for a in at {
        x = (x ^ (a as u64).wrapping_add(0x632b_e59b_d9b4_e019)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^= x >> 29;
    }
    (x >> 11) as f64 / (1u64 << 53) as f64
}

/// The steps of a grid cut into boxes along its divided axes, each box with its own surroundings.
fn in_pieces(
    domain: Domain,
    Stencil { scheme, exchange }: Stencil,
    cuts: &[Cells],
    psi: &[f64],
    steps: usize,
    slabs: usize,
    courant: impl Fn(usize, [isize; 3]) -> f64,
) -> Vec<f64> {
    let undivided = [0, 1, 2]
        .map(|axis| cuts.iter().all(|cut| cut.lo[axis] == 0 && cut.hi[axis] == domain.cells[axis] as isize));
    let whole = Frame::of(&domain.whole());
    let signed = psi.iter().any(|x| *x < 0.0);
    let with = Stencil { scheme, exchange };
    let mut boxes: Vec<Subdomain<f64>> = cuts
        .iter()
        .map(|cells| {
            let mut piece = Subdomain::new(domain, with, *cells, undivided, signed);
            let room = Subdomain::<f64>::room(&domain, with, cells, undivided);
            for place in [Place::Centre, Place::Face(0), Place::Face(1), Place::Face(2)] {
                if matches!(place, Place::Face(axis) if !domain.has[axis]) {
                    continue;
                }
                for source in sources(&domain, place, &room, false) {
                    let there = source.there();
                    let mut values = Vec::new();
                    for i in there.lo[0]..there.hi[0] {
                        for j in there.lo[1]..there.hi[1] {
                            for k in there.lo[2]..there.hi[2] {
                                values.push(match place {
                                    Place::Centre => psi[whole.at([i, j, k])],
                                    Place::Face(axis) => courant(axis, [i, j, k]),
                                });
                            }
                        }
                    }
                    piece.unpack(place, 1, &source.here, &values);
                }
                piece.close(place, 1);
            }
            piece
        })
        .collect();
    for step in 0..steps {
        for pass in 1..=exchange.phases(&scheme) {
            let mut places = vec![Place::Centre];
            if pass > 2 {
                places.extend(domain.axes().iter().map(|axis| Place::Face(*axis)));
            }
            for place in places {
                for (number, cells) in cuts.iter().enumerate() {
                    let needs = Subdomain::<f64>::needs(&domain, with, cells, undivided, place, pass);
                    for source in sources(&domain, place, &needs, undivided[2]) {
                        for (other, owned) in cuts.iter().enumerate() {
                            let mut owned = *owned;
                            if let Place::Face(axis) = place
                                && owned.hi[axis] == domain.cells[axis] as isize
                                && domain.inside(place, axis).is_some()
                            {
                                owned.hi[axis] += 1;
                            }
                            let there = source.there().intersect(&owned);
                            if there.is_empty() || (other == number && source.shift == [0; 3]) {
                                continue;
                            }
                            let mut values = vec![0.0; there.count()];
                            boxes[other].pack(place, pass, &there, &mut values);
                            let back = source.shift.map(|s| -s);
                            let here = Source { here: there, shift: back }.there();
                            boxes[number].unpack(place, pass, &here, &values);
                        }
                    }
                }
                boxes.iter_mut().for_each(|piece| piece.close(place, pass));
            }
            let pass = if exchange == Exchange::Wide { 0 } else { pass };
            for (piece, cells) in boxes.iter_mut().zip(cuts) {
                // In two parts, as when the inside is computed first.
                let mut parts = [*cells, *cells];
                let middle = (cells.lo[0] + cells.hi[0] + (step as isize & 1)) / 2;
                (parts[0].lo[0], parts[1].hi[0]) = (middle, middle);
                for part in parts {
                    piece.parts(&part, pass, slabs).into_iter().for_each(Part::compute);
                }
                piece.finish(pass);
            }
        }
    }
    let mut out = vec![0.0; domain.whole().count()];
    for (piece, cells) in boxes.iter_mut().zip(cuts) {
        let mut values = vec![0.0; cells.count()];
        piece.pack(Place::Centre, 1, cells, &mut values);
        let frame = Frame::of(cells);
        for i in cells.lo[0]..cells.hi[0] {
            for j in cells.lo[1]..cells.hi[1] {
                for k in cells.lo[2]..cells.hi[2] {
                    out[whole.at([i, j, k])] = values[frame.at([i, j, k])];
                }
            }
        }
    }
    out
}

/// Cuts of a length, at increasing places.
fn cut(n: usize, at: &[usize]) -> Vec<(isize, isize)> {
    let mut cuts: Vec<isize> = at.iter().map(|x| (x % n) as isize).collect();
    cuts.extend([0, n as isize]);
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2).map(|two| (two[0], two[1])).collect()
}

fn boundary() -> impl Strategy<Value = Boundary> {
    prop_oneof![Just(Boundary::Periodic), Just(Boundary::Zero), Just(Boundary::Extrapolated)]
}

fn scheme() -> impl Strategy<Value = Scheme> {
    (1usize..=4, any::<bool>(), any::<bool>(), any::<bool>()).prop_filter_map(
        "a scheme",
        |(passes, nonoscillatory, infinite_gauge, third_order)| {
            Scheme { passes, nonoscillatory, infinite_gauge, third_order }.checked().ok()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn pieces_are_the_whole_bit_for_bit(
        sizes in prop::collection::vec(1usize..11, 1..=3),
        ends in (boundary(), boundary(), boundary()),
        scheme in scheme(),
        narrow in any::<bool>(),
        places in prop::collection::vec(0usize..11, 0..5),
        slabs in 1usize..3,
        seed in any::<u64>(),
        signed in any::<bool>(),
    ) {
        let ends = [ends.0, ends.1, ends.2];
        let domain = Domain::new(&sizes, &ends[..sizes.len()]);
        let courant = |axis: usize, at: [isize; 3]| {
            let mut at = at;
            // On a periodic axis the first face is the last.
            if domain.boundary[axis] == Boundary::Periodic {
                at[axis] = at[axis].rem_euclid(domain.cells[axis] as isize);
            }
            (noise(at, seed + axis as u64) - 0.5) * 0.6
        };
        let shift = if signed { 0.5 } else { 0.0 };
        let [planes, rows, row] = domain.cells.map(|n| n as isize);
        let psi: Vec<f64> = (0..planes)
            .flat_map(|i| (0..rows).map(move |j| (i, j)))
            .flat_map(|(i, j)| (0..row).map(move |k| noise([i, j, k], seed + 7) - shift))
            .collect();
        let whole = {
            let mut serial = Serial::new(domain, Stencil { scheme, exchange: Exchange::Wide }, &psi, courant);
            serial.steps(2);
            serial.field()
        };
        // Two axes are divided: of three the first two.
        let divided: Vec<usize> = domain.axes().iter().copied().take(2).collect();
        let mut cuts = vec![domain.whole()];
        for (number, axis) in divided.iter().enumerate() {
            let at = &places[number.min(places.len())..];
            cuts = cuts
                .iter()
                .flat_map(|cells| {
                    cut(domain.cells[*axis], at).into_iter().map(|(lo, hi)| {
                        let mut part = *cells;
                        (part.lo[*axis], part.hi[*axis]) = (lo, hi);
                        part
                    })
                })
                .collect();
        }
        let exchange = if narrow { Exchange::Narrow } else { Exchange::Wide };
        let found = in_pieces(domain, Stencil { scheme, exchange }, &cuts, &psi, 2, slabs, courant);
        let same = found.iter().zip(&whole).all(|(x, y)| x.to_bits() == y.to_bits());
        prop_assert!(same, "{scheme} {cuts:?}\n{found:?}\n{whole:?}");
    }
}
