//! The HCL cluster: Table 3.1, the configurations of Figures 3.2 to 3.5 and 5.25 as platform files, and the
//! benchmark of appendix F.

use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, Verdict, short};
use apportion::error::Result;
use apportion::geometry::Rank;
use apportion::platform::{Platform, Speed, parse_platform};

/// Table 3.1, Mflop/s of hcl01 to hcl16.
const TABLE_3_1: [u64; 16] =
    [2171, 2099, 1761, 1787, 175, 1653, 1879, 1635, 3004, 2194, 4580, 1762, 4934, 4096, 2697, 4840];
/// Its total.
const TOTAL: u64 = 42_827;

/// Appendix F: seconds and Gflop/s of N = 18,432, as printed.
const HPL: [(f64, f64); 18] = [
    (412.68, 10.12),
    (460.70, 90.63),
    (243.45, 17.15),
    (317.76, 13.14),
    (268.04, 15.58),
    (207.83, 20.09),
    (176.45, 24.93),
    (221.02, 18.89),
    (176.85, 23.61),
    (322.95, 12.93),
    (339.39, 12.30),
    (254.28, 16.42),
    (315.42, 13.24),
    (220.11, 20.66),
    (289.17, 14.43),
    (177.57, 23.51),
    (23.24, 17.16),
    (188.46, 22.15),
];

/// A configuration: figure, file, and the cluster of each node as the figure draws it.
struct Configuration {
    figure: &'static str,
    file: &'static str,
    clusters: &'static [(&'static str, std::ops::RangeInclusive<usize>)],
}

const CONFIGURATIONS: [Configuration; 5] = [
    Configuration {
        figure: "3.2",
        file: include_str!("../../../../platforms/hcl.toml"),
        clusters: &[("hcl", 1..=16)],
    },
    Configuration {
        figure: "3.3",
        file: include_str!("../../../../platforms/hcl-two-clusters.toml"),
        clusters: &[("switch1", 1..=8), ("switch2", 9..=16)],
    },
    Configuration {
        figure: "3.4",
        file: include_str!("../../../../platforms/hcl-hybrid.toml"),
        clusters: &[("both", 1..=2), ("switch1", 3..=9), ("switch2", 10..=16)],
    },
    Configuration {
        figure: "3.5",
        file: include_str!("../../../../platforms/hcl-hierarchy.toml"),
        clusters: &[("both", 1..=2), ("switch1", 3..=9), ("switch2", 10..=16)],
    },
    Configuration {
        figure: "5.25",
        file: include_str!("../../../../platforms/becker-two-clusters.toml"),
        clusters: &[("cluster1", 3..=5), ("cluster2", 6..=8)],
    },
];

pub struct Cluster;

