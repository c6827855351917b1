use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::exec::session::directories;
use super::human::{ago, escaped, moment, short, span, table};
use super::{Exit, Globals, journal, output};
use crate::actors::{Clock, SystemClock};
use crate::failure::{SessionId, Timestamp, mask};
use crate::policy::RecoveryAttempt;
use crate::policy::machine::PhaseName;
use crate::policy::session::SessionMemory;
use crate::state::{FileStore, Inspection, RecoveryState, RecoveryStateStore, SessionSummary, StateError, StateRecord};

/// Look at the sessions of a state directory, or reset one.
///
/// The sessions are those of hosts and `pipe` in the directory itself, and those of `exec`, which have one
/// each inside it. Looking works beside a running process and changes nothing. A reset needs the directory for itself:
/// exit code 4 says that another process has it.
#[derive(Debug, Args)]
pub(super) struct SessionsArgs {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// One line a session (the default).
    List,
    /// Everything that is remembered of one session.
    Show {
        /// The session's id.
        #[arg(allow_hyphen_values = true)]
        id: String,
    },
    /// What was decided for one session, when and why: its lines of the journal, oldest first.
    Journal {
        /// The session's id.
        #[arg(allow_hyphen_values = true)]
        id: String,
    },
    /// Forget a session's open episode, verdict, budget and strikes.
    Reset {
        /// The session's id.
        #[arg(allow_hyphen_values = true)]
        id: String,
    },
}

/// A place where sessions are kept.
struct Place {
    dir: PathBuf,
    keeper: &'static str,
    inspection: Inspection,
}

pub(super) fn run(args: &SessionsArgs, globals: &Globals) -> Exit {
    if let Some(What::Journal { id }) = &args.what {
        return journal::run(id, globals);
    }
    let places = match places(&globals.state_dir) {
        Ok(places) => places,
        Err(error) => return refused(&error),
    };
    match &args.what {
        None | Some(What::List | What::Journal { .. }) => list(&places, globals, SystemClock.now()),
        Some(What::Show { id }) => with_session(id, &places, globals, |_, record| show(record, globals)),
        Some(What::Reset { id }) => with_session(id, &places, globals, |place, record| reset(&place.dir, record)),
    }
}

/// The state directory itself, used by hosts and `pipe`, and those of `exec` inside it, one a session.
fn places(state_dir: &Path) -> Result<Vec<Place>, StateError> {
    let place = |dir: PathBuf, keeper| {
        let inspection = FileStore::inspect(&dir)?;
        if inspection.unreadable_bytes() > 0 {
            let (bytes, dir) = (inspection.unreadable_bytes(), dir.display());
            output::note(format_args!(
                "warning: {bytes} bytes of the log in {dir} do not read; newer states may be missing"
            ));
        }
        Ok(Place { dir, keeper, inspection })
    };
    let mut places = vec![place(state_dir.to_owned(), "host")?];
    for dir in directories(state_dir) {
        match place(dir, "exec") {
            Ok(one) => places.push(one),
            // One that does not read hides no other.
            Err(error) => output::note(format_args!("warning: {}", output::with_causes(&error))),
        }
    }
    Ok(places)
}

/// Does something with a session wherever it is kept: `exec` and a host may use the same id.
fn with_session(
    id: &str,
    places: &[Place],
    globals: &Globals,
    what: impl Fn(&Place, &StateRecord) -> Result<(), StateError>,
) -> Exit {
    let Ok(session) = SessionId::new(id) else {
        output::note("error: a session id must not be empty");
        return Exit::Usage;
    };
    let found: Vec<_> = places.iter().filter_map(|place| Some((place, place.inspection.load(&session)?))).collect();
    if found.is_empty() {
        output::note(format_args!("error: no session \"{}\" in {}", escaped(id), globals.state_dir.display()));
        return Exit::Problems;
    }
    let mut exit = Exit::Done;
    for (place, record) in found {
        if let Err(error) = what(place, &record) {
            exit = refused(&error);
        }
    }
    exit
}

