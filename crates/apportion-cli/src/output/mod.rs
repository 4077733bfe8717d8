//! Printed and written output.

pub mod advect;
pub mod arrangement;
pub mod balance;
pub mod compare;
pub mod demo;
pub mod detect;
pub mod devices;
pub mod distinct_files;
pub mod doctor;
pub mod explain;
pub mod export;
mod files;
pub mod forecast;
pub mod graphs;
pub mod layouts;
mod linear;
pub mod links;
pub mod mdem;
pub mod models;
pub mod panels;
pub mod plan;
pub mod provenance;
pub mod ranking;
pub mod results;
pub mod run;
pub mod run_once;
pub mod study;
pub mod sweep;
pub mod units;

pub use files::{appear, appear_with, is_csv, open, picture, timeline, timeline_of};
use serde::Serialize;
use serde_json::{Value, json};

/// An object with the fields of a value after its own.
fn extended(mut object: Value, more: impl Serialize) -> Value {
    if let (Some(fields), Value::Object(more)) = (object.as_object_mut(), json!(more)) {
        fields.extend(more);
    }
    object
}
