use std::error::Error;

use serde_json::{Map, Value};

/// What one error of a chain says: fields for detection, and where the chain goes on.
#[derive(Debug, Default)]
pub(super) struct Link<'a> {
    pub(super) fields: Map<String, Value>,
    /// The cause, where it is not what `source` says.
    pub(super) next: Option<&'a (dyn Error + 'static)>,
    /// The task was stopped by whoever owns it.
    pub(super) cancelled: bool,
    /// A model's API answered so.
    pub(super) of_provider: bool,
    /// Texts that no message of the chain keeps, each with what stands in its place.
    pub(super) replaced: Vec<(String, String)>,
    /// What failed to parse was read from a server's answer.
    pub(super) parses_answer: bool,
}

impl Link<'_> {
    /// Sets a field, unless it is there.
    pub(super) fn field(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.entry(name).or_insert_with(|| value.into());
    }
}
