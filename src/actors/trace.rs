//! What the log says of an episode: a span for its life, an event for each decision (R15). Fields name
//! things; what failures, strategies and hosts said stays out of them, and what is named is masked (R12).

use tracing::{Level, Span};

use crate::failure::{RecoveryError, SessionId, mask};
use crate::policy::Verdict;
use crate::policy::machine::{Note, NoteKind};

/// The span of an episode. It costs nothing while nobody listens.
pub(super) fn span_of(session: &SessionId, episode: u64, error: &RecoveryError) -> Span {
    tracing::info_span!(
        "episode",
        session = &*mask(session.as_str()),
        episode,
        kind = &*mask(error.kind.as_str()),
        category = error.category.as_str(),
        fingerprint = error.fingerprint,
        pattern = &*mask(&error.pattern),
    )
}

/// Whether anybody wants to hear of decisions or of verdicts.
pub(super) fn is_heard() -> bool {
    tracing::enabled!(Level::INFO)
}

/// One decision of an episode, in its span.
pub(super) fn decided(span: &Span, note: &Note) {
    let seq = note.seq;
    let _in_it = span.enter();
    match &note.what {
        NoteKind::ChainChosen { kind, chain, origin, .. } => {
            let (kind, origin) = (mask(kind.as_str()), mask(origin));
            tracing::debug!(seq, decision = "chain_chosen", kind = &*kind, %chain, origin = &*origin);
        }
        NoteKind::NoChain { kind, .. } => tracing::debug!(seq, decision = "no_chain", kind = &*mask(kind.as_str())),
        NoteKind::StepSkipped { step, strategy, .. } => {
            tracing::debug!(seq, decision = "step_skipped", step, strategy = &*mask(strategy));
        }
        NoteKind::Answered { step, strategy, attempt, status, .. } => {
            let (strategy, status) = (mask(strategy), &**status);
            tracing::debug!(seq, decision = "answered", step, strategy = &*strategy, attempt, status);
        }
        NoteKind::Waits { delay, .. } => tracing::debug!(seq, decision = "waits", delay_ms = delay.as_millis()),
        NoteKind::WaitRefused { delay, .. } => {
            tracing::debug!(seq, decision = "wait_refused", delay_ms = delay.as_millis());
        }
        NoteKind::Parked { lane, until } => {
            let until_ms = until.as_millis();
            tracing::debug!(seq, decision = "parked", lane = &*mask(lane.as_str()), until_ms);
        }
        NoteKind::RemedyFailed { .. } => tracing::debug!(seq, decision = "remedy_failed"),
        NoteKind::Redone { redo } => tracing::debug!(seq, decision = "redone", redo),
        NoteKind::FailedAgain { kind } => {
            tracing::debug!(seq, decision = "failed_again", kind = &*mask(kind.as_str()));
        }
        NoteKind::Remark { .. } => tracing::debug!(seq, decision = "remark"),
        NoteKind::Ended { verdict } => tracing::info!(seq, decision = "ended", verdict = verdict.name()),
    }
}

/// A failure that opened no episode.
pub(super) fn refused(session: &SessionId, verdict: &Verdict) {
    tracing::info!(session = &*mask(session.as_str()), verdict = verdict.name(), "no episode");
}
