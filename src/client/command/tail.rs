/// The last bytes of a stream, in memory that never grows beyond twice their number.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    keep: usize,
    total: u64,
}

impl Tail {
    pub(super) fn new(keep: usize) -> Self {
        Self { bytes: Vec::new(), keep, total: 0 }
    }

    /// Takes the next bytes. Old ones are dropped in bulk, so a flood costs one copy and no more.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        let chunk = &chunk[chunk.len().saturating_sub(self.keep)..];
        if self.bytes.len() + chunk.len() > self.keep.saturating_mul(2) {
            let surplus = (self.bytes.len() + chunk.len() - self.keep).min(self.bytes.len());
            self.bytes.drain(..surplus);
        }
        self.bytes.extend_from_slice(chunk);
    }

    /// The bytes kept and the number of all bytes seen.
    pub(super) fn finish(mut self) -> (Vec<u8>, u64) {
        self.bytes.drain(..self.bytes.len().saturating_sub(self.keep));
        (self.bytes, self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_stream_is_kept_however_it_is_cut_into_chunks() {
        let stream: Vec<u8> = (0..=255).cycle().take(5_000).collect();
        for size in [1, 7, 99, 100, 101, 300, 5_000] {
            let mut tail = Tail::new(100);
            for chunk in stream.chunks(size) {
                tail.push(chunk);
                assert!(tail.bytes.len() <= 200);
            }
            assert_eq!(tail.finish(), (stream[4_900..].to_vec(), 5_000), "chunks of {size}");
        }
    }

    #[test]
    fn a_tail_of_nothing_still_counts() {
        let mut tail = Tail::new(0);
        tail.push(b"abc");
        assert_eq!(tail.finish(), (vec![], 3));
    }
}
