//! Tinetti's chapter 3 by hand and by simulation: relative powers, left-over rows, the example of 3.2.3,
//! steps, memory of messages, and the block-cyclic distribution beside it on a bus.

use super::broadcast_time::BroadcastTime;
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, Verdict, short};
use apportion::error::Result;
use apportion::geometry::Rank;
use apportion::plan::shapes::{Grid, LayoutMethod, Method, MethodOptions, Rows};
use apportion::plan::shares::LeftOver;
use apportion::plan::{Layout, Metrics, Shape, repeat_block};
use apportion::platform::{Load, Network, Topology};
use apportion::random::Random;
use apportion::schedule::{
    Application, DataPath, Flow, MatmulSchedule, ScheduleOptions, Step, predicted_memory,
};
use apportion::simulate::{
    Action, CostModel, Deployment, Fluid, Host, Then, simulate, simulate_actions, simulate_fluid,
};

pub struct Chapter;

impl Experiment for Chapter {
    fn about(&self) -> About {
        About {
            ids: &["tinetti-3.2", "tinetti-3.13", "tinetti-3.14"],
            source: "Tinetti, 3.1-3.4",
            shows: "powers, left-over rows, the example of 3.2.3, steps, memory, block-cyclic on a bus",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        message(&mut report)?;
        broadcasts(&mut report)?;
        example(&mut report);
        shares(&mut report)?;
        steps(&mut report)?;
        memory(&mut report)?;
        block_cyclic(&mut report)?;
        Ok(report)
    }
}

fn bus(latency: f64, bandwidth: f64) -> Network {
    let mut network = Network::uniform(latency, bandwidth);
    network.topology = Topology::Bus;
    network
}

/// Ethernet of 10 Mbit/s, bytes a second.
const ETHERNET: f64 = 1.25e6;

/// (3.1): t(n) = alpha + beta n, by the simulator.
fn message(report: &mut Report) -> Result<()> {
    let network = bus(1e-3, ETHERNET);
    let hosts = [Host { speed: 1.0, cores: 1 }; 2];
    let names = ["ws0", "ws1"].map(str::to_owned);
    let on = Deployment { hosts: &hosts, placement: &[0, 1], names: &names, network: &network };
    let mut off = 0.0_f64;
    for bytes in [0.0, 1e3, 1e5, 1e7] {
        let load = Load { horizontal: 0.0, vertical: bytes };
        let mut scripts = [
            vec![Action::Send { to: Rank(1), tag: 0, load, then: Then::Remember }, Action::AwaitAll]
                .into_iter(),
            vec![Action::Receive { from: Rank(0), tag: 0, then: Then::Remember }, Action::AwaitAll]
                .into_iter(),
        ];
        let seconds = simulate_actions(&mut scripts, on, &Fluid::fair(), false)?.trace.seconds();
        off = off.max((seconds / (1e-3 + bytes / ETHERNET) - 1.0).abs());
    }
    report.checks.push(
        Check::new(
            "(3.1): time of a message of n bytes",
            "alpha + beta n",
            format!("within {off:.1e}"),
            off < 1e-9,
        )
        .within("1e-9"),
    );
    Ok(())
}

/// The transfers of a product of order n on equal workstations, in seconds: as broadcasts, or point to point.
fn transfers(layout: &Layout, flow: Flow, block: u64, broadcasts: bool) -> Result<f64> {
    let network = bus(0.0, ETHERNET);
    let rates = vec![1e30; layout.processors()];
    let costs = CostModel { rates: &rates, network: &network, element: 8 };
    let names: Vec<String> = (0..layout.processors()).map(|i| format!("ws{i}")).collect();
    let schedule = MatmulSchedule::new(layout, ScheduleOptions::new(flow, block));
    let rules = Fluid { broadcasts, ..Fluid::fair() };
    Ok(simulate_fluid(&schedule, costs, &names, &rules, false)?.trace.seconds())
}

/// 3.1.1 and 3.2.2: a broadcast on Ethernet is one message; point to point it is one for each receiver.
fn broadcasts(report: &mut Report) -> Result<()> {
    let n = 240;
    let one = (n * n * 8) as f64 / ETHERNET;
    let mut table = Table::new(
        "Seconds in which B travels, n = 240, 10 Mbit/s, over those of one copy of B",
        &["workstations", "broadcasts", "point to point"],
    );
    let (mut once, mut each) = (0.0_f64, 0.0_f64);
    for p in [2_usize, 4, 8, 16] {
        let layout = Rows::default().layout(Shape::new(n, n, n, "3.2.2")?, &vec![1.0; p])?;
        let seconds = [true, false].map(|broadcasts| transfers(&layout, Flow::Broadcast, n, broadcasts));
        let [together, apart] = seconds;
        let (together, apart) = (together? / one, apart? / one);
        table.row([p.to_string(), short(together), short(apart)]);
        once = once.max((together - 1.0).abs());
        each = each.max((apart / (p as f64 - 1.0) - 1.0).abs());
    }
    report.tables.push(table);
    report.checks.push(
        Check::new(
            "Section 3.2.2: a broadcast takes as long for any number of workstations",
            "independent of the receivers",
            format!("within {once:.1e}, 2 to 16 workstations"),
            once < 1e-6,
        )
        .within("1e-6"),
    );
    report.checks.push(
        Check::new(
            "Section 3.2.2: as point-to-point messages its time is multiplied by the number of receivers",
            "P - 1 times",
            format!("within {each:.1e}"),
            each < 1e-6,
        )
        .within("1e-6"),
    );
    Ok(())
}

/// 3.2.3: a product here, or its result from another computer.
fn example(report: &mut Report) {
    let operations = |n: f64| 2.0 * n.powi(3) - n * n;
    let (power, single) = (300e6, 4.0);
    let compute = |n: f64| operations(n) / power;
    let transfer = |n: f64| n * n * single / ETHERNET;
    report.checks.push(Check::near(
        "Section 3.2.3: operations of a 100 x 100 product",
        1_990_000.0,
        operations(100.0),
        1e-12,
    ));
    report.checks.push(Check::new(
        "Section 3.2.3: ms of a 100 x 100 product at 300 Mflop/s or more",
        "less than 6.7",
        short(1e3 * compute(100.0)),
        compute(100.0) < 6.7e-3,
    ));
    report.checks.push(Check::near(
        "Section 3.2.3: ms of a 100 x 100 matrix at 10 Mbit/s",
        32.0,
        1e3 * transfer(100.0),
        1e-9,
    ));
    report.checks.push(Check::near(
        "Section 3.2.3: times as fast here as from another",
        4.7,
        transfer(100.0) / compute(100.0),
        0.03,
    ));
    report.checks.push(Check::near(
        "Section 3.2.3: s of the second product, 1000 x 1000",
        6.7,
        compute(1000.0),
        0.01,
    ));
    report.checks.push(
        Check::near("Section 3.2.3: s of the second matrix", 3.32, transfer(1000.0), 1e-3).unless(
            Verdict::PublishedWrong,
            "1000^2 x 4 B / 1.25 MB/s = 3.2 s; a hundred times the 32 ms above.",
        ),
    );
    let named = [compute(100.0), compute(1000.0)].map(|seconds| (seconds / 6.7 - 1.0).abs() < 0.01);
    report.checks.push(
        Check::new(
            "Section 3.2.3: order of the matrices of the second example, of 6.7 s",
            "100 x 100",
            if named[1] { "1000 x 1000" } else { "another" },
            named[0],
        )
        .unless(
            Verdict::PublishedWrong,
            "(2 x 1000^3 - 1000^2) / 300 Mflop/s = 6.66 s: a tenfold order, a thousandfold time.",
        ),
    );
}

/// (3.2) to (3.4), the left-over rows of 3.4.1, and (3.5).
fn shares(report: &mut Report) -> Result<()> {
    let mflops = [300.0, 400.0, 100.0, 200.0];
    let total: f64 = mflops.iter().sum();
    let pw = mflops.map(|m| m / total);
    let relative = mflops.map(|m| m / 400.0);
    let layout = Rows::default().layout(Shape::new(1000, 1000, 1000, "3.2.4")?, &mflops)?;
    let rows: Vec<u64> = layout.shares().iter().map(|share| share / 1000).collect();
    let by_relative = Rows::default().layout(Shape::new(1000, 1000, 1000, "3.2.4")?, &relative)? == layout;
    let by_hand = pw.map(|pw| (pw * 1000.0).round() as u64);
    report.checks.push(Check::new(
        "(3.2), (3.3): rows of n = 1,000 for 300, 400, 100, 200 Mflop/s, by relative and by normalised \
         powers",
        "300, 400, 100, 200",
        format!("{rows:?}").trim_matches(['[', ']']),
        rows == by_hand && by_relative,
    ));
    let sum: f64 = pw.iter().sum();
    report.checks.push(Check::near("(3.4): sum of the normalised powers", 1.0, sum, 1e-15));
    let operations: f64 = rows.iter().map(|&rows| rows as f64 * (2.0 * 1000.0 - 1.0) * 1000.0).sum();
    report.checks.push(Check::near(
        "Section 3.2.4: operations of all, pw_i (2 n^3 - n^2) each",
        2e9 - 1e6,
        operations,
        1e-12,
    ));
    // floor(pw_i n), and one of the rows left over to each of the first.
    let (mut differ, mut unbalanced) = (0, 0.0_f64);
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let n = 1000 + (random.unit() * 1000.0) as u64;
        let speeds: Vec<f64> = (0..8).map(|_| (100.0 + 900.0 * random.unit()).round()).collect();
        let total: f64 = speeds.iter().sum();
        let exact: Vec<f64> = speeds.iter().map(|s| n as f64 * s / total).collect();
        let mut by_hand: Vec<u64> = exact.iter().map(|x| (x + 1e-9).floor() as u64).collect();
        let left = (n - by_hand.iter().sum::<u64>()) as usize;
        by_hand.iter_mut().take(left).for_each(|rows| *rows += 1);
        let here = LeftOver::First.shares(n, &speeds);
        differ += usize::from(here != by_hand);
        for (rows, exact) in here.iter().zip(&exact) {
            unbalanced = unbalanced.max(*rows as f64 / exact - 1.0);
        }
    }
    report.checks.push(Check::new(
        "Section 3.4.1: left-over rows go to ws_0, ws_1, …, in 200 cases of 8 workstations",
        "floor(pw_i n), and one each",
        format!("{differ} differ"),
        differ == 0,
    ));
    report.checks.push(
        Check::new(
            "Section 3.4.1: the added row is irrelevant for the balance, P = 8, n = 1,000 to 2,000",
            "irrelevant",
            format!("at most {:.1} % more than its part", 100.0 * unbalanced),
            unbalanced < 0.1,
        )
        .within("a row of the smallest part of ten or more"),
    );
    let shape = Shape::new(1000, 1000, 1000, "3.4.1")?;
    let options =
        MethodOptions { groups: Some((0..4).map(|i| vec![i]).collect()), ..MethodOptions::default() };
    let columns = Method::ColumnGroups.layout(shape, &mflops, &options)?;
    let moved = |layout: &Layout| Metrics::of_layout(layout, 1.0).volume;
    report.checks.push(Check::new(
        "Figure 3.4: assignment by rows is equivalent to that by columns: elements moved",
        moved(&layout).unwrap_or(0),
        moved(&columns).unwrap_or(0),
        moved(&layout) == moved(&columns),
    ));
    Ok(())
}

