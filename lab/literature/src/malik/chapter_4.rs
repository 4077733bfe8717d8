//! What chapter 4 of the thesis states beside its costs: halos (4.3, Figure 4.1), Table 4.1 and its
//! asymmetry, and the ratios of Tables 4.2 and 4.3.

use super::chapter_3::members;
use super::mapping::TABLE_4_1;
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Verdict, short};
use apportion::error::Result;
use apportion::geometry::Rank;
use apportion::kernels::mpdata::{Boundary, Exchange, Scheme};
use apportion::plan::Shape;
use apportion::plan::shapes::{LayoutMethod, Rows};
use apportion::plan::shapes::{Mesh, Method, MethodOptions};
use apportion::platform::{Direction, parse_platform};
use apportion::schedule::{Application, Piece, Step};
use apportion_advect::{AdvectOrder, AdvectProblem, AdvectSchedule};

pub struct Statements;

impl Experiment for Statements {
    fn about(&self) -> About {
        About {
            ids: &["malik-4.1", "malik-table-4.1"],
            source: "Malik 2016, 4.2-4.5",
            shows: "halos, the asymmetry of Table 4.1, and the ratios of Tables 4.2 and 4.3",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        halos(&mut report)?;
        table_4_1(&mut report)?;
        ratios(&mut report);
        Ok(report)
    }
}

/// 4.3 and Figure 4.1: what the middle one of nine nodes receives in a step.
fn halos(report: &mut Report) -> Result<()> {
    let (n, m, levels) = (48, 60, 5);
    let problem = AdvectProblem {
        sizes: vec![n, m, levels],
        boundary: vec![Boundary::Extrapolated; 3],
        scheme: Scheme::new(2)?,
    };
    let shape = Shape::new(n as u64, 1, m as u64, "4.3")?;
    let options = MethodOptions { mesh: Some(Mesh::new(3, 3)), ..MethodOptions::default() };
    let layout = Method::Grid.layout(shape, &[1.0; 9], &options)?;
    let order = AdvectOrder { exchange: Exchange::Wide, overlap: false };
    let schedule = AdvectSchedule::new(&problem, &layout, order, 1)?;
    let owner_at = |row: u64, col: u64| {
        let holds = |part: &&apportion::plan::Part| {
            part.rows.start <= row && row < part.rows.end && part.cols.start <= col && col < part.cols.end
        };
        layout.parts().iter().find(holds).map_or(0, |part| part.owner.0)
    };
    let middle = owner_at(24, 30);
    let (left, top, corner) = (owner_at(24, 0), owner_at(0, 30), owner_at(0, 0));
    let received = |from: usize| -> u64 {
        schedule
            .steps(Rank(from))
            .flat_map(|step| step.sent().to_vec())
            .filter(|message| message.to.0 == middle)
            .map(|message| message.elements())
            .sum()
    };
    // Two passes of width 1 in one exchange: halos of 2.
    let halo = 2;
    let (nb, mb, l) = (16, 20, levels as u64);
    let horizontal = nb * halo * l;
    report.checks.push(Check::new(
        "Section 4.3: cells from the left neighbour, nB bars of 1 x jhalo x l",
        horizontal,
        received(left),
        received(left) == horizontal,
    ));
    let vertical = halo * (halo + mb + halo) * l;
    let here = received(top) + 2 * received(corner);
    report.checks.push(Check::new(
        "Section 4.3: cells of the slice above, ihalo x (jhalo + mB + jhalo) x l",
        vertical,
        format!("{here} ({} from above, {} from each corner)", received(top), received(corner)),
        here == vertical,
    ));
    let all: u64 = (0..9).filter(|rank| *rank != middle).map(received).sum();
    report.checks.push(Check::new(
        "Figure 4.1: cells that a node receives after a time step, both directions",
        2 * (horizontal + vertical),
        all,
        all == 2 * (horizontal + vertical),
    ));
    let directions = |from: usize| -> Vec<Direction> {
        let pieces = schedule.steps(Rank(from)).flat_map(|step| match step {
            Step::Send(message) if message.to.0 == middle => message.pieces,
            _ => Vec::new(),
        });
        pieces.map(|piece| piece.direction()).collect()
    };
    let apart = directions(left).iter().all(|d| *d == Direction::Horizontal)
        && directions(top).iter().all(|d| *d == Direction::Vertical);
    report.checks.push(Check::new(
        "Figure 4.1: horizontal halos are strided in memory, vertical ones contiguous",
        "yes",
        if apart { "yes" } else { "no" },
        apart,
    ));
    let strips = Rows::default().layout(shape, &[1.0; 3])?;
    let schedule = AdvectSchedule::new(&problem, &strips, order, 1)?;
    let to: Vec<usize> =
        schedule.steps(Rank(0)).flat_map(|step| step.sent().to_vec()).map(|m| m.to.0).collect();
    report.checks.push(Check::new(
        "Section 4.3: data travel only between nodes with adjacent sub-domains, of three strips from the \
         first",
        "to the second",
        format!("to {}", to.iter().map(|rank| (rank + 1).to_string()).collect::<Vec<_>>().join(", ")),
        to == [1],
    ));
    report.note(
        "The thesis exchanges the horizontal halos first and sends the corners on with the vertical slices; \
         the library sends each corner to the node that needs it. The cells received are the same.",
    );
    Ok(())
}

/// Table 4.1: horizontal and vertical bandwidths in GB/s.
const TABLE: [(&str, usize, [[f64; 2]; 4]); 4] = [
    ("grimoire", 3, [[0.03963, 0.48068], [0.00007, 0.00056], [0.03889, 0.49341], [0.00007, 0.00056]]),
    ("parasilo", 4, [[0.00007, 0.00056], [0.03876, 0.48858], [0.00007, 0.00056], [0.03732, 0.45943]]),
    ("grisou", 2, [[0.03889, 0.49341], [0.00007, 0.00056], [0.03834, 0.48916], [0.00007, 0.00056]]),
    ("paravance", 3, [[0.00007, 0.00056], [0.03732, 0.45943], [0.00007, 0.00056], [0.03920, 0.46808]]),
];

fn table_4_1(report: &mut Report) -> Result<()> {
    let platform = parse_platform(TABLE_4_1.1, TABLE_4_1.0)?;
    let of = TABLE.map(|(name, ..)| members(&platform, name));
    let nodes: Vec<usize> = of.iter().map(Vec::len).collect();
    let same = nodes.iter().zip(TABLE).all(|(count, (_, nodes, _))| *count == nodes);
    report.checks.push(Check::new(
        "Section 4.5.1: nodes of Grimoire, Parasilo, Grisou, Paravance",
        "3, 4, 2, 3",
        nodes.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
        same,
    ));
    let mut differ = 0;
    for (from, (.., row)) in of.iter().zip(TABLE) {
        for (to, printed) in of.iter().zip(row) {
            let link = platform.network.link(Rank(from[0]), Rank(to[to.len() - 1]));
            let here = [link.horizontal / 1e9, link.vertical / 1e9];
            differ +=
                here.iter().zip(printed).filter(|(here, printed)| (**here - printed).abs() > 1e-9).count();
        }
    }
    report.checks.push(Check::new(
        "Table 4.1: bandwidths of the platform file",
        "32 as printed",
        format!("{differ} differ"),
        differ == 0,
    ));
    let [horizontal, vertical] = TABLE[2].2[2];
    report.checks.push(
        Check::new(
            "Section 4.4.1: the effective bandwidth of horizontal communications against vertical ones",
            "higher",
            format!("{} times as high, within Grisou", short(horizontal / vertical)),
            horizontal > vertical,
        )
        .unless(
            Verdict::PublishedWrong,
            "It is lower: 0.03834 against 0.48916 GB/s in Table 4.1, a twelfth, as section 4.1 says (\"the \
             cost per byte of horizontal communications is higher\").",
        ),
    );
    Ok(())
}

/// The ratios that Tables 4.2 and 4.3 print beside costs and times.
fn ratios(report: &mut Report) {
    for (what, published, here, tolerance) in [
        ("Table 4.2: ratio of the printed costs", 10.46, 22_424_946.0 / 2_143_978.0, 1e-3),
        ("Table 4.2: ratio of the printed run times", 6.44, 994.02 / 154.20, 2e-3),
        ("Table 4.3: ratio of the printed costs", 3.5, 65_658.0 / 18_535.0, 0.02),
    ] {
        report.checks.push(Check::near(what, published, here, tolerance));
    }
    report.checks.push(
        Check::near("Table 4.3: ratio of the printed run times", 3.0, 3.86 / 1.32, 0.01)
            .unless(Verdict::PublishedWrong, "3.86 / 1.32 = 2.92."),
    );
}
