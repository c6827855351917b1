use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Marker, Parser, ScanError};

use super::Place;
use super::node::Quoted;

/// Deeper nesting is no configuration; the value pass recurses, so this bounds its stack.
const MAX_DEPTH: usize = 64;

const TOO_DEEP: &str = "nested more than 64 levels deep";

/// Values in a document after its aliases are expanded: what stops a YAML bomb.
pub(super) const MAX_NODES: usize = 20_000;

/// Where everything in a document stands: the second pass over the text, which knows positions.
pub(super) struct Marks {
    marks: Vec<Mark>,
    root: Option<usize>,
}

pub(super) struct Mark {
    pub(super) place: Place,
    pub(super) shape: Shape,
    /// Values in it and levels of nesting, aliases expanded.
    size: usize,
    height: usize,
}

/// Aliases share the mark of their anchor, so marks are named by number.
pub(super) enum Shape {
    Scalar(Box<str>),
    List(Vec<usize>),
    Map(Vec<(usize, usize)>),
}

/// Why a text is no document that we read.
#[derive(Debug, PartialEq)]
pub(super) struct Unreadable {
    pub(super) place: Place,
    pub(super) message: String,
}

/// A list or map whose end has not been seen yet.
struct Open {
    place: Place,
    anchor: usize,
    is_map: bool,
    children: Vec<usize>,
    size: usize,
    height: usize,
}

impl Marks {
    /// Reads the positions of a document.
    pub(super) fn read(text: &str) -> Result<Self, Unreadable> {
        let mut pass = Pass::default();
        let mut documents = 0;
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| unreadable(&error))?;
            let at = place(&span.start);
            match event {
                Event::DocumentStart(_) => {
                    documents += 1;
                    if documents > 1 {
                        return refuse(at, "a second document begins; one is expected");
                    }
                }
                Event::Scalar(text, _, anchor, _) => pass.scalar(at, &text, anchor)?,
                Event::Alias(anchor) => pass.alias(at, anchor)?,
                Event::SequenceStart(anchor, _) => pass.open(at, anchor, false)?,
                Event::MappingStart(anchor, _) => pass.open(at, anchor, true)?,
                Event::SequenceEnd | Event::MappingEnd => pass.close()?,
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            }
        }
        Ok(Self { marks: pass.marks, root: pass.root })
    }

    /// The document's own mark; `None` for a text without a document.
    pub(super) fn root(&self) -> Option<&Mark> {
        self.root.map(|root| self.mark(root))
    }

    pub(super) fn mark(&self, index: usize) -> &Mark {
        &self.marks[index]
    }
}

#[derive(Default)]
struct Pass {
    marks: Vec<Mark>,
    root: Option<usize>,
    open: Vec<Open>,
    anchors: HashMap<usize, usize>,
    /// Values seen so far, aliases expanded.
    total: usize,
}

impl Pass {
    fn scalar(&mut self, at: Place, text: &str, anchor: usize) -> Result<(), Unreadable> {
        self.count(at, 1, 0)?;
        self.add(Mark { place: at, shape: Shape::Scalar(text.into()), size: 1, height: 0 }, anchor);
        Ok(())
    }

    fn alias(&mut self, at: Place, anchor: usize) -> Result<(), Unreadable> {
        let Some(&target) = self.anchors.get(&anchor) else {
            return refuse(at, "an alias inside the value that it names");
        };
        let Mark { size, height, .. } = self.marks[target];
        self.count(at, size, height)?;
        self.attach(target);
        Ok(())
    }

    fn open(&mut self, at: Place, anchor: usize, is_map: bool) -> Result<(), Unreadable> {
        self.count(at, 1, 1)?;
        self.open.push(Open { place: at, anchor, is_map, children: vec![], size: 1, height: 1 });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Unreadable> {
        let Some(Open { place, anchor, is_map, children, size, height }) = self.open.pop() else {
            return Ok(());
        };
        let shape = if is_map { Shape::Map(self.pairs(&children)?) } else { Shape::List(children) };
        self.add(Mark { place, shape, size, height }, anchor);
        Ok(())
    }

    fn pairs(&self, children: &[usize]) -> Result<Vec<(usize, usize)>, Unreadable> {
        let mut seen = HashSet::new();
        let mut pairs = Vec::with_capacity(children.len() / 2);
        for pair in children.chunks_exact(2) {
            let key = &self.marks[pair[0]];
            if let Shape::Scalar(text) = &key.shape
                && !seen.insert(text)
            {
                return refuse(key.place, &format!("the key {} stands here twice", Quoted(text)));
            }
            pairs.push((pair[0], pair[1]));
        }
        Ok(pairs)
    }

    fn add(&mut self, mark: Mark, anchor: usize) {
        let index = self.marks.len();
        self.marks.push(mark);
        if anchor != 0 {
            self.anchors.insert(anchor, index);
        }
        self.attach(index);
    }

    fn attach(&mut self, index: usize) {
        let Mark { size, height, .. } = self.marks[index];
        match self.open.last_mut() {
            Some(parent) => {
                parent.children.push(index);
                parent.size += size;
                parent.height = parent.height.max(height + 1);
            }
            None => self.root = Some(index),
        }
    }

    fn count(&mut self, at: Place, size: usize, height: usize) -> Result<(), Unreadable> {
        self.total += size;
        if self.total > MAX_NODES {
            return refuse(at, &format!("the document has more than {MAX_NODES} values, aliases expanded"));
        }
        if self.open.len() + height > MAX_DEPTH {
            return refuse(at, TOO_DEEP);
        }
        Ok(())
    }
}

fn unreadable(error: &ScanError) -> Unreadable {
    let message = match error.info() {
        "recursion limit exceeded" => TOO_DEEP.to_owned(),
        info => info.to_owned(),
    };
    Unreadable { place: place(error.marker()), message }
}

fn refuse<T>(place: Place, message: &str) -> Result<T, Unreadable> {
    Err(Unreadable { place, message: message.to_owned() })
}

fn place(marker: &Marker) -> Place {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Place { line: number(marker.line().max(1)), column: number(marker.col().saturating_add(1)) }
}
