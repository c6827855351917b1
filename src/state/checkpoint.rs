use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::failure::{SessionId, Timestamp};

/// A loop's state at one moment, under a name.
///
/// The state is the host's own and is kept as it is: nothing in it is masked.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// Its loop.
    pub session: SessionId,
    /// Its name, unique within the loop.
    pub name: Arc<str>,
    /// The iterations begun by then.
    pub iteration: u32,
    /// When it was taken.
    pub at: Timestamp,
    /// Its place in the order in which the loop's checkpoints were taken.
    pub order: u64,
    /// The state, as JSON text.
    pub state: Arc<str>,
}

/// A checkpoint without its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointInfo {
    /// Its name.
    pub name: Arc<str>,
    /// The iterations begun by then.
    pub iteration: u32,
    /// When it was taken.
    pub at: Timestamp,
    /// Its place in the order in which the loop's checkpoints were taken.
    pub order: u64,
    /// The length of its state in bytes.
    pub bytes: usize,
}

impl Checkpoint {
    /// Everything but the state.
    pub fn info(&self) -> CheckpointInfo {
        let (name, bytes) = (Arc::clone(&self.name), self.state.len());
        CheckpointInfo { name, iteration: self.iteration, at: self.at, order: self.order, bytes }
    }
}

/// The newest format that is written and read.
pub(super) const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    /// Of everything behind the first line.
    crc32: u32,
}

#[derive(Serialize)]
struct BodyRef<'a> {
    session: &'a SessionId,
    name: &'a str,
    iteration: u32,
    at: Timestamp,
    order: u64,
    state: &'a RawValue,
}

#[derive(Deserialize)]
struct Body {
    session: SessionId,
    name: Arc<str>,
    iteration: u32,
    at: Timestamp,
    order: u64,
    state: Box<RawValue>,
}

/// Why a file is no checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotRead {
    Damaged,
    Newer(u32),
}

/// A line with format and checksum, then the checkpoint. `None` for a state that is no JSON text.
pub(super) fn encode(checkpoint: &Checkpoint) -> Option<Vec<u8>> {
    let Checkpoint { session, name, iteration, at, order, state } = checkpoint;
    let state: &RawValue = serde_json::from_str(state).ok()?;
    let body = BodyRef { session, name, iteration: *iteration, at: *at, order: *order, state };
    let body = serde_json::to_vec(&body).ok()?;
    let head = Head { format: FORMAT, crc32: crc32fast::hash(&body) };
    let mut text = serde_json::to_vec(&head).ok()?;
    text.push(b'\n');
    text.extend(body);
    Some(text)
}

/// Reads what [`encode`] wrote.
pub(super) fn decode(text: &[u8]) -> Result<Checkpoint, NotRead> {
    let split = text.iter().position(|byte| *byte == b'\n').ok_or(NotRead::Damaged)?;
    let (head, body) = (&text[..split], &text[split + 1..]);
    let head: Head = serde_json::from_slice(head).map_err(|_| NotRead::Damaged)?;
    if head.format > FORMAT {
        return Err(NotRead::Newer(head.format));
    }
    if head.format < FORMAT || crc32fast::hash(body) != head.crc32 {
        return Err(NotRead::Damaged);
    }
    let Body { session, name, iteration, at, order, state } =
        serde_json::from_slice(body).map_err(|_| NotRead::Damaged)?;
    Ok(Checkpoint { session, name, iteration, at, order, state: state.get().into() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;

    pub fn checkpoint(session: &str, name: &str, order: u64) -> Checkpoint {
        let state: Arc<str> = format!("{{\"done\": {order}, \"key\": \"sk-ant-api03-secret\"}}").into();
        let at = Timestamp::from_millis(order);
        Checkpoint { session: session.try_into().unwrap(), name: name.into(), iteration: 3, at, order, state }
    }

    #[test]
    fn a_state_is_kept_byte_for_byte() {
        let taken = checkpoint("s", "before the move", 7);
        let read = decode(&encode(&taken).unwrap()).unwrap();
        assert_eq!((read.info(), read.state, read.session), (taken.info(), taken.state, taken.session));
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_noticed() {
        let text = encode(&checkpoint("s", "n", 1)).unwrap();
        for place in 0..text.len() {
            let mut changed = text.clone();
            changed[place] ^= 1;
            let read = decode(&changed);
            // The checksum's own line may only lose its meaning.
            assert!(read.is_err(), "byte {place}");
            assert!(decode(&text[..place]).is_err(), "cut at {place}");
        }
    }
}