pub(super) fn refused(error: &StateError) -> Exit {
    output::error(error);
    match error {
        StateError::Locked { .. } => {
            output::note(
                "stop that process and try again, or have it reset the session itself: `pipe` takes a reset \
                 request, an engine `reset`, and `exec` starts afresh with another --session",
            );
            Exit::Busy
        }
        StateError::Unreadable { .. } => Exit::Problems,
        _ => Exit::State,
    }
}

fn list(places: &[Place], globals: &Globals, now: Timestamp) -> Exit {
    let sessions: Vec<(&Place, SessionSummary)> =
        places.iter().flat_map(|place| place.inspection.list().into_iter().map(move |one| (place, one))).collect();
    if globals.json {
        let sessions: Vec<Value> = sessions.iter().map(|(place, session)| summary_json(place, session)).collect();
        output::json_line(&json!({"state_dir": globals.state_dir, "now": now, "sessions": sessions}));
    } else if sessions.is_empty() {
        output::line(format_args!("no sessions in {}", globals.state_dir.display()));
    } else {
        let rows: Vec<_> = sessions.iter().map(|(place, session)| row(session, place.keeper, now)).collect();
        output::line(table(["SESSION", "OF", "STATE", "ATTEMPTS", "CHANGED", "DETAIL"], &rows).trim_end());
    }
    Exit::Done
}

fn summary_json(place: &Place, session: &SessionSummary) -> Value {
    let mut line = json!(session);
    line["of"] = place.keeper.into();
    line["dir"] = place.dir.display().to_string().into();
    line
}

fn row(session: &SessionSummary, keeper: &str, now: Timestamp) -> [String; 6] {
    /// Longer ids and texts would break the table; `--json` has them whole.
    const SHOWN: usize = 48;
    let id = short(&escaped(session.session.as_str()), SHOWN);
    if !session.readable {
        let none = String::new;
        return [id, keeper.into(), "unreadable".into(), none(), none(), "written by another version?".into()];
    }
    let (state, detail) = match (&session.phase, &session.verdict) {
        (Some(phase), _) => (phase_word(*phase), session.waits_until.map(|until| waits(until, now))),
        (None, Some(verdict)) => (verdict.name(), Some(foreign(&verdict.to_string()))),
        (None, None) => ("at rest", None),
    };
    [
        id,
        keeper.to_owned(),
        state.to_owned(),
        session.attempts.to_string(),
        session.updated.map(|then| ago(then, now)).unwrap_or_default(),
        short(&detail.unwrap_or_default(), SHOWN),
    ]
}

fn waits(until: Timestamp, now: Timestamp) -> String {
    if until <= now { "its wait is over".to_owned() } else { format!("{} more to wait", span(until.since(now))) }
}

/// The word that state files use.
const fn phase_word(phase: PhaseName) -> &'static str {
    match phase {
        PhaseName::Acting => "acting",
        PhaseName::Waiting => "waiting",
        PhaseName::Asking => "asking",
        PhaseName::Parked => "parked",
        PhaseName::Redoing => "redoing",
        PhaseName::Finished => "finished",
    }
}

/// Words of strategies and failures: masked where they were written, and here again.
pub(super) fn foreign(text: &str) -> String {
    escaped(&mask(text))
}

fn show(record: &StateRecord, globals: &Globals) -> Result<(), StateError> {
    let Some(memory) = record.read()? else { return Ok(()) };
    let state = RecoveryState::of(&record.session, &memory);
    if globals.json {
        output::json_line(&as_json(record, &memory, state.as_ref()));
    } else {
        output::line(as_text(record, &memory, state.as_ref(), SystemClock.now()).trim_end());
    }
    Ok(())
}

