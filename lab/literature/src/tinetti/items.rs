//! Tinetti's chapter 3 item by item, in its own order.

use crate::index::{Chapter, Document, Item};

/// Why a drawing is not compared.
const DRAWING: &str = "a drawing that explains";

pub const DOCUMENT: Document = Document {
    id: "tinetti",
    title: "Tinetti, chapter 3: Heterogeneous clusters, item by item",
    chapters: &[
        Chapter {
            title: "3.1: Clusters' characteristics",
            items: &[
                Item::of(
                    "Figure 3.1",
                    "Ethernet as a bus: one message reaches all",
                    "tinetti-3.2",
                    &["Section 3.2.2"],
                ),
                Item::nothing("Figure 3.2", "Ethernet with a hub", DRAWING),
                Item::nothing("Figure 3.3", "Ethernet with a switch", DRAWING),
                Item::of("(3.1)", "t(n) = alpha + beta n", "tinetti-3.2", &["(3.1)"]),
            ],
        },
        Chapter {
            title: "3.2: Parallel computing in heterogeneous clusters",
            items: &[
                Item::of(
                    "Section 3.2.2",
                    "broadcasts on Ethernet, and point to point",
                    "tinetti-3.2",
                    &["Section 3.2.2"],
                ),
                Item::of(
                    "Section 3.2.3",
                    "a product here or on another computer",
                    "tinetti-3.2",
                    &["Section 3.2.3"],
                ),
                Item::of("(3.2)", "relative power", "tinetti-3.2", &["(3.2)"]),
                Item::of("(3.3)", "normalised relative power", "tinetti-3.2", &["(3.3)"]),
                Item::of("(3.4)", "the powers add up to 1", "tinetti-3.2", &["(3.4)"]),
                Item::of(
                    "Section 3.2.4",
                    "operations in proportion to power",
                    "tinetti-3.2",
                    &["Section 3.2.4"],
                ),
            ],
        },
        Chapter {
            title: "3.3: Parallelization guidelines",
            items: &[Item::nothing("Section 3.3", "guidelines", "rules of design, followed by 3.4")],
        },
        Chapter {
            title: "3.4: Parallel matrix multiplication",
            items: &[
                Item::of(
                    "Figure 3.4",
                    "assignment by rows, by columns, by blocks",
                    "tinetti-3.2",
                    &["Figure 3.4"],
                ),
                Item::of(
                    "(3.5)",
                    "C_i = A_i B: rows of C need their rows of A and all of B",
                    "tinetti-3.2",
                    &["Figure 3.4"],
                ),
                Item::nothing("Figure 3.5", "what a part of C needs", DRAWING),
                Item::nothing(
                    "Figures 3.6, 3.7",
                    "B by rows: partial sums",
                    "the distribution that the chapter does not choose",
                ),
                Item::of(
                    "Figures 3.8, 3.9",
                    "B by columns in equal parts",
                    "tinetti-3.2",
                    &["Section 3.4.5"],
                ),
                Item::of("Section 3.4.1", "left-over rows", "tinetti-3.2", &["Section 3.4.1"]),
                Item::of(
                    "Figure 3.10",
                    "a broadcast, P - 1 receives, P computations",
                    "tinetti-3.2",
                    &["Figure 3.10"],
                ),
                Item::of("Figure 3.11", "the steps of four computers", "tinetti-3.2", &["Figure 3.11"]),
                Item::of("(3.6)", "P (t_bcast + t_comp)", "tinetti-3.2", &["(3.6)"]),
                Item::of("(3.7)", "t_bcast", "tinetti-3.2", &["(3.7)"]),
                Item::of("(3.8)", "t_comp", "tinetti-3.2", &["(3.8)"]),
                Item::of("(3.9)", "the power of all", "tinetti-3.2", &["(3.9)"]),
                Item::of(
                    "(3.10)",
                    "time without overlap",
                    "tinetti-3.10",
                    &["the forecast is", "the run takes"],
                )
                .and("tinetti-3.2", &["(3.10)"]),
                Item::of(
                    "Section 3.4.3",
                    "overlap is at worst sequential",
                    "tinetti-3.2",
                    &["Section 3.4.3"],
                )
                .and("tinetti-3.10", &["overlap is shorter"]),
                Item::of("Figure 3.12", "pseudocode with overlap", "tinetti-3.2", &["Figures 3.12, 3.13"]),
                Item::of("Figure 3.13", "P + 1 sequential steps", "tinetti-3.2", &["Figures 3.12, 3.13"]),
                Item::of(
                    "(3.11)",
                    "time with overlap",
                    "tinetti-3.10",
                    &["the forecast is", "the run takes", "overlap is"],
                )
                .and("tinetti-3.2", &["(3.11)"]),
                Item::of(
                    "Section 3.4.4",
                    "messages in ten parts: a tenth of the memory",
                    "tinetti-3.2",
                    &["Section 3.4.4"],
                ),
                Item::of("Section 3.4.5", "balance of communications", "tinetti-3.2", &["Section 3.4.5"]),
                Item::of(
                    "Figure 3.14",
                    "7 x 8 elements, block cyclic on 3 x 2",
                    "tinetti-3.2",
                    &["Figure 3.14"],
                ),
                Item::of(
                    "Section 3.4.6",
                    "block cyclic on a bus, and its balance",
                    "tinetti-3.2",
                    &["Section 3.4.6"],
                ),
            ],
        },
    ],
};
