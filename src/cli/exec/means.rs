use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::agent::Agent;
use super::args::ExecArgs;

/// A longer file is no script that somebody wrote around an agent.
const MAX_SCRIPT: u64 = 1024 * 1024;

/// What a run can carry out, beyond starting the command again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    /// Hooks.
    pub compact: bool,
    pub summarize: bool,
    pub rollback: bool,
    /// What recovery tells the agent reaches it.
    pub inject: bool,
}

impl Means {
    pub fn of(args: &ExecArgs, agent: &Agent) -> Self {
        Self {
            compact: args.on_compact.is_some(),
            summarize: args.on_summarize.is_some(),
            rollback: args.on_rollback.is_some(),
            inject: agent.takes_injections(),
        }
    }

    /// What is missing for this strategy: without it the same command would run again, at full price, or not
    /// even that.
    pub fn lacks(&self, strategy: &str) -> Option<&'static str> {
        match strategy {
            "compact" if !self.compact => Some("no --on-compact"),
            "rollback" if !self.rollback => Some("no --on-rollback"),
            "summarize" if !self.summarize && !self.inject => Some("no --on-summarize, no {inject} to ask for it"),
            "truncate" if !self.inject => Some("no {inject} to ask for it"),
            _ => None,
        }
    }
}

/// Whether the command reads `BACKSTOP_…` variables, as far as can be seen: one of its words names them, or is a
/// script that does.
pub(super) fn reads_variables(words: &[OsString]) -> bool {
    words.iter().any(|word| holds(word.as_encoded_bytes()) || is_script(Path::new(word)))
}

fn is_script(path: &Path) -> bool {
    // Only a regular file: reading anything else may wait, or take what is the command's.
    let is_small = fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_SCRIPT);
    is_small && fs::read(path).is_ok_and(|text| holds(&text))
}

fn holds(text: &[u8]) -> bool {
    const NAMES: &[u8] = b"BACKSTOP_";
    text.windows(NAMES.len()).any(|window| window == NAMES)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_reads_the_variables_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            path.into_os_string()
        };
        let reads = script("reads", "#!/bin/sh\nagent --cut \"$BACKSTOP_TRUNCATE_TO\"\n");
        let does_not = script("does-not", "#!/bin/sh\nagent\n");
        assert!(reads_variables(&["sh".into(), reads]));
        assert!(reads_variables(&["sh".into(), "-c".into(), "echo $BACKSTOP_INJECT".into()]));
        assert!(!reads_variables(&["sh".into(), does_not, "no-such-file".into(), dir.path().into()]));
    }

    #[test]
    fn a_command_that_takes_nothing_can_only_be_run_again() {
        let none = Means { compact: false, summarize: false, rollback: false, inject: false };
        for strategy in ["compact", "rollback", "summarize", "truncate"] {
            assert!(none.lacks(strategy).is_some(), "{strategy}");
        }
        for strategy in ["retry", "remind_and_retry", "fallback_model", "degrade", "escalate", "their_own"] {
            assert_eq!(none.lacks(strategy), None, "{strategy}");
        }
        let told = Means { inject: true, ..none };
        assert_eq!((told.lacks("truncate"), told.lacks("summarize")), (None, None));
    }
}
