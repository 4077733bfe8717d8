//! Speed functions from a platform file alone, and the one rule for speeds without a unit.
//!
//! A speed without a unit is a ratio. Ratios decide shares; they give no times. [`Model::is_ratio`] carries
//! this from here to every forecast: [`only_ratios`] is the question that each of them asks.

use super::Model;
use crate::error::{Error, Result};
use crate::platform::{Platform, Processor, Speed};

/// What one unit of size is. It decides which of a platform's speeds are times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkUnit {
    /// An independent unit of work: a speed in units/s gives a time, one in flop/s does not.
    Unit,
    /// A multiply-add of a matrix product (two floating-point operations): a speed in flop/s gives a time.
    MultiplyAdd,
}

/// How the speed of one processor was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpeedKind {
    Timed,
    NoUnit,
    Flops,
    Units,
}

/// Models from the platform alone: emulated processors' speed functions, and the others' constant speeds. If
/// no speed is given, but slowdowns are, they give the ratios. A processor of speed 0 can take nothing.
///
/// # Errors
/// Only speeds of 0; a processor without a speed; speeds that give times beside speeds that give only ratios,
/// or ratios of different units.
pub fn platform_models(platform: &Platform, work: WorkUnit) -> Result<Vec<Model>> {
    let all = &platform.processors;
    let slowed = all.iter().all(|p| p.emulated.is_none() && p.speed.is_none())
        && all.iter().any(|p| p.slowdown != 1.0);
    if slowed {
        return all.iter().map(|p| Model::ratio(&p.name, 1.0 / p.slowdown)).collect();
    }
    // A speed of 0 is one of every kind.
    let stopped = |p: &Processor| p.emulated.is_none() && p.speed.is_some_and(|speed| speed.value() == 0.0);
    if all.iter().all(stopped) {
        return Err(Error::input("speeds", "all are 0", "give at least one processor a positive speed"));
    }
    let mut kinds: Vec<SpeedKind> = all.iter().map(|p| kind_of(p, work)).collect::<Result<_>>()?;
    let first = all.iter().position(|p| !stopped(p)).map_or(kinds[0], |first| kinds[first]);
    all.iter().zip(&mut kinds).filter(|(p, _)| stopped(p)).for_each(|(_, kind)| *kind = first);
    if let Some(odd) = kinds.iter().position(|kind| *kind != kinds[0]) {
        return Err(different_kinds((&all[0], kinds[0]), (&all[odd], kinds[odd])));
    }
    let per_unit = if work == WorkUnit::MultiplyAdd { 2.0 } else { 1.0 };
    all.iter()
        .zip(kinds)
        .map(|(p, kind)| match (&p.emulated, p.speed.map_or(1.0, Speed::value)) {
            (Some(emulated), _) => emulated.model(&p.name),
            (None, speed) if kind == SpeedKind::Timed => Model::constant(&p.name, speed / per_unit),
            (None, speed) => Model::ratio(&p.name, speed),
        })
        .collect()
}

/// True if the models' speeds are ratios, so that shares have no times.
pub fn only_ratios(models: &[Model]) -> bool {
    models.iter().any(Model::is_ratio)
}

fn kind_of(processor: &Processor, work: WorkUnit) -> Result<SpeedKind> {
    match (&processor.emulated, processor.speed, work) {
        (Some(_), ..)
        | (None, Some(Speed::Flops(_)), WorkUnit::MultiplyAdd)
        | (None, Some(Speed::Units(_)), WorkUnit::Unit) => Ok(SpeedKind::Timed),
        (None, Some(Speed::Relative(_)), _) => Ok(SpeedKind::NoUnit),
        (None, Some(Speed::Flops(_)), _) => Ok(SpeedKind::Flops),
        (None, Some(Speed::Units(_)), _) => Ok(SpeedKind::Units),
        (None, None, _) => Err(Error::input(
            format!("processor \"{}\"", processor.name),
            "has no speed",
            "add speed or emulated to the platform file, or pass --models (see `apportion measure`)",
        )),
    }
}

fn different_kinds(first: (&Processor, SpeedKind), odd: (&Processor, SpeedKind)) -> Error {
    let words = |(processor, kind): (&Processor, SpeedKind)| {
        let how = match kind {
            SpeedKind::NoUnit => "no unit",
            SpeedKind::Flops => "flop/s",
            SpeedKind::Units => "units/s",
            SpeedKind::Timed if processor.emulated.is_some() => "a speed function (emulated)",
            SpeedKind::Timed if matches!(processor.speed, Some(Speed::Flops(_))) => "flop/s",
            SpeedKind::Timed => "units/s",
        };
        format!("\"{}\" {how}", processor.name)
    };
    Error::input(
        format!("processor \"{}\": speed", odd.0.name),
        format!("speeds of different kinds cannot be compared: {}, {}", words(first), words(odd)),
        "give all processors speeds of one kind",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::parse_platform;

    fn models(lines: &[&str], work: WorkUnit) -> Result<Vec<Model>> {
        let entry = |(i, line): (usize, &&str)| format!("[[processor]]\nname = \"p{i}\"\n{line}\n");
        let text: String = lines.iter().enumerate().map(entry).collect();
        platform_models(&parse_platform(&text, "platform.toml")?, work)
    }

    fn are_ratios(lines: &[&str], work: WorkUnit) -> bool {
        only_ratios(&models(lines, work).unwrap())
    }

    #[test]
    fn only_speeds_of_the_works_own_unit_are_times() {
        use WorkUnit::{MultiplyAdd, Unit};
        let (bare, flops, units) = ("speed = 9", "speed = \"9 Gflop/s\"", "speed = \"9 kunits/s\"");
        assert!(are_ratios(&[bare, bare], Unit) && are_ratios(&[bare, bare], MultiplyAdd));
        assert!(are_ratios(&[flops, flops], Unit) && !are_ratios(&[flops, flops], MultiplyAdd));
        assert!(!are_ratios(&[units, units], Unit) && are_ratios(&[units, units], MultiplyAdd));
        assert_eq!(models(&[flops], MultiplyAdd).unwrap()[0].speed(1.0), 4.5e9);
        assert_eq!(models(&[units], Unit).unwrap()[0].speed(1.0), 9e3);
        let emulated = "emulated = \"peak 100\"";
        assert!(!are_ratios(&[emulated, units], Unit) && !are_ratios(&[emulated, flops], MultiplyAdd));
        for (odd, work) in [([bare, flops], Unit), ([emulated, bare], Unit), ([emulated, flops], Unit)] {
            let error = models(&odd, work).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains("different kinds"), "{error}");
        }
    }

    #[test]
    fn slowdowns_are_ratios_also_where_they_are_equal() {
        for lines in [["slowdown = 2.0", "slowdown = 2.0"], ["", "slowdown = 9"]] {
            assert!(are_ratios(&lines, WorkUnit::MultiplyAdd));
        }
        let error = models(&["", ""], WorkUnit::Unit).unwrap_err().to_string();
        assert!(error.contains("\"p0\": has no speed"), "{error}");
    }
}
