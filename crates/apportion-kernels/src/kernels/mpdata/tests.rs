//! The scheme against published values, against itself in pieces, and by its order.

mod order;
mod pieces;
mod reference;

use super::*;

/// A whole grid as one box: the serial computation.
pub(crate) struct Serial<T> {
    pub domain: Domain,
    scheme: Scheme,
    exchange: Exchange,
    pub box_: Subdomain<T>,
}

impl<T: Advectable> Serial<T> {
    /// A field, and Courant numbers on the faces (one more along their own axis).
    pub(crate) fn new(
        domain: Domain,
        Stencil { scheme, exchange }: Stencil,
        psi: &[T],
        courant: impl Fn(usize, [isize; 3]) -> T,
    ) -> Self {
        let signed = psi.iter().any(|x| *x < T::ZERO);
        let mut box_ =
            Subdomain::new(domain, Stencil { scheme, exchange }, domain.whole(), [true; 3], signed);
        box_.unpack(Place::Centre, 1, &domain.whole(), psi);
        for axis in domain.axes() {
            let place = Place::Face(*axis);
            let room =
                Subdomain::<T>::room(&domain, Stencil { scheme, exchange }, &domain.whole(), [true; 3]);
            for source in sources(&domain, place, &room, false) {
                let (here, there) = (source.here, source.there());
                let mut values = Vec::new();
                for i in there.lo[0]..there.hi[0] {
                    for j in there.lo[1]..there.hi[1] {
                        (there.lo[2]..there.hi[2]).for_each(|k| values.push(courant(*axis, [i, j, k])));
                    }
                }
                box_.unpack(place, 1, &here, &values);
            }
            box_.close(place, 1);
        }
        Self { domain, scheme, exchange, box_ }
    }

    /// Copies what a periodic axis has at its other end.
    fn wrap(&mut self, pass: usize) {
        let mut places = vec![Place::Centre];
        if pass > 2 {
            places.extend(self.domain.axes().iter().map(|axis| Place::Face(*axis)));
        }
        for place in places {
            let with = Stencil { scheme: self.scheme, exchange: self.exchange };
            let room = Subdomain::<T>::room(&self.domain, with, &self.domain.whole(), [true; 3]);
            for source in sources(&self.domain, place, &room, true) {
                if source.shift == [0; 3] {
                    continue;
                }
                let mut values = vec![T::ZERO; source.here.count()];
                self.box_.pack(place, pass, &source.there(), &mut values);
                self.box_.unpack(place, pass, &source.here, &values);
            }
            self.box_.close(place, pass);
        }
    }

    pub(crate) fn steps(&mut self, count: usize) {
        let whole = self.domain.whole();
        for _ in 0..count {
            if self.exchange == Exchange::Wide {
                self.wrap(1);
                self.box_.compute(&whole, 0);
                self.box_.finish(0);
                continue;
            }
            for pass in 1..=self.scheme.passes {
                self.wrap(pass);
                self.box_.compute(&whole, pass);
                self.box_.finish(pass);
            }
        }
    }

    pub(crate) fn field(&mut self) -> Vec<T> {
        let whole = self.domain.whole();
        let mut out = vec![T::ZERO; whole.count()];
        self.box_.pack(Place::Centre, 1, &whole, &mut out);
        out
    }
}
