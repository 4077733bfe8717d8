//! A custom application: heat on a plate by Jacobi's method, on column strips of unequal width. The library
//! runs and simulates it from this description: the pieces that travel, the computations, and their order.
//!
//! `cargo run --example own_application`, or under `mpirun -n 3`.

use apportion::plan::shares::proportional;
use apportion::platform::{Direction, Network, Platform};
use apportion::run::{Monitor, MpiLaunch, Session, World, redistribute, run};
use apportion::schedule::{Application, Executable, Message, Piece, Step, StepOf, Work};
use apportion::simulate::{CostModel, simulate};
use apportion::{Error, Rank, Rect, Result, Span};

const ROWS: usize = 60;
const COLS: u64 = 90;
const SWEEPS: u64 = 50;

/// The plate's inner columns by processor; its edges are kept at fixed temperatures.
struct Plate {
    strips: Vec<Span>,
}

/// One column of a strip, which the neighbour needs: one element of each row of the strip.
#[derive(Debug, Clone)]
struct Column(u64);

impl Piece for Column {
    fn elements(&self) -> u64 {
        ROWS as u64
    }

    fn direction(&self) -> Direction {
        Direction::Horizontal
    }
}

/// Columns to compute in a sweep: first those that need no neighbour, then the others, which end it.
#[derive(Debug, Clone)]
struct Update {
    columns: Vec<u64>,
    ends_sweep: bool,
}

impl Work for Update {
    fn amount(&self) -> f64 {
        (self.columns.len() * ROWS) as f64
    }
}

impl Plate {
    /// The neighbours of a strip: the processor, the column that it needs of this strip, and the column that
    /// this strip needs of it.
    fn neighbours(&self, Rank(rank): Rank) -> Vec<(Rank, u64, u64)> {
        let Span { start, end } = self.strips[rank];
        let left = (rank > 0).then(|| (Rank(rank - 1), start, start - 1));
        let right = (rank + 1 < self.strips.len()).then(|| (Rank(rank + 1), end - 1, end));
        left.into_iter().chain(right).collect()
    }
}

impl Application for Plate {
    type Piece = Column;
    type Work = Update;

    fn processors(&self) -> usize {
        self.strips.len()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        let (Span { start, end }, neighbours) = (self.strips[rank.0], self.neighbours(rank));
        let (borders, inside): (Vec<u64>, Vec<u64>) = (start..end).partition(|&c| c == start || c + 1 == end);
        let message = |from, to, tag, column| Message { from, to, tag, pieces: vec![Column(column)] };
        Box::new((0..SWEEPS).flat_map(move |tag| {
            let posts =
                neighbours.iter().map(|&(at, _, theirs)| Step::PostReceive(message(at, rank, tag, theirs)));
            let sends = neighbours.iter().map(|&(to, mine, _)| Step::Send(message(rank, to, tag, mine)));
            let waits = neighbours.iter().map(|&(from, ..)| Step::WaitReceive { from, tag });
            // The inside is computed while the columns travel.
            let mut steps: Vec<StepOf<Self>> = posts.chain(sends).collect();
            steps.push(Step::Compute(Update { columns: inside.clone(), ends_sweep: false }));
            steps.extend(waits);
            steps.push(Step::Compute(Update { columns: borders.clone(), ends_sweep: true }));
            steps
        }))
    }

    fn overlaps(&self) -> bool {
        true
    }
}

/// One processor's columns and one more on either side, row by row, before and after a sweep.
struct Strip {
    /// The plate's column that is the first one here.
    first: u64,
    width: usize,
    now: Vec<f64>,
    next: Vec<f64>,
}

impl Strip {
    fn new(strip: Span) -> Self {
        let (first, width) = (strip.start - 1, strip.len() as usize + 2);
        // 100 degrees above, 20 at the left edge, 0 elsewhere.
        let start = |at: usize| {
            if at < width { 100.0 } else { f64::from(at.is_multiple_of(width) && first == 0) * 20.0 }
        };
        let now: Vec<f64> = (0..(ROWS + 2) * width).map(start).collect();
        Self { first, width, next: now.clone(), now }
    }

    /// The position of a column's element in each row.
    fn column(&self, column: u64) -> impl Iterator<Item = usize> + use<> {
        let (width, first) = (self.width, (column - self.first) as usize);
        (1..=ROWS).map(move |row| row * width + first)
    }

    fn update(&mut self, update: &Update) {
        for &column in &update.columns {
            for at in self.column(column) {
                let (now, width) = (&self.now, self.width);
                self.next[at] = 0.25 * (now[at - width] + now[at + width] + now[at - 1] + now[at + 1]);
            }
        }
        if update.ends_sweep {
            std::mem::swap(&mut self.now, &mut self.next);
        }
    }