fn as_json(record: &StateRecord, memory: &SessionMemory, state: Option<&RecoveryState>) -> Value {
    json!({
        "session": record.session,
        "revision": record.revision,
        "episodes": memory.episodes(),
        "recoveries_in_window": memory.history().recoveries(),
        "strikes": memory.history().strikes().map_or(0, |strikes| strikes.at.len()),
        "last_verdict": memory.last_verdict(),
        "state": state,
    })
}

fn as_text(record: &StateRecord, memory: &SessionMemory, state: Option<&RecoveryState>, now: Timestamp) -> String {
    let mut text = format!("session {}\n", escaped(record.session.as_str()));
    let mut row = |head: &str, value: String| text += &format!("  {head:<12}{value}\n");
    if let Some(episode) = state.and_then(|state| state.episode.as_ref()) {
        let wait = episode.waits_until.map(|until| format!(", {}", waits(until, now))).unwrap_or_default();
        row("state", format!("{}{wait}", phase_word(episode.phase)));
        row("chain", escaped(&episode.chain.to_string()));
        row("begun", format!("{} ({})", moment(episode.started), ago(episode.started, now)));
        if let Some(deadline) = episode.deadline {
            row("deadline", moment(deadline));
        }
        row("so far", format!("{} attempts, {} redos", episode.executions, episode.redos));
    } else if let Some(verdict) = state.and_then(|state| state.verdict.as_ref()) {
        row("verdict", foreign(&verdict.text));
        row("ended", format!("{} ({})", moment(verdict.at), ago(verdict.at, now)));
        row("attempts", verdict.executions.to_string());
    } else {
        let last = memory.last_verdict().map_or_else(|| "none".to_owned(), |verdict| foreign(&verdict.to_string()));
        row("state", "at rest".to_owned());
        row("last verdict", last);
    }
    if let Some(error) = state.and_then(|state| state.last_error.as_ref()) {
        row("failure", format!("{} / {}", error.category, escaped(error.kind.as_str())));
        row("", foreign(&error.message));
    }
    row("episodes", format!("{}, {} in the window", memory.episodes(), memory.history().recoveries()));
    if let Some(strikes) = memory.history().strikes() {
        row("strikes", format!("{} of the same failure in a row", strikes.at.len()));
    }
    match state {
        Some(state) if !state.attempts.is_empty() => text + "\n" + &attempts(state, now),
        _ => text,
    }
}

fn attempts(state: &RecoveryState, now: Timestamp) -> String {
    let row = |attempt: &RecoveryAttempt| {
        [
            attempt.seq.to_string(),
            ago(attempt.timestamp, now),
            escaped(attempt.error_type.as_str()),
            format!("{}. {}", attempt.chain_position + 1, escaped(&attempt.strategy)),
            escaped(&attempt.result),
            foreign(attempt.message.as_deref().unwrap_or_default()),
        ]
    };
    let rows: Vec<_> = state.attempts.iter().map(row).collect();
    table(["ATTEMPT", "WHEN", "FAILURE", "STEP", "ANSWER", "MESSAGE"], &rows)
}

fn reset(dir: &Path, record: &StateRecord) -> Result<(), StateError> {
    let (mut store, notes) = FileStore::open(dir, Default::default())?;
    for note in notes {
        output::note(format_args!("warning: {note}"));
    }
    // The holder may have gone on between the look and the lock.
    let current = store.load(&record.session)?.unwrap_or_else(|| record.clone());
    let memory = current.read().ok().flatten();
    let revision = current.revision + 1;
    let next = match memory {
        Some(mut memory) => {
            memory.reset();
            StateRecord::new(current.session, revision, &memory)
        }
        // What does not read fences nothing either.
        None => StateRecord::forgotten(current.session, revision),
    };
    store.append(std::slice::from_ref(&next))?;
    // The readable copy goes too; should that fail, the next start sees to it.
    if let Err(error) = store.refresh_views(usize::MAX) {
        output::note(format_args!("warning: {}", output::with_causes(&error)));
    }
    store.close()?;
    output::line(format_args!("session {} is reset", escaped(record.session.as_str())));
    Ok(())
}