impl Experiment for Cluster {
    fn about(&self) -> About {
        About {
            ids: &["becker-table-3.1", "becker-3.2", "becker-3.3", "becker-3.4", "becker-3.5", "becker-5.25"],
            source: "Becker 2010, 3 and appendices C and F",
            shows: "the HCL cluster: speeds, four configurations as platform files, and its benchmark",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        speeds(&mut report)?;
        for configuration in &CONFIGURATIONS {
            report.checks.push(configured(configuration)?);
        }
        ports(&mut report)?;
        linpack(&mut report);
        report.note(
            "The platform files have the printed 175 Mflop/s for hcl05, except that of Figure 5.25, where \
             its twins' 1735 is used. The format has no routes through chosen nodes: in Figure 3.5 the nodes \
             on both switches relay what the others send, as one shared link of twice a port's bandwidth.",
        );
        Ok(report)
    }
}

/// Table 3.1, its total, and the platform file.
fn speeds(report: &mut Report) -> Result<()> {
    let sum: u64 = TABLE_3_1.iter().sum();
    report.checks.push(Check::new("Table 3.1: sum of the speeds, Mflop/s", TOTAL, sum, sum == TOTAL).unless(
        Verdict::PublishedWrong,
        "42,827 - 41,267 = 1,560 = 1,735 - 175: hcl05, a twin of hcl03 to hcl08 (1,635 to 1,879), counts \
         1,735 in the total, and its row has lost a digit.",
    ));
    report.checks.push(Check::near(
        "Table 3.1: \"an absolute speed of 42.8 GFlops\", with 1,735 for hcl05",
        42.8,
        (sum + 1560) as f64 / 1e3,
        1e-3,
    ));
    let platform = parse_platform(CONFIGURATIONS[0].file, "hcl.toml")?;
    let here: Vec<u64> = platform
        .processors
        .iter()
        .map(|p| (p.speed.map_or(0.0, Speed::value) / 1e6).round() as u64)
        .collect();
    let same = here == TABLE_3_1;
    let found = if same { "equal" } else { "different" };
    report.checks.push(Check::new("Table 3.1: the platform file's speeds", "as printed", found, same));
    let memory = platform.processors.iter().filter(|p| p.memory == Some(512_000_000)).count();
    report.checks.push(Check::new(
        "Table 3.2: nodes with 512 MB, the others with 1 GB",
        "2 of 16",
        format!("{memory} of {}", platform.len()),
        memory == 2 && platform.len() == 16,
    ));
    Ok(())
}

/// A platform file beside the drawing of a configuration.
fn configured(Configuration { figure, file, clusters }: &Configuration) -> Result<Check> {
    let platform = parse_platform(file, figure)?;
    let members = |name: &str| -> Vec<&str> {
        platform.processors.iter().filter(|p| p.cluster == name).map(|p| p.name.as_str()).collect()
    };
    let text = |name: &str, nodes: &[&str]| {
        format!("{name}: {} to {}", nodes.first().unwrap_or(&""), nodes.last().unwrap_or(&""))
    };
    let (mut published, mut here, mut same) = (Vec::new(), Vec::new(), true);
    for (name, numbers) in *clusters {
        let drawn: Vec<String> = numbers.clone().map(|i| format!("hcl{i:02}")).collect();
        let (drawn, found) = (drawn.iter().map(String::as_str).collect::<Vec<_>>(), members(name));
        published.push(text(name, &drawn));
        here.push(text(name, &found));
        same &= drawn == found;
    }
    let count: usize = clusters.iter().map(|(_, numbers)| numbers.clone().count()).sum();
    same &= count == platform.len();
    let what = format!("Figure {figure}: clusters of the platform file");
    Ok(Check::new(what, published.join(", "), here.join(", "), same))
}

/// What ports and the cable between the switches carry.
fn ports(report: &mut Report) -> Result<()> {
    let between = |platform: &Platform, from: usize, to: usize| {
        platform.network.link(Rank(from), Rank(to)).horizontal * 8.0 / 1e9
    };
    let two = parse_platform(CONFIGURATIONS[1].file, "two clusters")?;
    report.checks.push(Check::near("Section 3.4.3: Gbit/s of a port", 1.0, between(&two, 0, 1), 1e-12));
    report.checks.push(Check::near("Section 3.4.3: Gbit/s of the cable", 1.0, between(&two, 0, 15), 1e-12));
    let slow = two.network.at_bandwidth(8e3 / 8.0).link(Rank(0), Rank(1)).horizontal * 8.0 / 1e3;
    report.checks.push(Check::near("Section 3.4.3: kbit/s of the slowest port", 8.0, slow, 1e-12));
    Ok(())
}

/// Appendix F: the rate that follows from size and time, (2/3 N^3 + 3/2 N^2) / t.
fn linpack(report: &mut Report) {
    let n: f64 = 18_432.0;
    let operations = 2.0 / 3.0 * n.powi(3) + 1.5 * n * n;
    let mut table =
        Table::new("Appendix F: Gflop/s of HPL, N = 18,432", &["seconds", "printed", "from the time", "off"]);
    let mut wrong = Vec::new();
    for (seconds, printed) in HPL {
        let here = operations / seconds / 1e9;
        let off = printed / here - 1.0;
        if off.abs() > 5e-3 {
            wrong.push(format!("{printed} at {seconds} s is {}", short(here)));
        }
        table.row([
            format!("{seconds:.2}"),
            short(printed),
            format!("{here:.2}"),
            format!("{:+.1} %", 100.0 * off),
        ]);
    }
    report.tables.push(table);
    report.checks.push(
        Check::new(
            "Appendix F: every printed rate is that of its time",
            "18 of 18",
            format!("{} of 18; {}", 18 - wrong.len(), wrong.join(", ")),
            wrong.is_empty(),
        )
        .within("0.5 %")
        .unless(
            Verdict::PublishedWrong,
            "2/3 N^3 + 3/2 N^2 are 4.175 x 10^12 operations. By the other column these are slips of an \
             exponent (9.063e+00), of a digit (243.2 s), and of two rates.",
        ),
    );
}