    /// The plate without its edges and the neighbours' columns.
    fn inner(&self) -> (Rect, Vec<f64>) {
        let rows = self.now.chunks_exact(self.width).skip(1).take(ROWS);
        let elements = rows.flat_map(|row| &row[1..self.width - 1]).copied().collect();
        let columns = Span::new(self.first + 1, self.first + self.width as u64 - 1);
        (Rect::new(Span::new(0, ROWS as u64), columns), elements)
    }
}

impl Executable for Plate {
    type Element = f64;
    type Local<'a> = Strip;

    fn hold(&self, rank: Rank) -> Strip {
        Strip::new(self.strips[rank.0])
    }

    fn pack(&self, strip: &mut Strip, piece: &Column, out: &mut [f64]) {
        strip.column(piece.0).zip(out).for_each(|(at, x)| *x = strip.now[at]);
    }

    fn unpack(&self, strip: &mut Strip, piece: &Column, elements: &[f64]) {
        strip.column(piece.0).zip(elements).for_each(|(at, x)| strip.now[at] = *x);
    }

    fn compute(&self, strip: &mut Strip, update: &Update, _threads: usize) -> f64 {
        strip.update(update);
        0.0
    }

    fn peak_bytes(&self, strip: &Strip) -> u64 {
        8 * (strip.now.len() + strip.next.len()) as u64
    }
}

/// Simulates and runs the plate on processors of these speeds; rank 0 checks and prints the result.
fn solve(world: &World, monitor: &Monitor, speeds: &[f64]) -> Result<()> {
    let mut end = 1;
    let mut strip = |width| {
        end += width;
        Span::new(end - width, end)
    };
    let plate = Plate { strips: proportional(COLS, speeds).into_iter().map(&mut strip).collect() };
    let ranks = || (0..speeds.len()).map(Rank);

    let network = Network::uniform(5e-6, 1e9);
    let rates: Vec<f64> = speeds.iter().map(|speed| speed * 1e8).collect();
    let forecast = simulate(&plate, CostModel { rates: &rates, network: &network, element: 8 })?;

    let platform = Platform::from_speeds(speeds)?;
    let session = Session::new(world, &platform, monitor, ranks().map(|rank| plate.work(rank)).sum());
    let output = run(&plate, &session)?;

    // The three counts: by hand, over the steps, while running.
    let by_hand = 2 * (speeds.len() as u64 - 1) * ROWS as u64 * SWEEPS;
    let sent = |step: StepOf<Plate>| step.sent().iter().map(Message::elements).sum::<u64>();
    let by_steps: u64 = ranks().flat_map(|rank| plate.steps(rank)).map(sent).sum();
    let received: u64 = output.lanes.iter().flat_map(|lane| &lane.received).sum();
    let counted = world.all_reduce(&[received], |x, y| x + y)?[0];

    let mut serial = Strip::new(Span::new(1, COLS + 1));
    for _ in 0..SWEEPS {
        serial.update(&Update { columns: (1..=COLS).collect(), ends_sweep: true });
    }
    let (whole, expected) = serial.inner();
    let wanted = if world.rank() == 0 { vec![whole] } else { Vec::new() };
    let found = redistribute(world, &output.locals.iter().map(Strip::inner).collect(), &wanted)?;
    if world.rank() > 0 {
        return Ok(());
    }
    let same = found[0].1 == expected;
    println!(
        "{} ranks, strips of {:?} columns",
        world.size(),
        plate.strips.iter().map(|s| s.len()).collect::<Vec<_>>()
    );
    println!("  forecast {:.3} ms at the speeds given", 1e3 * forecast.seconds());
    println!("  elements moved: {by_hand} by hand, {by_steps} over the steps, {counted} while running");
    println!("  the plate is {} the serial one", if same { "bit for bit" } else { "NOT" });
    if same && by_hand == by_steps && by_steps == counted {
        return Ok(());
    }
    Err(Error::WrongResult { what: "the plate or its counts differ".into() })
}

fn main() -> Result<()> {
    let monitor = Monitor::new();
    if MpiLaunch::detect().is_some() {
        let world = World::mpi(&monitor)?;
        let speeds: Vec<f64> = (0..world.size()).map(|rank| 1.0 + rank as f64).collect();
        if let Err(error) = solve(&world, &monitor, &speeds) {
            eprintln!("{error}");
            world.abort(error.exit_code());
        }
        world.finalize();
        return Ok(());
    }
    let speeds = [4.0, 2.0, 2.0, 1.0];
    solve(&World::solo(&monitor), &monitor, &speeds)?;
    World::threads(speeds.len(), &monitor, |world| solve(world, &monitor, &speeds))?;
    Ok(())
}

#[test]
fn the_plate_is_the_serial_one() {
    main().expect("the counts agree and the plate is right");
}
