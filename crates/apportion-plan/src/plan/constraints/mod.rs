//! Constraints on a layout that hold for every method: granularity, repetition, hierarchy.

mod cyclic;
mod granularity;
mod hierarchy;

pub use cyclic::repeat_block;
pub use granularity::in_blocks;
pub use hierarchy::Hierarchy;
pub(crate) use hierarchy::Member;

use crate::error::Result;
use crate::geometry::Extent;
use crate::plan::shapes::{Hierarchical, LayoutMethod, Method, MethodOptions, NamedLayout};
use crate::plan::{Layout, Shape, inner_cuts_refused};

/// Constraints on a layout that hold for every method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutConstraints {
    /// Cuts are at multiples of this number of rows and columns; 1 allows any cut.
    pub granularity: u64,
    /// Rows and columns of the generalised block that is repeated; `None` for no repetition.
    pub repeat: Option<Extent>,
    /// The methods of the levels of the hierarchy, from the top; `None` in the list selects the best method.
    pub levels: Option<Vec<Option<Method>>>,
}

impl Default for LayoutConstraints {
    /// No constraints.
    fn default() -> Self {
        Self { granularity: 1, repeat: None, levels: None }
    }
}

impl LayoutConstraints {
    /// The layout of `shape` under these constraints; `lay` lays out one block.
    ///
    /// # Errors
    /// A repeated block without rows or columns (exit code 2), and the errors of [`in_blocks`], [`repeat_block`]
    /// and `lay`.
    pub fn layout(&self, shape: Shape, lay: impl FnOnce(Shape) -> Result<Layout>) -> Result<Layout> {
        match self.repeat {
            None => in_blocks(shape, self.granularity, lay),
            Some(Extent { rows, cols }) => {
                let block = Shape::new(rows, shape.k, cols, "`repeat`")?;
                let block = in_blocks(block, self.granularity, lay)?;
                block.refuse_boxes("a repeated block")?;
                repeat_block(shape, &block)
            }
        }
    }

    /// The layout by these methods of the levels of the hierarchy; its name is that of the methods from the
    /// top, as `square-corner/columns`.
    ///
    /// # Errors
    /// Those of [`LayoutConstraints::layout`] and [`Hierarchical`].
    pub(crate) fn by_levels(
        &self,
        shape: Shape,
        weights: &[f64],
        hierarchy: &Hierarchy,
        methods: &[Option<Method>],
        options: &MethodOptions,
    ) -> Result<NamedLayout> {
        if methods.iter().flatten().any(|method| method.cuts_inner()) {
            return Err(inner_cuts_refused("a level of a hierarchy"));
        }
        let layout =
            self.layout(shape, |s| Hierarchical { hierarchy, methods, options }.layout(s, weights))?;
        let name = |method: &Option<Method>| method.map_or_else(|| "auto".into(), |m| m.to_string());
        Ok(NamedLayout { method: methods.iter().map(name).collect::<Vec<_>>().join("/"), layout })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All three at once: blocks of 8 x 8 that recur every 64 x 64, two clusters of two.
    #[test]
    fn levels_in_blocks_that_recur() {
        let paths = ["a", "a", "b", "b"].map(String::from);
        let constraints =
            LayoutConstraints { granularity: 8, repeat: Some(Extent { rows: 64, cols: 64 }), levels: None };
        let methods = [Some(Method::Columns), Some(Method::Rows)];
        let shape = Shape::new(130, 50, 200, "test").unwrap();
        let hierarchy = Hierarchy::of_paths(&paths);
        let laid = constraints.by_levels(
            shape,
            &[3.0, 3.0, 1.0, 1.0],
            &hierarchy,
            &methods,
            &MethodOptions::default(),
        );
        let NamedLayout { method, layout } = laid.unwrap();
        assert_eq!(method, "columns/rows");
        let block = layout.block().unwrap();
        assert_eq!(block.shares(), [48 * 32, 48 * 32, 16 * 32, 16 * 32]);
        assert_eq!(layout.shares().iter().sum::<u64>(), 130 * 200);
        for method in [Method::Inner, Method::Boxes] {
            let levels = [Some(Method::Rows), Some(method)];
            let refused = constraints
                .by_levels(shape, &[1.0; 4], &hierarchy, &levels, &MethodOptions::default())
                .unwrap_err();
            assert_eq!(refused.exit_code(), 1);
            let refused =
                constraints.layout(shape, |s| method.layout(s, &[1.0; 8], &MethodOptions::default()));
            assert!(refused.unwrap_err().to_string().starts_with("a repeated block cannot use"), "{method}");
        }
        let flat =
            LayoutConstraints { repeat: Some(Extent { rows: 0, cols: 4 }), ..LayoutConstraints::default() };
        assert_eq!(flat.layout(shape, |_| unreachable!("refused before")).unwrap_err().exit_code(), 2);
    }
}
