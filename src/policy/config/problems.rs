use std::sync::Arc;

use super::node::{Entry, Node};
use super::{Diagnostic, Place, Severity};
use crate::policy::{Layer, Origin};

/// Problems that are kept; a hostile file must not turn into megabytes of complaints.
const MAX_KEPT: usize = 200;

/// Everything wrong with the layers, collected on the way.
#[derive(Debug, Default)]
pub(super) struct Problems {
    kept: Vec<Diagnostic>,
    left_out: usize,
    refused: bool,
}

impl Problems {
    /// Notes an error; `help` is asked for only where the problem is kept.
    pub(super) fn error(&mut self, at: &Spot, message: impl Into<String>, help: impl FnOnce() -> Option<String>) {
        self.refused = true;
        self.note(Severity::Error, at, message, help);
    }

    /// Notes a warning.
    pub(super) fn warning(&mut self, at: &Spot, message: impl Into<String>, help: impl FnOnce() -> Option<String>) {
        self.note(Severity::Warning, at, message, help);
    }

    fn note(
        &mut self,
        severity: Severity,
        at: &Spot,
        message: impl Into<String>,
        help: impl FnOnce() -> Option<String>,
    ) {
        if self.kept.len() >= MAX_KEPT {
            self.left_out += 1;
            return;
        }
        self.kept.push(Diagnostic {
            severity,
            source: Arc::clone(&at.source),
            place: at.place,
            path: at.path.clone(),
            message: message.into(),
            help: help(),
        });
    }

    /// All problems, in the order of the layers and of each text, and whether the configuration is
    /// refused.
    pub(super) fn finish(mut self) -> (Vec<Diagnostic>, bool) {
        let mut sources: Vec<Arc<str>> = vec![];
        for problem in &self.kept {
            if !sources.contains(&problem.source) {
                sources.push(Arc::clone(&problem.source));
            }
        }
        self.kept.sort_by_key(|problem| (sources.iter().position(|source| *source == problem.source), problem.place));
        if let (Some(last), true) = (self.kept.last(), self.left_out > 0) {
            let severity = if self.refused { Severity::Error } else { Severity::Warning };
            let message = format!("{} more problems are not shown", self.left_out);
            let more = Diagnostic { severity, path: String::new(), message, help: None, ..last.clone() };
            self.kept.push(more);
        }
        (self.kept, self.refused)
    }
}

/// The help of a problem that has none.
pub(super) fn no_help() -> Option<String> {
    None
}

/// The place and path of a value while it is read.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    pub(super) source: Arc<str>,
    pub(super) layer: Layer,
    pub(super) path: String,
    pub(super) place: Option<Place>,
}

impl Spot {
    /// The whole of a layer.
    pub(super) fn layer(source: impl Into<Arc<str>>, layer: Layer) -> Self {
        Self { source: source.into(), layer, path: String::new(), place: None }
    }

    /// The value under a key.
    pub(super) fn value(&self, entry: &Entry) -> Self {
        self.child(&entry.key, entry.value.place)
    }

    /// The key itself.
    pub(super) fn key(&self, entry: &Entry) -> Self {
        self.child(&entry.key, entry.key_place)
    }

    /// An item of a list.
    pub(super) fn item(&self, index: usize, node: &Node) -> Self {
        Self { path: format!("{}[{index}]", self.path), place: node.place, ..self.clone() }
    }

    /// The same path at another place.
    pub(super) fn at(&self, node: &Node) -> Self {
        Self { place: node.place, ..self.clone() }
    }

    /// Something below this path. A hostile key is cut, so that a path stays readable.
    pub(super) fn child(&self, key: &str, place: Option<Place>) -> Self {
        const SHOWN: usize = 64;
        let key: String = key.chars().take(SHOWN).flat_map(char::escape_debug).collect();
        let path = if self.path.is_empty() { key } else { format!("{}.{key}", self.path) };
        Self { path, place, ..self.clone() }
    }

    /// The place that an origin names.
    pub(super) fn at_origin(origin: &Origin, path: &str) -> Self {
        let mut spot = Self::layer(origin.to_string(), origin.layer).child(path, None);
        if let Some(place) = &origin.place {
            let mut parts = place.rsplitn(3, ':');
            let column = parts.next().and_then(|column| column.parse().ok());
            let line = parts.next().and_then(|line| line.parse().ok());
            if let (Some(line), Some(column), Some(source)) = (line, column, parts.next()) {
                spot.source = source.into();
                spot.place = Some(Place { line, column });
            }
        }
        spot
    }

    /// The origin of the value here.
    pub(super) fn origin(&self) -> Origin {
        let place = self.place.map(|at| format!("{}:{}:{}", self.source, at.line, at.column).into());
        Origin { layer: self.layer, place }
    }
}