/// Figures 3.10 to 3.13: steps of four workstations, and (3.6), (3.11) where a broadcast takes as long as a
/// computation.
fn steps(report: &mut Report) -> Result<()> {
    let (n, p) = (400, 4_usize);
    let layout = Rows::default().layout(Shape::new(n, n, n, "3.4.2")?, &vec![1.0; p])?;
    let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::Broadcast, n));
    let count = |of: &dyn Fn(&Step<_, _>) -> bool| -> Vec<usize> {
        (0..p).map(|rank| schedule.steps(Rank(rank)).filter(|step| of(step)).count()).collect()
    };
    let sends = count(&|step| matches!(step, Step::Broadcast(_) | Step::Send(_)));
    let receives = count(&|step| matches!(step, Step::WaitReceive { .. }));
    let computes = count(&|step| matches!(step, Step::Compute(_)));
    report.checks.push(Check::new(
        "Figure 3.10: each of four workstations sends, receives, computes",
        "1, 3, 4 times",
        format!("{}, {}, {} times", sends[0], receives[0], computes[0]),
        sends == [1; 4] && receives == [3; 4] && computes == [4; 4],
    ));
    // A bus and rates on which t_bcast = t_comp = 1 s. The simulator counts 2 k operations an element.
    let network = bus(0.0, (n * n / p as u64 * 8) as f64);
    let rates = vec![(n * n * n) as f64 / (p * p) as f64; p];
    let costs = CostModel { rates: &rates, network: &network, element: 8 };
    let seconds = |look_ahead: u64| {
        let order = ScheduleOptions::new(Flow::Broadcast, n).with_look_ahead(look_ahead);
        Ok::<f64, apportion::Error>(simulate(&MatmulSchedule::new(&layout, order), costs)?.seconds())
    };
    report.checks.push(Check::near(
        "Figure 3.11, (3.6): sequential steps of four workstations, 2 P",
        8.0,
        seconds(0)?,
        1e-9,
    ));
    report.checks.push(Check::near("Figures 3.12, 3.13: steps with overlap, P + 1", 5.0, seconds(1)?, 1e-9));
    // (3.7) to (3.11) by hand: n = 100, 40, 30, 20 and 10 Mflop/s, 2 ms and 4 us an element.
    let shape = Shape::new(100, 100, 100, "3.4.2")?;
    let model = BroadcastTime::new(shape, 2e-3, 4e-6, &[40e6, 30e6, 20e6, 10e6], 1);
    for (what, by_hand, here) in [
        ("(3.7): t_bcast of n = 100, P = 4, alpha 2 ms, beta 4 us an element, ms", 12.0, model.broadcast),
        ("(3.8), (3.9): t_comp of the same, 40 + 30 + 20 + 10 Mflop/s, ms", 4.975, model.compute),
        ("(3.10): t_par of the same, ms", 67.9, model.sequential()),
        ("(3.11): t_par of the same with overlap, ms", 52.975, model.overlapped()),
    ] {
        report.checks.push(Check::near(what, by_hand, 1e3 * here, 1e-9));
    }
    let worst = BroadcastTime::new(shape, 0.0, 4e-6, &[40e6, 30e6, 20e6, 10e6], 1);
    let never = worst.overlapped() <= worst.sequential() && model.overlapped() <= model.sequential();
    report.checks.push(Check::new(
        "Section 3.4.3: overlap never takes longer than the steps in sequence",
        "at worst sequential",
        if never { "shorter" } else { "longer" },
        never,
    ));
    let balanced: Vec<u64> =
        simulate(&schedule, costs)?.lanes.iter().map(|lane| lane.sent.iter().sum()).collect();
    let same = balanced.iter().all(|sent| *sent == balanced[0]);
    report.checks.push(Check::new(
        "Section 3.4.5: all workstations send the same amount of data",
        "equal",
        if same { format!("{} elements each", balanced[0]) } else { format!("{balanced:?}") },
        same,
    ));
    Ok(())
}

