//! Lastovetsky and Reddy 2007 and Lastovetsky's slides item by item, in their own order.

use crate::index::{Chapter, Document, Item};

/// Why a drawing is not compared.
const DRAWING: &str = "a drawing that explains";
/// Why curves of the real computers are not compared.
const CURVES: &str = "data not given: curves of real computers, as a picture without numbers";

pub const PAPER: Document = Document {
    id: "fpm",
    title: "Lastovetsky and Reddy 2007: Data partitioning with a functional performance model, item by item",
    chapters: &[
        Chapter {
            title: "2: Functional performance model",
            items: &[
                Item::nothing(
                    "Figure 1",
                    "speed of four applications by size, with caches and paging",
                    CURVES,
                ),
                Item::nothing(
                    "Figure 2",
                    "performance bands, their width in % of the greatest speed",
                    CURVES,
                ),
                Item::nothing(
                    "Table 1",
                    "the four computers of Figures 1 and 2",
                    "data not given: no speeds; Table 2 is the one that section 4 uses",
                ),
            ],
        },
        Chapter {
            title: "3: Distributing independent chunks",
            items: &[
                Item::of("Figure 3", "the line on which all end together", "fpm-3", &["Proposition 1"]),
                Item::of(
                    "Algorithm 1",
                    "an approximation, then a refinement",
                    "fpm-3",
                    &["Algorithm 1, step 1", "the library's shares"],
                ),
                Item::of("Figure 4", "the initial lines U and L", "fpm-3", &["Proposition 1"]),
                Item::of(
                    "Algorithm 1.1",
                    "bisection of the angle between two lines",
                    "fpm-3",
                    &["Proposition 1", "Proposition 3: bisections"],
                ),
                Item::of("Proposition 1", "the floor of x_i or one less", "fpm-3", &["Proposition 1"]),
                Item::nothing(
                    "Lemmas 1.1 to 1.3",
                    "speed functions are bounded, meet lines once, in order",
                    "steps of a proof; Proposition 1 is what follows",
                ),
                Item::of(
                    "Algorithm 1.2",
                    "increments where the time is least",
                    "fpm-3",
                    &["Proposition 2", "Proposition 4"],
                ),
                Item::of("Proposition 2", "Algorithm 1.2 is optimal", "fpm-3", &["Proposition 2"]),
                Item::of("Proposition 3", "O(p log2 n) for Algorithm 1.1", "fpm-3", &["Proposition 3"]),
                Item::nothing(
                    "Figures 5 and 6, Lemma 3.1",
                    "the lines' lengths are bounded",
                    "a step of a proof; Proposition 3 is what follows",
                ),
                Item::of(
                    "Proposition 4",
                    "O(p log2 n) for Algorithm 1",
                    "fpm-3",
                    &["Proposition 4", "Proposition 3: bisections"],
                ),
                Item::nothing("Figure 7", "the striped product", DRAWING),
                Item::of("Table 2", "eight processors", "fpm-table-2", &[]),
                Item::of(
                    "Figure 8(a), (b)",
                    "surfaces of X1 and X5",
                    "fpm-table-2",
                    &["X1 over X5", "shipped surfaces"],
                ),
                Item::of("Figure 8(c)", "their relative speed", "fpm-9", &["Figure 8(c)"]),
                Item::of("Figure 8(d)", "the cut at n = 9,000", "fpm-9", &["Figure 8(d)"]),
            ],
        },
        Chapter {
            title: "4: Experimental results",
            items: &[
                Item::of("Figure 9", "speed-up over X1", "fpm-9", &["Figure 9"]),
                Item::of("Section 4", "X1 over X5: 13.5, 3.75, 57.0", "fpm-table-2", &["X1 over X5"]),
                Item::of("Figure 10", "speed functions against single numbers", "fpm-10", &[]),
            ],
        },
    ],
};

