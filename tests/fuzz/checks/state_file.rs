//! State files of the original and of our own: taken over, or refused (R10).

use backstop::failure::mask;
use backstop::state::RecoveryState;
use backstop::state::decode::import;

/// The input is the content of a file.
pub fn check(input: &[u8]) {
    let Some(record) = import("recovery-s1.json", input) else { return };
    assert_eq!(record.session.as_str(), "s1", "a file speaks of its own session only");
    let memory = record.read().expect("what is imported reads").expect("and is no farewell");
    let kept = memory.kept().expect("it is a past episode");
    assert!(!kept.attempts.is_empty());
    assert!(kept.attempts.iter().zip(1..).all(|(attempt, seq)| attempt.episode == 1 && attempt.seq == seq));
    assert!(memory.open_episode().is_none(), "nothing runs because of a file");
    let view = RecoveryState::of(&record.session, &memory).expect("a kept verdict is shown");
    let json = view.to_json(RecoveryState::MAX_BYTES).expect("it fits");
    assert!(json.len() <= RecoveryState::MAX_BYTES);
    let messages = view.attempts.iter().filter_map(|attempt| attempt.message.as_deref());
    // A cut can make a word's edge that was none, and so what only looks like a secret.
    let messages = messages.filter(|message| message.len() < 1_900);
    messages.for_each(|message| assert_eq!(mask(message), message, "masked"));
    // Taken over again, it says the same.
    let again = import("recovery-s1.json", &json).expect("our own view is taken over as well");
    let again = again.read().expect("reads").expect("is kept");
    assert_eq!(again.kept().map(|kept| &kept.verdict), Some(&kept.verdict));
}
