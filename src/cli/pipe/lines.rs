use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// The longest line: failures are long, but no novels.
pub(super) const MAX_LINE: usize = 16 * 1024 * 1024;

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(Vec<u8>),
    /// Longer than [`MAX_LINE`]; it was skipped.
    TooLong,
}

/// Lines of bounded length, numbered from 1.
pub(super) struct Lines<R> {
    from: R,
    part: Vec<u8>,
    skipping: bool,
    limit: usize,
    /// The number of the line that was read last.
    pub number: u64,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub fn new(from: R) -> Self {
        Self { from, part: vec![], skipping: false, limit: MAX_LINE, number: 0 }
    }

    /// The next line without its end; `None` at the end of input, and when it cannot be read.
    ///
    /// # Cancellation
    ///
    /// What was read of a line is kept.
    pub async fn next(&mut self) -> Option<Line> {
        loop {
            let chunk = match self.from.fill_buf().await {
                Ok([]) => return self.last(),
                Ok(chunk) => chunk,
                Err(error) => {
                    tracing::warn!(%error, "the input cannot be read any further");
                    return self.last();
                }
            };
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(chunk.len());
            if !self.skipping {
                self.part.extend_from_slice(&chunk[..taken]);
            }
            let used = end.map_or(taken, |end| end + 1);
            self.from.consume(used);
            if self.part.len() > self.limit {
                self.part = vec![];
                self.skipping = true;
            }
            if end.is_some() {
                return Some(self.whole());
            }
        }
    }

    fn whole(&mut self) -> Line {
        self.number += 1;
        if std::mem::take(&mut self.skipping) { Line::TooLong } else { Line::Text(std::mem::take(&mut self.part)) }
    }

    fn last(&mut self) -> Option<Line> {
        (self.skipping || !self.part.is_empty()).then(|| self.whole())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    async fn all(text: &[u8], limit: usize) -> Vec<Line> {
        // A tiny buffer, so that lines come in pieces.
        let mut lines = Lines::new(tokio::io::BufReader::with_capacity(3, text));
        lines.limit = limit;
        let mut all = vec![];
        while let Some(line) = lines.next().await {
            all.push(line);
        }
        assert_eq!(lines.number, all.len() as u64);
        all
    }

    fn text(text: &str) -> Line {
        Line::Text(text.into())
    }

    #[tokio::test]
    async fn lines_come_whole_the_last_one_without_its_end_too() {
        assert_eq!(
            all(b"one\n\nthree four\nlast", 100).await,
            [text("one"), text(""), text("three four"), text("last")]
        );
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_costs_only_itself() {
        assert_eq!(all(b"0123456789\nshort\n0123456789", 5).await, [Line::TooLong, text("short"), Line::TooLong]);
    }
}