/// 3.4.4: memory of messages in ten blocks, by the library's formula.
fn memory(report: &mut Report) -> Result<()> {
    let n = 1000;
    let layout = Rows::default().layout(Shape::new(n, n, n, "3.4.4")?, &[4.0, 3.0, 2.0, 1.0])?;
    let held = |blocks: u64, path: DataPath| {
        predicted_memory(&layout, ScheduleOptions::new(Flow::Broadcast, n / blocks), 8, path)
    };
    let own = held(1, DataPath::InPlace);
    let messages = |blocks: u64| held(blocks, DataPath::Copied)[0] - own[0];
    report.checks.push(Check::near(
        "Section 3.4.4: memory of messages in ten parts over that in one",
        0.1,
        messages(10) as f64 / messages(1) as f64,
        1e-9,
    ));
    let [whole, parts] = [1, 10].map(|blocks| {
        let shape = Shape::new(n, n, n, "3.4.4");
        shape.map(|shape| BroadcastTime::new(shape, 0.0, 8e-7, &[4e8, 3e8, 2e8, 1e8], blocks).broadcast)
    });
    report.checks.push(Check::near(
        "Section 3.4.4: the initial time of sending the first data, in ten parts over in one",
        0.1,
        parts? / whole?,
        1e-9,
    ));
    report.note(
        "`matmul --flow broadcast --block K` sends in blocks of K rows, and its report has predicted and \
         held bytes; a test of the command compares them.",
    );
    Ok(())
}

