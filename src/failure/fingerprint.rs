use super::text::head;
use super::varying::{Quoted, varying};
use super::{Category, Kind};

/// How much of the message counts: what comes later is often an echo of the request.
const MEASURED: usize = 400;
/// So much of an edit's first lines tells what went wrong; the others show pieces of the file.
const ENOUGH_LINES: usize = 24;

/// The same number for failures that differ only in ids, numbers, paths, hashes, times and snippets.
///
/// A client's status counts, as 401 and 403 differ in nothing else at times; a server's does not, as
/// gateways change theirs from one request to the next.
pub(crate) fn of(kind: &Kind, status: Option<u16>, tool: Option<&str>, message: &str) -> u64 {
    let category = kind.usual_category();
    let is_edit = category == Some(Category::EditError);
    let quoted = if is_edit || category == Some(Category::JsonError) { Quoted::All } else { Quoted::Snippets };
    let message = head(message, MEASURED);
    let mut words = Words::default();
    words.hash.write(kind.as_str().as_bytes());
    words.hash.write(b"\0");
    if let Some(status) = status.filter(|status| (400..500).contains(status)) {
        words.hash.write(&status.to_le_bytes());
    }
    words.read_blind(head(tool.unwrap_or_default(), MEASURED), Quoted::Snippets, |_| false);
    words.hash.write(b"\0");
    let message = if is_edit { first_lines(message) } else { message };
    // Which model is missing is the failure.
    words.read_blind(message, quoted, |part| *kind == Kind::ModelNotFound && names_a_model(part));
    words.hash.0
}

/// The lines before what is likely to be quoted from a file.
fn first_lines(message: &str) -> &str {
    let ends = message.match_indices('\n').map(|(end, _)| end);
    &message[..ends.into_iter().find(|end| *end >= ENOUGH_LINES).unwrap_or(message.len())]
}

/// Whether this can be a model's name: a word first, parted by signs, and no id, place or date.
fn names_a_model(part: &str) -> bool {
    let is_hex = |group: &str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    part.starts_with(|ch: char| ch.is_ascii_alphabetic())
        && part.contains(['-', '.', '/', ':'])
        && !part.contains(['_', '\\'])
        && !part.contains("://")
        && !part.split('-').all(is_hex)
}

/// A number of these bytes, nothing of them left out.
pub(crate) fn plain(bytes: &[u8]) -> u64 {
    let mut hash = Fnv::default();
    hash.write(bytes);
    hash.0
}

/// Hashes word by word; a word with a varying part is one of those alone.
#[derive(Default)]
struct Words {
    hash: Fnv,
    word: String,
    varies: bool,
    /// The last word varied.
    gap: bool,
    /// The last word was `id`, and a sign of its value came.
    id: Id,
}

/// How far a text is in naming an id.
#[derive(Default, PartialEq, Eq)]
enum Id {
    #[default]
    No,
    Named,
    Follows,
}

impl Words {
    /// Reads a text without what varies in it, but for the parts to be kept.
    fn read_blind(&mut self, text: &str, quoted: Quoted, keep: impl Fn(&str) -> bool) {
        let mut at = 0;
        for part in varying(text, quoted).into_iter().filter(|part| !keep(&text[part.clone()])) {
            self.read(&text[at..part.start]);
            self.end_word();
            self.word.push('#');
            self.varies = true;
            self.end_word();
            at = part.end;
        }
        self.read(&text[at..]);
        self.end_word();
    }

    fn read(&mut self, text: &str) {
        for ch in text.chars() {
            if ch.is_alphanumeric() {
                self.word.push(ch);
            } else if ch == '#' {
                self.word.push(ch);
                self.varies = true;
            } else {
                self.end_word();
                if self.id == Id::Named && matches!(ch, ':' | '=') {
                    self.id = Id::Follows;
                }
            }
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        self.varies |= self.id == Id::Follows;
        self.id = if self.word.eq_ignore_ascii_case("id") { Id::Named } else { Id::No };
        // A run of varying parts is one, so that a longer list of ids changes nothing.
        if !(self.varies && self.gap) {
            self.hash.write(if self.varies { b"#" } else { b" " });
            if !self.varies {
                if self.word.is_ascii() {
                    self.word.make_ascii_lowercase();
                } else {
                    self.word = self.word.to_lowercase();
                }
                // One test failed, two tests failed.
                let word = if self.gap { singular(&self.word) } else { &self.word };
                self.hash.write(word.as_bytes());
            }
        }
        self.gap = self.varies;
        self.varies = false;
        self.word.clear();
    }
}

/// The word without the ending that several have.
fn singular(word: &str) -> &str {
    let several = ["ches", "shes", "sses", "xes"].iter().any(|end| word.ends_with(end));
    match word.len() {
        0..=3 => word,
        length if several => &word[..length - 2],
        _ => word.strip_suffix('s').filter(|word| !word.ends_with('s')).unwrap_or(word),
    }
}

/// FNV-1a: fingerprints are stored, so they must not change between builds.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(message: &str) -> u64 {
        of(&Kind::Other, None, None, message)
    }

    #[test]
    fn ids_numbers_paths_times_and_hashes_do_not_count() {
        for (one, other) in [
            ("Please try again in 6ms (request req_011Cabc1)", "Please try again in 9m38.016s (request req_9Zz2)"),
            ("cannot open /home/a/b.rs at 12:01:07", "cannot open /srv/other.rs at 23:59:59"),
            ("commit deadbeefcafe missing", "commit 0123456789ab missing"),
            ("ids call_1, call_2 had no result", "ids call_7 had no result"),
            ("resets Mar 17th, 2030 5:46 PM", "resets Apr 2nd, 2031 5:46 PM"),
        ] {
            assert_eq!(told(one), told(other), "{one} / {other}");
        }
    }

    #[test]
    fn another_kind_or_other_words_do_count() {
        let text = "You exceeded your current quota";
        let of_kind = |kind| of(&kind, None, None, text);
        assert_ne!(of_kind(Kind::RateLimit), of_kind(Kind::QuotaExhausted));
        assert_ne!(told("disk is full"), told("disk is gone"));
    }
}
