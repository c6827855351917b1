//! What a disk holds and what it was only told: the model behind the power cuts. Pure.

use std::collections::BTreeMap;

/// What the disk writes at once: small, so that a record spans several.
const BLOCK: usize = 48;

/// One thing that is not synced yet.
#[derive(Clone)]
pub(super) enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Cut { to: usize },
}

#[derive(Clone, Default)]
pub(super) struct Content {
    pub durable: Vec<u8>,
    pub pending: Vec<Change>,
}

impl Content {
    /// What programs see.
    pub fn seen(&self) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        self.pending.iter().for_each(|change| apply(&mut bytes, change));
        bytes
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { at, bytes: new } => {
            bytes.resize(bytes.len().max(at + new.len()), 0);
            bytes[*at..at + new.len()].copy_from_slice(new);
        }
        Change::Cut { to } => bytes.truncate(*to),
    }
}

#[derive(Clone)]
pub(super) enum Naming {
    Put { name: String, file: usize },
    Gone { name: String },
    Moved { from: String, to: String, file: usize },
}

#[derive(Clone, Default)]
pub(super) struct Names {
    pub durable: BTreeMap<String, usize>,
    pub pending: Vec<Naming>,
}

impl Names {
    pub fn seen(&self) -> BTreeMap<String, usize> {
        let mut names = self.durable.clone();
        self.pending.iter().for_each(|change| rename(&mut names, change));
        names
    }
}

fn rename(names: &mut BTreeMap<String, usize>, change: &Naming) {
    match change {
        Naming::Put { name, file } => drop(names.insert(name.clone(), *file)),
        Naming::Gone { name } => drop(names.remove(name)),
        Naming::Moved { from, to, file } => {
            names.remove(from);
            names.insert(to.clone(), *file);
        }
    }
}

/// What a disk claims to do and does not: protocols that must be seen to fail.
#[derive(Clone, Copy, Default)]
pub(super) struct Lies {
    pub files: bool,
    pub names: bool,
}

/// Two directories, ours and the shared one, and all files.
#[derive(Clone, Default)]
pub(super) struct Platter {
    pub files: Vec<Content>,
    pub dirs: [Names; 2],
    pub lies: Lies,
}

/// A number generator for the states that are too many to try them all.
pub(super) struct Dice(pub u64);

impl Dice {
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::policy::seed::mix(self.0, 1)
    }
}

impl Platter {
    /// Everything unsynced, in pieces.
    pub fn pieces(&self) -> usize {
        let blocks = |change: &Change| match change {
            Change::Write { bytes, .. } => bytes.len().div_ceil(BLOCK),
            Change::Cut { .. } => 1,
        };
        let files = self.files.iter().flat_map(|file| &file.pending).map(blocks).sum::<usize>();
        files + self.dirs.iter().map(|dir| dir.pending.len()).sum::<usize>()
    }

    /// The state that a power cut leaves when just these pieces had reached the disk.
    pub fn cut(&self, mut kept: impl FnMut() -> bool) -> Self {
        let mut left = Self { lies: self.lies, ..Self::default() };
        for file in &self.files {
            let mut bytes = file.durable.clone();
            for change in &file.pending {
                match change {
                    Change::Cut { .. } if kept() => apply(&mut bytes, change),
                    Change::Cut { .. } => {}
                    Change::Write { at, bytes: new } => {
                        for (number, block) in new.chunks(BLOCK).enumerate() {
                            if kept() {
                                let block = Change::Write { at: at + number * BLOCK, bytes: block.to_vec() };
                                apply(&mut bytes, &block);
                            }
                        }
                    }
                }
            }
            left.files.push(Content { durable: bytes, pending: vec![] });
        }
        for (dir, into) in self.dirs.iter().zip(&mut left.dirs) {
            into.durable = dir.durable.clone();
            dir.pending.iter().filter(|_| kept()).for_each(|change| rename(&mut into.durable, change));
        }
        left
    }
}
