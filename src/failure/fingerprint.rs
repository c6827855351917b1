use std::sync::LazyLock;

use regex::Regex;

use super::Kind;
use super::text::head;

/// How much of the message counts: what comes later is often an echo of the request.
const MEASURED: usize = 400;

/// What differs between two occurrences of one failure.
static VARIES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?i)https?://\S+"#,
        r#"|[\w.~-]*(?:/|\\)[\w./\\~@%+-]+"#,
        r"|\b[\w-]*\d[\w.:-]*\b",
        r"|\b[0-9a-f]{8,}\b",
        r"|\b(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b",
    ))
    .expect("a constant")
});

/// The same number for failures that differ only in ids, numbers, paths, hashes and times.
pub(crate) fn of(kind: &Kind, message: &str) -> u64 {
    let plain = VARIES.replace_all(head(message, MEASURED), "#");
    let mut hash = Fnv::default();
    hash.write(kind.as_str().as_bytes());
    hash.write(b"\0");
    let mut gap = false;
    for word in plain.split(|ch: char| !ch.is_alphanumeric() && ch != '#').filter(|word| !word.is_empty()) {
        // A run of varying parts is one, so that a longer list of ids changes nothing.
        let varies = word.contains('#');
        if varies && gap {
            continue;
        }
        gap = varies;
        hash.write(if varies { b"#" } else { b" " });
        if !varies {
            hash.write(word.to_lowercase().as_bytes());
        }
    }
    hash.0
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
