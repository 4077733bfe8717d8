//! Malik's thesis item by item, in its own order.

use crate::index::{Chapter, Document, Item};

pub const DOCUMENT: Document = Document {
    id: "malik",
    title: "Malik 2016: Topology-aware optimization of communication cost, item by item",
    chapters: &[
        Chapter {
            title: "Chapters 1 and 2",
            items: &[Item::nothing(
                "Chapters 1, 2",
                "introduction and related work",
                "background; no number is the thesis's",
            )],
        },
        Chapter {
            title: "Chapter 3: Matrix products on clusters",
            items: &[
                Item::of("Figure 3.1", "SUMMA: broadcasts in rows and columns", "malik-3.1", &["Table 3.1"]),
                Item::of("Figure 3.2", "one-to-all: messages and their sizes", "malik-3.1", &["Figure 3.2"]),
                Item::of("Figure 3.3", "the ring: messages to neighbours only", "malik-3.1", &["Figure 3.3"]),
                Item::of("Table 3.1", "both flows move the least volume", "malik-3.1", &["Table 3.1"]),
                Item::of("Section 3.2.2", "r_1! … r_c! arrangements", "malik-3.1", &["Section 3.2.2"]),
                Item::of("Figure 3.4", "optimal arrangements are grouped", "malik-3.1", &["Figure 3.4"]),
                Item::of("Figure 3.5", "worst cases are dispersed", "malik-3.1", &["Figure 3.5"]),
                Item::of("(3.1)", "cost_B by hops", "malik-3.6", &["worst: cost_B", "optimal: cost_B"]),
                Item::of(
                    "Figure 3.6",
                    "cost_B of two arrangements",
                    "malik-3.6",
                    &["worst: cost_B", "optimal: cost_B"],
                ),
                Item::of("(3.2)", "cost_A by hops", "malik-3.6", &["worst: cost_A", "optimal: cost_A"]),
                Item::of(
                    "Figure 3.7",
                    "cost_A of two arrangements",
                    "malik-3.6",
                    &["worst: cost_A", "optimal: cost_A"],
                ),
                Item::of("(3.3)", "their sum, and its least value", "malik-3.6", &["combined cost"]),
                Item::of("Table 3.2", "costs and run times", "malik-3.6", &[])
                    .and("malik-3.1", &["Table 3.2"]),
                Item::of("(3.4)", "cost_B by bandwidth", "malik-3.8", &["worst: cost_B", "optimal: cost_B"]),
                Item::of("Table 3.3", "bandwidths of four clusters", "malik-3.1", &["Table 3.3"]),
                Item::of(
                    "Figure 3.8",
                    "two arrangements of sixteen processors",
                    "malik-3.8",
                    &["cost_A", "cost_B", "optimal case's"],
                ),
                Item::of(
                    "Table 3.4",
                    "cost_B of the worst case",
                    "malik-3.8",
                    &["worst: cost_B", "Table 3.4"],
                ),
                Item::of("(3.5)", "cost_A by bandwidth", "malik-3.8", &["worst: cost_A", "optimal: cost_A"]),
                Item::of(
                    "Table 3.5",
                    "cost_B of the optimal case",
                    "malik-3.8",
                    &["optimal: cost_B", "Table 3.5"],
                ),
                Item::of(
                    "Table 3.6",
                    "cost_A of the worst case",
                    "malik-3.8",
                    &["worst: cost_A", "Table 3.6"],
                ),
                Item::of("(3.6)", "their sum", "malik-3.8", &["optimal case's"]),
                Item::of(
                    "Table 3.7",
                    "cost_A of the optimal case",
                    "malik-3.8",
                    &["optimal: cost_A", "Table 3.7"],
                ),
                Item::of("Algorithm 1", "heuristic by hops, and its tests", "malik-3.1", &["Algorithm 1"])
                    .and("malik-3.6", &["combined cost"]),
                Item::of(
                    "Algorithm 2",
                    "heuristic by bandwidth, and its tests",
                    "malik-3.1",
                    &["Algorithm 2"],
                )
                .and("malik-3.8", &["Algorithm 2"]),
                Item::of("Table 3.8", "specifications of the nodes", "malik-3.1", &["Table 3.8"]),
                Item::of("Table 3.9", "bandwidths of six clusters", "malik-3.1", &["Table 3.9"]),
                Item::of(
                    "Figure 3.9",
                    "the partition as given",
                    "malik-table-3.10",
                    &["less hops", "less bandwidth"],
                ),
                Item::of("Figure 3.10", "the arrangements of the heuristics", "malik-table-3.10", &["3.5.1"]),
                Item::of(
                    "Table 3.10",
                    "costs and run times of six clusters",
                    "malik-table-3.10",
                    &["as given", "run time saved", "heuristic's hops", "links: the"],
                ),
                Item::of("Table 3.10", "its gains under assumptions that are left open", "malik-3.5.3", &[]),
                Item::of("Section 3.5", "the text's percentages", "malik-3.1", &["Section 3.5, text"]),
                Item::of("Section 3.5.1", "Edel-Taurus is the fastest pair", "malik-3.1", &["Section 3.5.1"]),
                Item::of(
                    "Section 3.5.1",
                    "Granduc-Suno is not engaged, Edel-Taurus more",
                    "malik-table-3.10",
                    &["3.5.1"],
                ),
                Item::of("Table 3.11", "bandwidths of eight clusters", "malik-3.1", &["Table 3.11"]),
                Item::of(
                    "Figure 3.11",
                    "the partition as given",
                    "malik-table-3.12",
                    &["less hops", "less bandwidth"],
                ),
                Item::of("Table 3.12", "costs and run times of eight clusters", "malik-table-3.12", &[]),
                Item::of(
                    "Figure 3.12",
                    "the arrangements of the heuristics",
                    "malik-table-3.12",
                    &["less hops", "less bandwidth"],
                ),
                Item::of(
                    "Section 3.5.2",
                    "less effective on homogeneous nodes",
                    "malik-3.1",
                    &["Section 3.5.2"],
                ),
            ],
        },
        Chapter {
            title: "Chapter 4: MPDATA",
            items: &[
                Item::of("Figure 4.1", "flow of data between nodes", "malik-4.1", &["Figure 4.1"]),
                Item::of("Section 4.3", "sizes of the halos", "malik-4.1", &["Section 4.3"]),
                Item::of(
                    "Section 4.4.1",
                    "the directions differ in bandwidth",
                    "malik-4.1",
                    &["Section 4.4.1"],
                ),
                Item::of(
                    "(4.1), (4.2)",
                    "costs of the two directions",
                    "malik-table-4.2",
                    &["(4.1), (4.2)", "cost of the mapping given"],
                ),
                Item::of(
                    "(4.3)",
                    "their sum",
                    "malik-table-4.2",
                    &["cost by the published", "no mapping costs less"],
                ),
                Item::of(
                    "Algorithm 3",
                    "heuristic with a fixed point",
                    "malik-table-4.2",
                    &["published heuristic"],
                ),
                Item::of(
                    "Section 4.5",
                    "ten mappings converge to one cost",
                    "malik-table-4.2",
                    &["different costs"],
                ),
                Item::of("Section 4.5", "95 % intervals within 2.5 %", "malik-4.5.1", &["95 % interval"]),
                Item::of(
                    "Table 4.1",
                    "bandwidths in both directions",
                    "malik-4.1",
                    &["Table 4.1", "Section 4.5.1"],
                ),
                Item::of("Figure 4.2", "a non-optimal and the found mapping", "malik-table-4.2", &["cost"]),
                Item::of(
                    "Table 4.2",
                    "costs and run times of four clusters",
                    "malik-table-4.2",
                    &["cost of", "cost by", "ratio"],
                )
                .and("malik-4.5", &["Table 4.2"]),
                Item::of("Table 4.2", "its ratios", "malik-4.1", &["Table 4.2"]),
                Item::of(
                    "Section 4.5.1",
                    "the heuristic takes 1.13e-3 s",
                    "malik-4.5.1",
                    &["Section 4.5.1: seconds"],
                ),
                Item::of(
                    "Figure 4.3",
                    "a non-optimal and the found mapping, one cluster",
                    "malik-table-4.3",
                    &["no grid costs less", "6 x 2"],
                ),
                Item::of("Table 4.3", "costs and run times of one cluster", "malik-table-4.3", &[])
                    .and("malik-4.5", &["Table 4.3"]),
                Item::of("Table 4.3", "its ratios", "malik-4.1", &["Table 4.3"]),
                Item::of(
                    "Section 4.5.2",
                    "the heuristic takes 3.73e-4 s",
                    "malik-4.5.1",
                    &["Section 4.5.2: seconds"],
                ),
            ],
        },
        Chapter {
            title: "Chapter 5 and appendix A",
            items: &[
                Item::nothing("Chapter 5", "conclusions", "repeats the chapters above"),
                Item::of("Appendix A.1", "sixteen nodes, simulated", "malik-3.1", &["Appendix A"]),
                Item::nothing(
                    "Appendix A.2",
                    "difficulties with SMPI: platforms, calibration, heterogeneous nodes",
                    "complaints about a program; the platform files and `simulate` are the answers",
                ),
            ],
        },
    ],
};
