//! Programs are small scripts; no test depends on how fast they are.

use super::*;
use crate::measure::SecondsFrom;
use crate::run::Monitor;
use std::path::Path;
use std::sync::Mutex;
use tempfile::TempDir;

/// Prints each of its units on a line.
const COUNT: &str = "i={from}; while [ $i -lt {to} ]; do echo $i; i=$((i+1)); done";

#[derive(Default)]
struct Heard {
    text: Mutex<String>,
    lines: Mutex<Vec<String>>,
    notes: Mutex<Vec<String>>,
}

impl PieceObserver for Heard {
    fn line(&self, processor: &str, line: &str) {
        self.lines.lock().unwrap().push(format!("{processor}: {line}"));
    }

    fn text(&self, text: &[u8]) -> Result<()> {
        self.text.lock().unwrap().push_str(std::str::from_utf8(text).unwrap());
        Ok(())
    }

    fn note(&self, note: &str) {
        self.notes.lock().unwrap().push(note.to_owned());
    }
}

impl Heard {
    fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    fn numbers(&self) -> Vec<u64> {
        self.text().lines().map(|line| line.parse().unwrap()).collect()
    }
}

fn platform(processors: usize) -> Platform {
    Platform::from_speeds(&vec![1.0; processors]).unwrap()
}

fn job(units: u64) -> UnitsJob {
    UnitsJob { units, ..UnitsJob::default() }
}

fn shell(text: &str) -> UserCommand {
    UserCommand::of_shell(text, SecondsFrom::Wall).unwrap()
}

/// Runs a job in a single process.
fn run(
    job: &UnitsJob,
    platform: &Platform,
    command: &UserCommand,
    log: Option<JobLog>,
) -> (UnitsReport, Arc<Heard>) {
    let heard = Arc::new(Heard::default());
    let world = World::solo(&Monitor::new());
    let report = run_units_once(job, platform, command, log, heard.clone(), &world).unwrap().unwrap();
    (report, heard)
}

/// The lines of a joblog.
fn lines(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn log(directory: &TempDir) -> Option<JobLog> {
    Some(JobLog::resume(directory.path().join("log"), 1000).unwrap())
}

#[test]
fn every_unit_runs_once_and_the_text_has_their_order() {
    for text_at_ends in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let command = shell(&format!("{COUNT}; echo {{piece}} $APPORTION_PIECE >&2"));
        let job = UnitsJob { text_at_ends, ..job(500) };
        let (report, heard) = run(&job, &platform(3), &command, log(&directory));
        let mut numbers = heard.numbers();
        if text_at_ends {
            numbers.sort_unstable();
        }
        assert_eq!(numbers, (0..500).collect::<Vec<u64>>());
        assert_eq!((report.done, report.units, report.failed.len()), (500, 500, 0));
        let pieces: u64 = report.processors.iter().map(|processor| processor.pieces).sum();
        assert!(pieces == report.pieces && pieces >= 3, "{report:?}");
        let mut logged: Vec<Vec<String>> = lines(&directory.path().join("log"));
        assert_eq!(logged.len() as u64, pieces);
        logged.sort_by_key(|line| line[1].parse::<u64>().unwrap());
        assert!(logged.windows(2).all(|pair| pair[0][2] == pair[1][1]), "{logged:?}");
        assert!(logged.iter().all(|line| line[6] == "0" && line[7] == "0"));
        let heard = heard.lines.lock().unwrap();
        for line in &logged {
            assert!(heard.contains(&format!("{}: {1} {1}", line[3], line[0])), "{heard:?}");
        }
    }
}

/// One queue, on rank 0, for all ranks: texts, joblog and report are there.
#[test]
fn ranks_share_a_queue() {
    let directory = tempfile::tempdir().unwrap();
    // Rank 0 waits until another has run a piece.
    let other = directory.path().join("other");
    let wait = "if [ {rank} = 0 ]; then until [ -e $f ]; do sleep 0.01; done; else : >$f; fi";
    let text =
        format!("f='{}'; {wait}; {COUNT}; echo {{rank}} >&2; test {{from}} != 0 || exit 4", other.display());
    let command = shell(&text);
    let heard = Arc::new(Heard::default());
    let run = |halt| {
        World::threads(3, &Monitor::new(), |world| {
            let log = if world.rank() == 0 { log(&directory) } else { None };
            let job = UnitsJob { halt, ..job(200) };
            run_units_once(&job, &platform(3), &command, log, heard.clone(), world)
        })
    };
    let all = run(Halt::Never).unwrap();
    let report = all[0].as_ref().unwrap();
    assert!(all[1].is_none() && all[2].is_none());
    assert_eq!((report.failed.len(), report.failed[0].error.exit_code()), (1, 1));
    let numbers = heard.numbers();
    assert_eq!(numbers, (200 - report.done..200).collect::<Vec<u64>>(), "all but the piece of unit 0");
    assert!(report.processors.iter().filter(|processor| processor.pieces > 0).count() > 1, "{report:?}");
    let logged = lines(&directory.path().join("log"));
    assert_eq!(logged.iter().filter(|line| line[6] == "4").count(), 1);
    for line in logged {
        // Each rank ran the pieces of its own processor.
        assert!(heard.lines.lock().unwrap().contains(&format!("{}: {}", line[3], &line[3][1..])));
    }
    // The failure of the piece that is left ends everything.
    let all = run(Halt::Now).unwrap();
    assert_eq!(all[0].as_ref().unwrap().failed.len(), 1);
}

