//! What may be shown of a text: masked, fenced, injected (R12).

use backstop::failure::{Kind, fence, mask};
use backstop::policy::Injection;

/// The most characters of a failure's own words that an injection may hold.
const MAX_FENCED: usize = 500;

/// The input is a text.
pub fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    masking(&text);
    fencing(&text);
    injecting(&text);
}

fn masking(text: &str) {
    let once = mask(text).into_owned();
    assert_eq!(mask(&once), once, "masking again changes what is masked");
    // A mask stands for at least six characters, or it would be a way to make texts grow.
    assert!(once.len() <= text.len() * 2 + 16, "{} bytes became {}", text.len(), once.len());
}

fn fencing(text: &str) {
    let fenced = fence(&Kind::Other, text);
    let head = "Failure: other";
    let Some(quoted) = fenced.strip_prefix(head).filter(|rest| !rest.is_empty()) else {
        assert_eq!(fenced, head);
        return;
    };
    let (said, inside) = quoted.split_once("\n```text\n").expect("a fence opens");
    assert!(!said.contains('\n'));
    let inside = inside.strip_suffix("\n```").expect("a fence closes at the end");
    assert!(inside.chars().count() <= MAX_FENCED);
    assert!(!inside.contains(['`', '<', '>', '~']), "{inside:?}");
    assert!(!inside.chars().any(is_hidden), "{inside:?}");
    assert_eq!(fence(&Kind::GuardBlocked, text), "Failure: guard_blocked");
    assert_eq!(Injection::new(&fenced).as_str(), fenced);
}

fn injecting(text: &str) {
    let injection = Injection::new(text);
    assert!(injection.as_str().chars().count() <= Injection::MAX_CHARS);
    assert!(!injection.as_str().chars().any(|ch| ch != '\t' && is_hidden(ch)), "{injection:?}");
    assert_eq!(Injection::new(injection.as_str()), injection);
}

/// What a reader does not see, and a model does.
fn is_hidden(ch: char) -> bool {
    let invisible = matches!(ch,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    ch.is_control() && ch != '\n' || invisible
}
