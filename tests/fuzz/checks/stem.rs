//! A session's part of a file name (R13).

use backstop::SessionId;
use backstop::state::file_stem;

/// The input is two ids, parted at its middle; they are compared in both cases.
pub fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let middle = (text.len() / 2..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (first, second) = text.split_at(middle);
    let mut ids = vec![text.to_string(), first.to_owned(), second.to_owned()];
    ids.extend([text.to_ascii_uppercase(), format!("{text}.")]);
    let stems: Vec<_> = ids.iter().filter_map(|id| Some((id, stem(id)?))).collect();
    for (id, stem) in &stems {
        safe(id, stem);
        for (other, of_other) in &stems {
            assert_eq!(id == other, stem.eq_ignore_ascii_case(of_other), "{id:?} and {other:?}");
        }
    }
}

/// The stem; none for the empty id, which is refused.
fn stem(id: &str) -> Option<String> {
    let session = SessionId::new(id);
    assert_eq!(session.is_err(), id.is_empty());
    session.ok().map(|session| file_stem(&session))
}

fn safe(id: &str, stem: &str) {
    assert!(!stem.is_empty() && stem.len() <= 100, "{stem:?}");
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    assert!(stem.bytes().all(|byte| plain(byte) || matches!(byte, b'=' | b'~')), "{stem:?}");
    match stem.split_once('~') {
        None => assert_eq!(decoded(stem), id.as_bytes(), "{stem:?}"),
        // Too long to be told back: the start is, and a hash follows.
        Some((start, hash)) => {
            assert!(hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{stem:?}");
            let whole = start.len() - start.bytes().rev().take(2).position(|byte| byte == b'=').map_or(0, |at| at + 1);
            assert!(id.as_bytes().starts_with(&decoded(&start[..whole])), "{stem:?}");
        }
    }
}

fn decoded(stem: &str) -> Vec<u8> {
    let mut parts = stem.split('=');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}