/// What fails ends the run at once, soon or never; a later run does what is left, and nothing twice.
#[test]
fn a_job_is_resumed_after_failures() {
    for halt in [Halt::Now, Halt::Soon, Halt::Never] {
        let directory = tempfile::tempdir().unwrap();
        let failing =
            shell(&format!("test {{from}} -le 77 -a 77 -lt {{to}} && {{ echo bad; exit 3; }}; {COUNT}"));
        let job = UnitsJob { halt, ..job(300) };
        let (report, first) = run(&job, &platform(2), &failing, log(&directory));
        assert!(report.failed.len() == 1 && report.done < 300, "{halt:?} {report:?}");
        assert!(report.failed[0].error.to_string().contains("exit status: 3"), "{report:?}");
        assert!(first.lines.lock().unwrap().iter().any(|line| line.ends_with(": bad")), "it is no result");
        if halt == Halt::Never {
            let failed =
                lines(&directory.path().join("log")).into_iter().find(|line| line[6] == "3").unwrap();
            let units = failed[2].parse::<u64>().unwrap() - failed[1].parse::<u64>().unwrap();
            assert_eq!((report.done, report.failed[0].piece), (300 - units, failed[0].parse().unwrap()));
        }
        let continued = log(&directory);
        let next = continued.as_ref().unwrap().next_piece();
        let (report, second) = run(&job, &platform(2), &shell(COUNT), continued);
        assert!(report.failed.is_empty() && report.done == report.units);
        let mut both = [first.numbers(), second.numbers()].concat();
        both.sort_unstable();
        assert_eq!(both, (0..300).collect::<Vec<u64>>(), "{halt:?}");
        let numbers: Vec<u64> =
            lines(&directory.path().join("log")).iter().map(|line| line[0].parse().unwrap()).collect();
        assert!(numbers.iter().any(|number| *number >= next), "numbers go on");
        let (report, third) = run(&job, &platform(2), &shell(COUNT), log(&directory));
        assert_eq!((report.units, report.pieces, third.text()), (0, 0, String::new()));
    }
}

#[test]
fn units_that_failed_run_again() {
    let directory = tempfile::tempdir().unwrap();
    let once = directory.path().join("once");
    let command =
        shell(&format!("mkdir '{}' 2>/dev/null && {{ echo half; exit 9; }}; {COUNT}", once.display()));
    let job = UnitsJob { retries: 1, ..job(100) };
    let (report, heard) = run(&job, &platform(2), &command, log(&directory));
    assert_eq!((report.done, report.failed.len(), heard.numbers().len()), (100, 0, 100));
    assert!(heard.notes.lock().unwrap()[0].contains("runs again"));
    let exits: Vec<String> =
        lines(&directory.path().join("log")).into_iter().map(|line| line[6].clone()).collect();
    assert_eq!(exits.iter().filter(|exit| *exit == "9").count(), 1);
    // Twice is once too often.
    let job = UnitsJob { retries: 2, ..job };
    let (report, _) =
        run(&job, &platform(1), &shell("kill -9 $$ # {size}"), log(&tempfile::tempdir().unwrap()));
    assert_eq!((report.done, report.failed.len(), report.pieces), (0, 1, 3));
}

/// A launcher or a program that is not there is a matter of its processor, and others do its work.
#[test]
fn a_processor_that_cannot_be_reached_is_done_without() {
    let mut both = platform(2);
    both.processors[0].start = vec!["./no-launcher".into(), "beta".into()];
    let (report, heard) = run(&job(50), &both, &shell(COUNT), None);
    assert_eq!((report.done, report.processors[1].units, report.lost.len()), (50, 50, 1));
    assert!(heard.notes.lock().unwrap()[0].starts_with("goes on without p0: "));
    let absent = UserCommand::parse("./no-program {from} {to}", SecondsFrom::Wall).unwrap();
    let (report, _) = run(&job(50), &platform(2), &absent, None);
    assert_eq!((report.done, report.lost.len(), report.lost[0].exit_code()), (0, 2, 2));
}

