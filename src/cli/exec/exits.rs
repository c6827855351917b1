use crate::cli::Exit;
use crate::client::command;
use crate::policy::{Cause, Verdict};

/// The exit code of a run that a verdict ended; `child` is how the command itself ended last.
pub(super) fn of_verdict(verdict: &Verdict, child: Option<&command::Exit>) -> Exit {
    match verdict {
        Verdict::Recovered(_) => Exit::Done,
        Verdict::Aborted { .. } => Exit::Aborted,
        Verdict::Exhausted { cause: Cause::Deadline } => Exit::TooLate,
        Verdict::Exhausted { cause: Cause::Chain | Cause::Attempts } => Exit::Exhausted,
        Verdict::Escalated { .. } => Exit::Escalated,
        Verdict::Cancelled => Exit::Cancelled,
        Verdict::Unhandled(_) => match child {
            // It failed although it said otherwise: no script may take that for success.
            None | Some(command::Exit::Code(0) | command::Exit::NotStarted) => Exit::Failed,
            Some(own) => Exit::Command(own.clone()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Unhandled;

    #[test]
    fn an_unhandled_failure_ends_with_the_commands_own_code() {
        let verdict = Verdict::Unhandled(Unhandled::NoChain);
        let code = |exit| of_verdict(&verdict, Some(&exit)).code();
        assert_eq!(code(command::Exit::Code(42)), 42);
        assert_eq!(code(command::Exit::Signal("SIGKILL".into())), 137);
    }

    #[test]
    fn a_failure_with_exit_code_0_is_not_passed_on_as_success() {
        let verdict = Verdict::Unhandled(Unhandled::Disabled);
        assert_eq!(of_verdict(&verdict, Some(&command::Exit::Code(0))).code(), 1);
    }

    #[test]
    fn a_deadline_has_a_code_of_its_own() {
        assert_eq!(of_verdict(&Verdict::Exhausted { cause: Cause::Deadline }, None), Exit::TooLate);
        assert_eq!(of_verdict(&Verdict::Exhausted { cause: Cause::Attempts }, None), Exit::Exhausted);
    }
}
