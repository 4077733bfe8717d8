//! In which order: for each processor a list of steps, made on demand.
//!
//! One schedule, several readers: engines run it, the simulator reads it against a clock, tests count its
//! elements. What is computed is a parameter, the [`Application`].

mod application;
mod matmul;
mod options;
mod step;

pub use application::{Application, Executable, MessageOf, Piece, StepOf, Work};
pub use matmul::{
    DataPath, MatmulMessage, MatmulSchedule, MatmulStep, Operand, OperandPiece, Update, predicted_memory,
};
pub use options::{Flow, ScheduleOptions};
pub use step::{Broadcast, Message, Step};
