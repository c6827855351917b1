use super::sha256::sha256;
use crate::failure::SessionId;

/// The longest stem. With `recovery-` before it and `.json.damaged-3` behind, a name stays far below
/// the 255 bytes that file systems allow.
const LONGEST: usize = 100;
/// How much of a long id stays readable in front of its hash.
const READABLE: usize = 48;
/// Bytes of the hash that are kept: 160 bits, so that nobody finds two ids with one stem.
const HASH_KEPT: usize = 20;

/// A session's part of a file name (R13).
///
/// Ids of lower-case letters, digits, `_` and `-` stay as they are, device names excepted. In others
/// every other byte becomes `=` and two hexadecimal digits; what would be longer than 100 bytes ends in
/// `~` and a hash instead. Two ids never share a stem, not even on a disk that ignores case, and no
/// stem leaves its directory.
///
/// ```
/// use backstop::SessionId;
/// use backstop::state::file_stem;
///
/// let stem = |id: &str| file_stem(&SessionId::new(id).unwrap());
/// assert_eq!(stem("agent-7"), "agent-7");
/// assert_eq!(stem("../Etc"), "=2e=2e=2f=45tc");
/// assert_eq!(stem("con"), "=63on");
/// ```
pub fn file_stem(session: &SessionId) -> String {
    let id = session.as_str();
    if id.len() <= LONGEST && id.bytes().all(is_plain) && !is_device(id) {
        return id.to_owned();
    }
    let mut stem = String::with_capacity(LONGEST);
    for (place, byte) in id.bytes().enumerate() {
        // A device's name has only plain bytes: its first one is escaped to make it another name.
        if is_plain(byte) && !(place == 0 && is_device(id)) {
            stem.push(char::from(byte));
        } else {
            stem.push('=');
            push_hex(&mut stem, byte);
        }
        if stem.len() > LONGEST {
            stem.truncate(READABLE);
            stem.push('~');
            sha256(id.as_bytes()).iter().take(HASH_KEPT).for_each(|byte| push_hex(&mut stem, *byte));
            return stem;
        }
    }
    stem
}

const fn is_plain(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-')
}

/// Names that mean a device on some systems, whatever follows a dot.
fn is_device(id: &str) -> bool {
    let numbered = |name: &str| id.strip_prefix(name).is_some_and(|number| matches!(number.as_bytes(), [b'0'..=b'9']));
    matches!(id, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

fn push_hex(to: &mut String, byte: u8) {
    for digit in [byte >> 4, byte & 15] {
        to.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::HashMap;
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    fn stem(id: &str) -> String {
        file_stem(&SessionId::new(id).unwrap())
    }

    /// What R13 promises of one name.
    fn is_safe(stem: &str) -> bool {
        let name = format!("recovery-{stem}.json");
        let path = Path::new(&name);
        let one_part = path.components().eq([Component::Normal(name.as_ref())]);
        let safe = |byte| is_plain(byte) || matches!(byte, b'=' | b'~');
        one_part && !stem.is_empty() && stem.len() <= LONGEST && stem.bytes().all(safe)
    }

    #[test]
    fn hostile_ids_have_names_of_their_own_in_the_directory() {
        let long = "x".repeat(300);
        let long_too = "x".repeat(301);
        let ids = [
            "../x",
            "..",
            ".",
            "/etc/x",
            "a/../../../evil",
            "a/b",
            "a\\b",
            "a\0b",
            "a:b",
            "C:",
            "~",
            "-",
            "--help",
            "con",
            "Con",
            "CON",
            "con.txt",
            "nul",
            "com1",
            "lpt9",
            "com10",
            "A",
            "a",
            "é",
            "e\u{301}",
            "会话 1",
            "😀",
            "x.",
            "x ",
            "x",
            " x",
            "\u{202e}x",
            "x\n",
            "x\t",
            "=41",
            "=",
            "x~y",
            "*",
            "?",
            "%2e",
            &long,
            &long_too,
            &long[..100],
            &long[..101],
            "backstop",
            "s1.json",
            "s1",
        ];
        let mut owner = HashMap::new();
        for id in ids {
            let stem = stem(id);
            assert!(is_safe(&stem), "{id:?} became {stem:?}");
            if let Some(other) = owner.insert(stem.to_ascii_lowercase(), id) {
                panic!("{id:?} and {other:?} share a name");
            }
        }
    }

    #[test]
    fn a_million_ids_do_not_collide() {
        let mut seen = std::collections::HashSet::new();
        for number in 0..320_000_u32 {
            for id in [format!("s{number}"), format!("S{number}"), format!("s/{number}")] {
                assert!(seen.insert(stem(&id)), "{id}");
            }
            // Hashing is slow without optimisation.
            if number % 8 == 0 {
                assert!(seen.insert(stem(&format!("{number:0150}"))), "{number}");
            }
        }
        assert_eq!(seen.len(), 1_000_000);
    }

    #[test]
    fn plain_ids_stay_as_they_are() {
        let longest = "z".repeat(100);
        for id in ["a", "agent-7", "ses_01hx", "0", "console", "com", &longest] {
            assert_eq!(stem(id), id);
        }
    }

    proptest! {
        #[test]
        fn every_id_has_a_safe_name(id in any::<String>()) {
            prop_assume!(!id.is_empty());
            prop_assert!(is_safe(&stem(&id)));
        }

        #[test]
        fn two_ids_never_share_a_name(a in "[aA=~.é/-]{1,60}", b in "[aA=~.é/-]{1,60}") {
            prop_assert_eq!(a == b, stem(&a).eq_ignore_ascii_case(&stem(&b)));
        }
    }
}
