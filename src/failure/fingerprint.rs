use super::Kind;
use super::text::head;
use super::varying::varying;

/// How much of the message counts: what comes later is often an echo of the request.
const MEASURED: usize = 400;

/// The same number for failures that differ only in ids, numbers, paths, hashes and times.
pub(crate) fn of(kind: &Kind, message: &str) -> u64 {
    let message = head(message, MEASURED);
    let mut words = Words { hash: Fnv::default(), gap: false, word: String::new(), varies: false };
    words.hash.write(kind.as_str().as_bytes());
    words.hash.write(b"\0");
    let mut at = 0;
    for part in varying(message) {
        words.read(&message[at..part.start]);
        words.word.push('#');
        words.varies = true;
        at = part.end;
    }
    words.read(&message[at..]);
    words.end_word();
    words.hash.0
}

/// A number of these bytes, nothing of them left out.
pub(crate) fn plain(bytes: &[u8]) -> u64 {
    let mut hash = Fnv::default();
    hash.write(bytes);
    hash.0
}

/// Hashes word by word; a word with a varying part is one of those alone.
struct Words {
    hash: Fnv,
    word: String,
    varies: bool,
    gap: bool,
}

impl Words {
    fn read(&mut self, text: &str) {
        for ch in text.chars() {
            if ch.is_alphanumeric() {
                self.word.push(ch);
            } else if ch == '#' {
                self.word.push(ch);
                self.varies = true;
            } else {
                self.end_word();
            }
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        // A run of varying parts is one, so that a longer list of ids changes nothing.
        if !(self.varies && self.gap) {
            self.hash.write(if self.varies { b"#" } else { b" " });
            if !self.varies {
                if self.word.is_ascii() {
                    self.word.make_ascii_lowercase();
                    self.hash.write(self.word.as_bytes());
                } else {
                    self.hash.write(self.word.to_lowercase().as_bytes());
                }
            }
        }
        self.gap = self.varies;
        self.varies = false;
        self.word.clear();
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

    #[test]
    fn ids_numbers_paths_times_and_hashes_do_not_count() {
        for (one, other) in [
            ("Please try again in 6ms (request req_011Cabc1)", "Please try again in 9m38.016s (request req_9Zz2)"),
            ("cannot open /home/a/b.rs at 12:01:07", "cannot open /srv/other.rs at 23:59:59"),
            ("commit deadbeefcafe missing", "commit 0123456789ab missing"),
            ("ids call_1, call_2 had no result", "ids call_7 had no result"),
            ("resets Mar 17th, 2030 5:46 PM", "resets Apr 2nd, 2031 5:46 PM"),
        ] {
            assert_eq!(of(&Kind::Other, one), of(&Kind::Other, other), "{one} / {other}");
        }
    }

    #[test]
    fn another_kind_or_other_words_do_count() {
        let text = "You exceeded your current quota";
        assert_ne!(of(&Kind::RateLimit, text), of(&Kind::QuotaExhausted, text));
        assert_ne!(of(&Kind::Other, "disk is full"), of(&Kind::Other, "disk is gone"));
    }
}
