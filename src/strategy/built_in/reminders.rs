//! What to tell a model about each kind of failure: fixed texts, so that nothing of a failure's own
//! words reaches a prompt from here.

use crate::failure::{Category, Kind, RecoveryError};

/// The text that fits this failure: its kind's, else its category's.
pub(super) fn for_failure(error: &RecoveryError) -> &'static str {
    for_kind(&error.kind).unwrap_or(for_category(error.category))
}

fn for_kind(kind: &Kind) -> Option<&'static str> {
    KINDS.iter().find(|(of, _)| of == kind).map(|(_, text)| *text)
}

const KINDS: &[(Kind, &str)] = &[
    (
        Kind::EditNotFound,
        "The text to be replaced is not in the file. Read the file again and copy the passage exactly, white space \
         included, before you edit.",
    ),
    (
        Kind::EditMultipleMatches,
        "The text to be replaced occurs more than once. Include enough of the lines around it to name one place.",
    ),
    (
        Kind::EditNoChange,
        "The edit would change nothing. Check whether the change is already in the file; if not, give a replacement \
         that differs.",
    ),
    (Kind::EditStaleFile, "The file changed since you read it. Read it again, then redo the edit on what it says now."),
    (
        Kind::EditBadPatch,
        "The patch is malformed or does not apply. Read the file again and write a smaller patch with exact context \
         lines.",
    ),
    (Kind::JsonSyntax, "Your JSON does not parse. Write one complete JSON value and nothing around it."),
    (
        Kind::JsonTruncated,
        "Your JSON breaks off. Write it again, shorter or in several smaller calls, and close every bracket.",
    ),
    (
        Kind::SchemaMismatch,
        "Your arguments do not fit the schema. Check the names, types and required fields of the tool, then call it \
         again.",
    ),
    (Kind::EmptyResponse, "Your last reply was empty. Answer now, or call the tool that you need."),
    (Kind::OutputLimit, "Your reply was cut off at the output limit. Go on in smaller parts."),
    (
        Kind::FileNotFound,
        "A file that was needed does not exist. List the folder to find the right path before you use it.",
    ),
    (Kind::ToolUnavailable, "That tool does not exist here. Use only the tools that you were given."),
    (Kind::ToolTimeout, "The tool took too long. Ask it for less at once, or reach the goal another way."),
    (Kind::ToolFailed, "The tool failed. Check its arguments, and do not repeat the call unchanged."),
    (
        Kind::InvalidGeneration,
        "What you generated is not valid. Check it against the language's rules, correct it, and submit all of it.",
    ),
    (
        Kind::ProcessFailed,
        "The command ended with a failure. Find its cause in the output and mend that before you run it again.",
    ),
    (
        Kind::VerificationFailed,
        "The checks did not pass. Mend the cause of the first failure, and leave the checks as they are.",
    ),
];

const fn for_category(category: Category) -> &'static str {
    match category {
        Category::SessionError => "The last step failed. Check what it did, correct it, and go on.",
        Category::ContextWindow => {
            "The conversation is too long. Go on with the essential facts and keep replies short."
        }
        Category::EditError => "The edit could not be applied. Read the file again before you redo it.",
        Category::JsonError => "Your JSON could not be used. Check its syntax and fields, then send it again.",
        Category::EmptyResponse => "Nothing came back. Answer now, or call the tool that you need.",
        Category::ToolPair => "A tool call lacks its result. Call the tool again and wait for what it returns.",
        Category::GuardViolation => "The last step was refused. Do not repeat it; reach the goal within the rules.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::config::built_in_chains;
    use crate::policy::{ChainKey, Injection};

    #[test]
    fn every_kind_that_is_reminded_by_default_has_words_of_its_own() {
        for chain in built_in_chains() {
            let reminds = chain.steps.iter().any(|step| &*step.strategy == "remind_and_retry");
            if let (true, ChainKey::Kind(kind)) = (reminds, &chain.key) {
                assert!(for_kind(kind).is_some(), "{kind}");
            }
        }
        for kind in Kind::BUILT_IN {
            let correctable = [Category::EditError, Category::JsonError, Category::EmptyResponse];
            if kind.usual_category().is_some_and(|category| correctable.contains(&category)) {
                assert!(for_kind(kind).is_some(), "{kind}");
            }
        }
    }

    #[test]
    fn no_reminder_is_cut_and_no_kind_has_two() {
        for (place, (kind, text)) in KINDS.iter().enumerate() {
            assert!(text.chars().count() <= Injection::MAX_CHARS / 10, "{kind}");
            assert!(KINDS[place + 1..].iter().all(|(other, _)| other != kind), "{kind}");
        }
    }
}
