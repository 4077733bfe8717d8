//! The run of a factorisation by slabs.

use super::{PanelReader, PanelStore, Slabs};
use crate::application::{Elimination, ProcessorData};
use crate::factor::{check_factors, not_factored, shift_pivot};
use crate::local_columns::read_columns;
use crate::residual::Witness;
use crate::{LocalColumns, Residual};
use apportion::error::{Error, Result};
use apportion::files::changed;
use apportion::geometry::{Rank, Span};
use apportion::kernels::{Kernel, Real};
use apportion::matrix::NpyFile;
use apportion::plan::Factors;
use apportion::run::{Session, run};
use apportion::threads;
use apportion::trace::Trace;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// A factorisation by slabs, on the processors of this process.
pub(crate) struct SlabRun<'a, T> {
    slabs: &'a Slabs,
    kernel: Kernel<T>,
    session: &'a Session<'a>,
    store: PanelStore<T>,
    witness: Witness,
    seed: u64,
    /// Digests of the block columns at their first reading.
    digests: Vec<u64>,
    /// By block column, counted from the panel's first row.
    pivots: Vec<Vec<i64>>,
    /// Activities of all processors so far.
    pub(crate) trace: Trace,
    /// Seconds spent reading and writing, while nobody computes.
    pub(crate) io_seconds: f64,
    /// Seconds spent on the verification.
    pub(crate) verify_seconds: f64,
}

impl<'a, T: Real> SlabRun<'a, T> {
    pub(crate) fn new(
        slabs: &'a Slabs,
        kernel: Kernel<T>,
        store: PanelStore<T>,
        seed: u64,
        session: &'a Session<'a>,
    ) -> Self {
        Self {
            slabs,
            kernel,
            session,
            store,
            witness: Witness::new(slabs.factors(), slabs.columns().n() as usize, seed),
            seed,
            digests: Vec::new(),
            pivots: Vec::new(),
            trace: Trace::empty(slabs.columns().processors()),
            io_seconds: 0.0,
            verify_seconds: 0.0,
        }
    }

    /// Number of block columns that are factored.
    pub(crate) fn finished(&self) -> usize {
        self.pivots.len()
    }

    /// Number of block columns.
    pub(crate) fn count(&self) -> usize {
        self.slabs.columns().count()
    }

    /// Elements of the record of a block column.
    pub(crate) fn record_elements(&self, column: usize) -> u64 {
        self.store.layout().elements(column)
    }