/// Times that programs tell, on processors of which the second takes three times as long.
#[test]
fn told_times_make_a_plan() {
    // A tenth of the told time passes, so that pieces end in the order of their told times on a busy machine too.
    let tell = "BEGIN { t = n * (r == 0 ? 1 : 3) / 1000; system(\"sleep \" t / 10); print t }";
    let text = format!("echo said >&2; echo ignored; exec awk -v n={{size}} -v r={{rank}} '{tell}'");
    let command = UserCommand::of_shell(&text, SecondsFrom::Stdout).unwrap();
    let job = UnitsJob { measure_alone: true, ..job(8000) };
    let (report, heard) = run(&job, &platform(2), &command, None);
    let alone = report.alone.as_ref().unwrap();
    assert_eq!((alone.processor.as_str(), alone.measured), ("p0", true));
    assert!((alone.time.seconds - 8.0).abs() < 1e-9, "{alone:?}");
    let even = report.even.unwrap().seconds;
    assert!((even - 12.0).abs() < 0.5, "{even}");
    let plan = report.plan.as_ref().unwrap();
    assert!((plan.shares[0] as f64 - 6000.0).abs() < 60.0, "{:?}", plan.shares);
    let forecast = plan.forecast.as_ref().unwrap().seconds;
    assert!((forecast - 6.0).abs() < 0.3, "{forecast}: {:?}", plan.lines);
    assert_eq!(plan.baselines.as_ref().unwrap().fastest_alone.as_ref().unwrap().seconds, alone.time.seconds);
    assert_eq!(&Plan::parse(&plan.to_json(), "plan").unwrap(), plan);
    let texts = heard.text().matches("ignored").count() as u64;
    assert_eq!(texts, report.pieces, "the run alone prints nothing");
    // The plan is followed.
    let planned = UnitsJob::of_plan(plan, &platform(2)).unwrap().unwrap();
    assert_eq!(planned.units, 8000);
    let (again, _) = run(&planned, &platform(2), &command, None);
    assert_eq!(again.done, 8000);
    let other = Plan::of_units("even", platform(2).names(), vec![1, 1], 1.0);
    assert!(UnitsJob::of_plan(&other, &platform(2)).unwrap().is_none());
}

/// A stop ends all programs, and the joblog has a line for each.
#[test]
fn a_stopped_run_can_be_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "test {{from}} -lt 50 || {{ touch '{}/'{{piece}}; exec sleep 1000; }}; {COUNT}",
        directory.path().display()
    );
    let monitor = Monitor::new();
    let heard = Arc::new(Heard::default());
    let report = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let (command, world) = (shell(&text), World::solo(&monitor));
            run_units_once(&job(1000), &platform(2), &command, log(&directory), heard.clone(), &world)
        });
        while std::fs::read_dir(directory.path()).unwrap().count() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        monitor.stop();
        run.join().unwrap().unwrap().unwrap()
    });
    assert!(report.done < 1000 && report.failed.is_empty());
    let logged = lines(&directory.path().join("log"));
    let stopped = logged.iter().filter(|line| line[6] == "143" && line[7] == "15").count();
    assert!((1..=2).contains(&stopped), "{logged:?}");
    let (_, rest) = run(&job(1000), &platform(2), &shell(COUNT), log(&directory));
    let mut both = [heard.numbers(), rest.numbers()].concat();
    both.sort_unstable();
    assert_eq!(both, (0..1000).collect::<Vec<u64>>());
}

#[test]
fn the_first_run_that_pays_is_known() {
    let report = |seconds, next, alone| {
        let fastest_alone = Some(FastestAlone { processor: "a".into(), seconds: alone });
        let forecast = Forecast { seconds: next, compute: vec![next; 2], communicate: vec![0.0; 2] };
        let plan = Plan {
            forecast: Some(forecast),
            baselines: Some(Baselines { fastest_alone, even_split: Some(99.0) }),
            ..Plan::of_units("one-pass", vec!["a".into(), "b".into()], vec![1, 1], 1.0)
        };
        let (report, _) = run(&job(1), &platform(1), &shell("true {size}"), None);
        UnitsReport { seconds, plan: Some(plan), ..report }.pays_after_runs()
    };
    assert_eq!(report(9.0, 8.0, 10.0), Some(1));
    assert_eq!(report(12.0, 8.0, 10.0), Some(2), "12 + 8 = 2 x 10");
    assert_eq!(report(15.0, 8.0, 10.0), Some(4), "15 + 3 x 8 < 4 x 10");
    assert_eq!(report(12.0, 11.0, 10.0), None);
}

#[test]
fn gaps_are_what_is_not_done() {
    let (all, begin, end) = (0..9, 0..3, 3..9);
    assert_eq!(gaps(&[], 9), std::slice::from_ref(&all));
    assert_eq!(gaps(&[2..4, 6..9], 9), [0..2, 4..6]);
    assert_eq!(gaps(&[begin], 9), [end]);
    assert!(gaps(&[all], 9).is_empty());
}

#[test]
fn empty_jobs_are_refused() {
    for units in [0, (1 << 53) + 1] {
        let world = World::solo(&Monitor::new());
        let heard = Arc::new(Heard::default());
        let refused = run_units_once(&job(units), &platform(1), &shell(COUNT), None, heard, &world);
        assert_eq!(refused.unwrap_err().exit_code(), 2);
    }
}