/// Figure 3.14 and 3.4.6.
fn block_cyclic(report: &mut Report) -> Result<()> {
    // 7 x 8 elements in blocks of 1 x 1 on a mesh of 3 x 2.
    let mesh = Grid::default();
    let block = mesh.layout(Shape::new(3, 1, 2, "mesh")?, &[1.0; 6])?;
    let layout = repeat_block(Shape::new(7, 8, 8, "Figure 3.14")?, &block)?;
    let mut by_hand = [0_u64; 6];
    let mut same = true;
    for (row, col) in (0..7_u64).flat_map(|row| (0..8_u64).map(move |col| (row, col))) {
        let holds = |own: &Vec<apportion::geometry::Rect>| {
            own.iter()
                .any(|r| r.rows.start <= row && row < r.rows.end && r.cols.start <= col && col < r.cols.end)
        };
        let owner = layout.rects_by_owner().iter().position(holds);
        let first = block
            .rects_by_owner()
            .iter()
            .position(|own| own.iter().any(|r| r.rows.start == row % 3 && r.cols.start == col % 2));
        same &= owner == first;
        by_hand[first.unwrap_or(0)] += 1;
    }
    let mut counts = layout.shares();
    counts.sort_unstable();
    report.checks.push(Check::new(
        "Figure 3.14: 7 x 8 elements on a mesh of 3 x 2: owner of element (i, j)",
        "(i mod 3, j mod 2)",
        format!("{} to {} elements each", counts[0], counts[5]),
        same && layout.shares() == by_hand,
    ));
    // Equal workstations on a bus: strips with broadcasts of B, and the block-cyclic distribution.
    let n = 240;
    let shape = Shape::new(n, n, n, "3.4.6")?;
    let mut table = Table::new(
        "Transfers on a bus of 10 Mbit/s, n = 240, over those of one matrix; block-cyclic in blocks of 20",
        &["workstations", "strips", "block-cyclic", "its largest load over ideal"],
    );
    let (mut more, mut balance) = (f64::INFINITY, 0.0_f64);
    let one = (n * n * 8) as f64 / ETHERNET;
    for (rows, cols) in [(2_u64, 2_u64), (2, 3), (3, 4), (4, 4)] {
        let p = (rows * cols) as usize;
        let strips = Rows::default().layout(shape, &vec![1.0; p])?;
        let block = Grid::default().layout(Shape::new(20 * rows, n, 20 * cols, "block")?, &vec![1.0; p])?;
        let cyclic = repeat_block(shape, &block)?;
        let [line, grid] = [
            transfers(&strips, Flow::Broadcast, n, true)? / one,
            transfers(&cyclic, Flow::Broadcast, 20, true)? / one,
        ];
        let most = cyclic.shares().into_iter().max().unwrap_or(0) as f64 * p as f64 / (n * n) as f64;
        balance = balance.max(most - 1.0);
        more = more.min(grid / line);
        table.row([p.to_string(), short(line), short(grid), format!("{most:.3}")]);
    }
    report.tables.push(table);
    report.checks.push(Check::new(
        "Section 3.4.6: on a bus a two-dimensional distribution is penalised by the serialisation of its \
         messages",
        "penalised",
        format!("{more:.2} times as long or more"),
        more > 1.0,
    ));
    report.checks.push(
        Check::new(
            "Section 3.4.6: the load balance of the block-cyclic distribution is trivial",
            "balanced",
            format!("within {:.1} %", 100.0 * balance),
            balance < 0.15,
        )
        .within("15 %, one block"),
    );
    Ok(())
}
