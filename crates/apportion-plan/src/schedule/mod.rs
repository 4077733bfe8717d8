//! Schedules: for each processor a list of steps, generated on demand.
//!
//! A schedule has several readers: engines run it, the simulator times it, tests count its elements. It is
//! generic over the computation, the [`Application`].

mod application;
mod factor;
mod graph;
mod matmul;
mod medium;
mod options;
mod parcel;
mod step;
mod tail;

pub use application::{Application, Executable, MessageOf, Piece, StepOf, Work};
pub(crate) use factor::Totals;
pub(crate) use factor::panel_amount;
pub use factor::{BlockTimes, FactorSchedule, FactorTask, FactorTimes, FactorWork, PanelPart, PanelPiece};
pub use graph::{GraphPiece, GraphSchedule, GraphWork};
pub(crate) use matmul::{Boxes, Exchange, Traffic};
pub use matmul::{DataPath, MatmulSchedule, MatmulStep, Operand, OperandPiece, Update, predicted_memory};
pub use medium::{Medium, Posting};
pub use options::{Flow, Messages, ScheduleOptions};
pub use parcel::Parcel;
pub use step::{Broadcast, Message, Step};
pub use tail::{TailCut, TailQueue};
