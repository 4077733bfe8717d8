//! The devices of this machine, without loading drivers: listed by a process of its own, and remembered for as long as
//! the drivers' files stay as they are.

use super::cache;
use crate::device::{DeviceInfo, Interface, all_devices};
use crate::error::{Error, Result};
use crate::measure::{DriverLook, look_at_drivers};
use crate::platform::Platform;
use crate::run::{Monitor, World};

/// The devices of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDevices {
    /// Those of OpenCL in the order of their numbers, then the cards that only CUDA serves; `None` where no library can
    /// find any.
    pub devices: Option<Vec<DeviceInfo>>,
    /// What is wrong with drivers, in a sentence each.
    pub faults: Vec<String>,
}

/// The devices of this machine. Drivers that an earlier call has looked at are not looked at again if it may `recall`
/// that; what was wrong with them is then no fault any more. The process stays free of drivers.
///
/// # Errors
/// An interruption.
pub fn find_devices(recall: bool, monitor: &Monitor) -> Result<FoundDevices> {
    let mut faults = Vec::new();
    let mut list = |interface: Interface| -> Result<Option<Vec<DeviceInfo>>> {
        if let Some(look) = recall.then(|| cache::recall_drivers(interface)).flatten() {
            return Ok(look.devices);
        }
        let look = look_again(interface, monitor)?;
        faults.extend(look.fault.map(|fault| format!("the {} driver {fault}", interface.name())));
        Ok(look.devices)
    };
    let (opencl, cards) = (list(Interface::OpenCl)?, list(Interface::Cuda)?);
    Ok(FoundDevices { devices: all_devices(opencl, cards), faults })
}

/// Refuses devices of this process whose drivers would end it, by a look at them unless an earlier one went well.
///
/// # Errors
/// A driver ends the process that loads it: exit code 1. An interruption.
pub fn check_drivers(platform: &Platform, world: &World, monitor: &Monitor) -> Result<()> {
    for processor in &platform.processors[world.processors_here(platform.len())] {
        let interface = processor.device.as_deref().and_then(Interface::of_device);
        let is_unknown =
            |one: &Interface| cache::recall_drivers(*one).is_none_or(|look| look.fault.is_some());
        let Some(interface) = interface.filter(is_unknown) else { continue };
        if let Some(fault) = look_again(interface, monitor)?.fault {
            return Err(Error::infeasible(
                format!("processor \"{}\": the {} driver {fault}", processor.name, interface.name()),
                "install the driver of its device anew, or leave the processor out",
            ));
        }
    }
    Ok(())
}

fn look_again(interface: Interface, monitor: &Monitor) -> Result<DriverLook> {
    let look = look_at_drivers(interface, monitor)?;
    if let Some(look) = &look {
        cache::store_drivers(interface, look);
    }
    Ok(look.unwrap_or(DriverLook { devices: None, fault: None }))
}