    fn heed(&self) -> Result<()> {
        if self.session.monitor().is_stopped() { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn read(&mut self, file: &mut NpyFile, range: &Range<usize>) -> Result<Vec<LocalColumns<T>>> {
        self.heed()?;
        let begin = Instant::now();
        let columns = self.slabs.columns().slab(range.clone());
        let rows = self.slabs.rows(range);
        let own = read_columns(file, &columns, rows, 0..columns.processors());
        self.io_seconds += begin.elapsed().as_secs_f64();
        own
    }

    /// The digest of a block column of a slab.
    fn digest(&self, own: &[LocalColumns<T>], column: usize) -> u64 {
        let (columns, symmetric) = (self.slabs.columns(), self.slabs.factors().is_symmetric());
        let (local, span) = (&own[columns.panel_owner(column).0], columns.span(column));
        let place =
            local.spans().iter().position(|own| *own == span).expect("its owner has the block column");
        local.digest(place, symmetric)
    }

    /// Reads the matrix once, for the verification, and lets `check` see every slab. What is read later must be the same;
    /// the whole must have the digest `known`, if that is given.
    ///
    /// # Errors
    /// The file cannot be read, or has changed; what `check` finds; interrupted.
    pub(crate) fn look(
        &mut self,
        file: &mut NpyFile,
        known: Option<u64>,
        check: &dyn Fn(&[LocalColumns<T>]) -> Result<()>,
    ) -> Result<()> {
        for range in self.slabs.from(0) {
            let own = self.read(file, &range)?;
            check(&own)?;
            for column in range {
                let digest = self.digest(&own, column);
                self.digests.push(digest);
            }
            let begin = Instant::now();
            self.witness.add(&own, self.session.world())?;
            self.verify_seconds += begin.elapsed().as_secs_f64();
        }
        let all = self.digests.iter().fold(0, |sum: u64, one| sum.wrapping_add(*one));
        if known.is_some_and(|known| known != all) { Err(changed(file.path())) } else { Ok(()) }
    }

    /// Forgets what is factored, to begin again.
    pub(crate) fn restart(&mut self) {
        self.pivots.clear();
    }

    /// Takes the next block column, which an earlier run has factored, from its record.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn resume(&mut self, record: &[T]) -> Result<()> {
        let (column, begin) = (self.finished(), Instant::now());
        self.pivots.push(self.store.layout().pivots_of(column, record));
        self.store.keep(column, record)?;
        self.io_seconds += begin.elapsed().as_secs_f64();
        self.heed()
    }

    /// Factors the remaining slabs, and lets `save` have the record of each block column.
    ///
    /// # Errors
    /// A matrix that has no such factors, by its index, or that has changed; the files cannot be read or written; those of
    /// [`run`].
    pub(crate) fn factor(
        &mut self,
        file: &mut NpyFile,
        save: &mut dyn FnMut(usize, Vec<T>) -> Result<()>,
    ) -> Result<()> {
        let slabs = self.slabs;
        for range in slabs.from(self.finished()) {
            let own = self.read(file, &range)?;
            if range.clone().any(|column| self.digest(&own, column) != self.digests[column]) {
                return Err(changed(file.path()));
            }
            let factored = self.factor_slab(own, range.clone())?;
            let begin = Instant::now();
            for column in range {
                let ProcessorData { columns, pivots, .. } = &factored[slabs.columns().panel_owner(column).0];
                let record = self.store.layout().record(columns, column, &pivots[column]);
                self.store.keep(column, &record)?;
                save(column, record)?;
                self.pivots.push(pivots[column].clone());
            }
            self.io_seconds += begin.elapsed().as_secs_f64();
        }
        Ok(())
    }

    /// Factors a slab: what each processor has of it then.
    fn factor_slab(
        &mut self,
        own: Vec<LocalColumns<T>>,
        range: Range<usize>,
    ) -> Result<Vec<ProcessorData<T>>> {
        let (schedule, session) = (self.slabs.schedule(range.clone()), self.session);
        let processors = schedule.blocks().processors();
        let takers = (0..processors).filter(|rank| !schedule.blocks().own(Rank(*rank)).is_empty()).count();
        let reader = Arc::new(PanelReader::new(takers, session.monitor().clone()));
        let elimination = Elimination::new(&schedule, self.kernel, own, !session.copies());
        let elimination = elimination.with_earlier(Arc::clone(&reader));
        let store = &self.store;
        let output = threads::scope(|scope| {
            let reading = threads::start(scope, || reader.read(store, range.start))?;
            let output = run(&elimination, session);
            let failure = reader.close();
            reading.join().expect("reading panels does not panic");
            failure.map_or(output, Err)
        })?;
        if let Some(failed) = output.locals.iter().filter_map(|held| held.failed).min() {
            return Err(not_factored(self.slabs.factors(), self.slabs.columns(), failed));
        }
        self.trace.append(Trace { lanes: output.lanes });
        let mut factored = output.locals;
        if self.slabs.factors().is_symmetric() {
            factored.iter_mut().for_each(|held| held.columns.clear_above());
        }
        Ok(factored)
    }

    /// The pivots of all rows, counted from the first row of the matrix; none of Cholesky.
    pub(crate) fn all_pivots(&self) -> Vec<i64> {
        let columns = self.slabs.columns();
        if self.slabs.factors() == Factors::Cholesky {
            return Vec::new();
        }
        let of = |(column, pivots): (usize, &Vec<i64>)| {
            let first = columns.span(column).start as i64;
            pivots.iter().map(|pivot| shift_pivot(*pivot, first)).collect::<Vec<i64>>()
        };
        self.pivots.iter().enumerate().flat_map(of).collect()
    }

    /// Exchanges the rows of LU left of later panels, and verifies the factors.
    ///
    /// # Errors
    /// Factors that are wrong or inaccurate; the files cannot be read or written; interrupted.
    pub(crate) fn verify(&mut self, pivots: &[i64]) -> Result<Residual> {
        let begin = Instant::now();
        if self.slabs.factors() == Factors::Lu {
            for column in 0..self.finished() {
                self.heed()?;
                self.store.exchange(column, &self.pivots)?;
            }
        }
        self.io_seconds += begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let mut each_slab = |take: &mut dyn FnMut(&[LocalColumns<T>]) -> Result<()>| self.each_slab(take);
        let world = self.session.world();
        let residual = self.witness.residual(&mut each_slab, pivots, world)?;
        check_factors(residual, self.slabs.factors(), &mut each_slab, pivots, world)?;
        self.verify_seconds += begin.elapsed().as_secs_f64();
        Ok(residual)
    }

    fn each_slab(&self, take: &mut dyn FnMut(&[LocalColumns<T>]) -> Result<()>) -> Result<()> {
        for range in self.slabs.from(0) {
            self.heed()?;
            take(&self.store.slab(range)?)?;
        }
        Ok(())
    }

    /// The first wrong block column of factors that are [wrong](Self::verify), by bisection: vectors that are zero from
    /// some column on see the block columns left of it only. Each step reads the matrix and the factors.
    ///
    /// # Errors
    /// The files cannot be read; interrupted.
    pub(crate) fn first_wrong(&mut self, file: &mut NpyFile, pivots: &[i64]) -> Result<usize> {
        let (slabs, session) = (self.slabs, self.session);
        let world = session.world();
        let (mut right, mut wrong) = (0, self.finished());
        while wrong - right > 1 {
            let middle = (right + wrong) / 2;
            let columns = slabs.columns().span(middle).start as usize;
            let witness = Witness::new(slabs.factors(), slabs.columns().n() as usize, self.seed);
            let mut witness = witness.left_of(columns);
            for range in slabs.from(0) {
                witness.add(&self.read(file, &range)?, world)?;
            }
            let residual = witness.residual(
                &mut |take: &mut dyn FnMut(&[LocalColumns<T>]) -> Result<()>| self.each_slab(take),
                pivots,
                world,
            )?;
            if residual.check().is_ok() {
                right = middle;
            } else {
                wrong = middle;
            }
        }
        Ok(right)
    }

    /// Bands of rows of the factors, all columns of them, from the top to the bottom.
    ///
    /// # Errors
    /// They cannot be read; what `put` finds; interrupted.
    pub(crate) fn each_band(&self, put: &mut dyn FnMut(&[T]) -> Result<()>) -> Result<()> {
        let (n, height) = (self.slabs.columns().n(), self.slabs.column_count());
        let mut band = Vec::new();
        for rows in Span::new(0, n).blocks(height) {
            self.heed()?;
            band.clear();
            band.resize((rows.len() * n) as usize, T::ZERO);
            self.store.rows(rows, &mut band)?;
            put(&band)?;
        }
        Ok(())
    }
}