pub const SLIDES: Document = Document {
    id: "slides",
    title: "Lastovetsky: On grid-based matrix partitioning, slide by slide",
    chapters: &[
        Chapter {
            title: "Slides 1 to 15: the problem",
            items: &[
                Item::nothing("Slides 1 to 6", "heterogeneous computing, constant models", "introduction"),
                Item::nothing("Slide 7", "the 2-D block-cyclic algorithm", DRAWING),
                Item::of("Slide 8", "what each processor receives in a step", "slides-columns", &["slide 8"]),
                Item::of("Slides 9, 10", "generalised blocks", "slides-columns", &["slide 9"]),
                Item::of(
                    "Slide 11",
                    "areas in proportion to speeds balance the load",
                    "slides-columns",
                    &["slide 11"],
                ),
                Item::of("Slide 12", "rounding is asymptotically optimal", "slides-columns", &["slide 12"]),
                Item::of("Slide 13", "the geometrical partitioning problem", "becker-2.3", &["areas are"]),
                Item::of("Slide 14", "half-perimeters are volume", "becker-2.3", &["less 2"]),
                Item::of("Slide 15", "the largest half-perimeter", "slides-columns", &["slide 15"]),
                Item::nothing(
                    "Slide 15, proposition",
                    "the general problem is NP-complete",
                    "proved elsewhere (Beaumont et al. 2002)",
                ),
            ],
        },
        Chapter {
            title: "Slides 16 to 27: columns and grids",
            items: &[
                Item::of(
                    "Slides 16, 17",
                    "optimal columns in O(p^3)",
                    "becker-2.3",
                    &["Algorithm 2.1 is", "O(p^3)"],
                ),
                Item::of("Slides 18, 19", "Algorithm 1: given columns", "becker-2.3", &["Algorithm 2.2"]),
                Item::nothing("Slide 20", "the grid-based problem", "a definition"),
                Item::of(
                    "Slide 21",
                    "cost r + c, whatever the mapping",
                    "slides-grid",
                    &["half-perimeters is r + c"],
                ),
                Item::of(
                    "Slides 22, 23",
                    "Algorithm 2: the optimal grid",
                    "slides-grid",
                    &["Algorithm 3 finds", "half-perimeters is r + c"],
                ),
                Item::of("Slide 24", "Algorithm 3: r and c", "slides-grid", &["Algorithm 3 finds"]),
                Item::of(
                    "Slide 25",
                    "Algorithm 3 is right, Algorithm 2 in O(p^(3/2))",
                    "slides-grid",
                    &["Algorithm 3 finds", "O(p^(3/2))"],
                ),
                Item::nothing(
                    "Slides 26, 27",
                    "sixteen computers: specifications and results",
                    "data not given: the table and the picture are not in the text",
                ),
            ],
        },
        Chapter {
            title: "Slides 28 to 36: Cartesian partitionings",
            items: &[
                Item::nothing("Slides 28, 29", "Cartesian partitioning", "a definition"),
                Item::of("Slide 30", "the Cartesian problem", "slides-columns", &["slide 30"]),
                Item::of(
                    "Slide 31",
                    "some optimum is in non-increasing order",
                    "slides-columns",
                    &["slide 31"],
                ),
                Item::nothing(
                    "Slide 31, shape given",
                    "NP-complete",
                    "proved elsewhere (Beaumont et al. 2001)",
                ),
                Item::of(
                    "Slide 32",
                    "rank-one speeds balance perfectly",
                    "slides-cartesian",
                    &["speeds of rank one"],
                ),
                Item::of("Slide 33", "Algorithm 4", "slides-cartesian", &["no larger than Algorithm 5's"]),
                Item::of(
                    "Slide 34",
                    "Algorithm 5, until nothing changes",
                    "slides-cartesian",
                    &["Algorithm 5 ends"],
                ),
                Item::of(
                    "Slide 35",
                    "cost r + c of a Cartesian partitioning",
                    "slides-grid",
                    &["half-perimeters is r + c"],
                ),
                Item::of(
                    "Slide 36",
                    "Algorithm 5 is optimal for rank one",
                    "slides-cartesian",
                    &["Algorithm 5 is optimal"],
                ),
            ],
        },
    ],
};
