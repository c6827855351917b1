use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::agent::Agent;
use super::args::ExecArgs;
use super::chains::PassedOver;
use super::escalation::{self, Escalations};
use super::narrator::{CommandEnd, Narrator, Voice};
use super::report::FinalReport;
use super::turns::{Failed, Left, Turns};
use super::{dry_run, exits, input, plan, session};
use crate::actors::{Clock, Outcome, SystemClock};
use crate::cli::unversioned::Unversioned;
use crate::cli::{Exit, Globals, output};
use crate::client::command::{self, Control, Limits, end_leftovers, listen};
use crate::engine::{StartError, StopCause};
use crate::failure::LaneKey;
use crate::state::StateError;
use crate::{EngineError, RecoveryConfig, RecoveryEngine, Runner, SessionId};

/// How long tasks may still take when everything is said: a hook that is being killed, the last output.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// Runs the verb.
pub(in crate::cli) fn run(args: &ExecArgs, globals: &Globals) -> Exit {
    let agent = match Agent::of(args) {
        Ok(agent) => agent,
        Err(error) => {
            output::error(&error);
            return Exit::Config;
        }
    };
    let (config, passed_over) = match plan::configuration(args, globals, &agent) {
        Ok(fitted) => fitted,
        Err(exit) => return exit,
    };
    if !args.fallback_model.is_empty() && !agent.takes_models() {
        let warning = "warning: a fallback model reaches the command only by {model} or BACKSTOP_MODEL";
        Voice::of(globals).say(warning);
    }
    if args.dry_run {
        return dry_run::show(args, globals, &dry_run::Fitted { config, passed_over, agent });
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::error(&error);
            return Exit::Failed;
        }
    };
    let exit = runtime.block_on(supervise(args, globals, config, passed_over, agent));
    runtime.shutdown_timeout(LAST_MOMENT);
    exit
}

/// How the tries ended.
enum End {
    Worked(Option<Arc<Outcome>>),
    Verdict(Arc<Outcome>),
    Refused(EngineError),
    Left { why: Left, stays_open: bool },
}

async fn supervise(
    args: &ExecArgs,
    globals: &Globals,
    config: RecoveryConfig,
    passed_over: PassedOver,
    mut agent: Agent,
) -> Exit {
    let started = Instant::now();
    let (voice, control) = (Voice::of(globals), Control::new());
    if let Err(error) = listen(&control) {
        output::error(&error);
        return Exit::Failed;
    }
    let silent = || voice.say("nothing comes on stdin: the command gets none (see --stdin)");
    tokio::select! {
        biased;
        asked = async { control.watch().first().await } => {
            return if asked.cancels > 0 { Exit::Cancelled } else { Exit::Suspended };
        }
        taken = input::take(args.stdin, silent) => match taken {
            Ok(stdin) => agent.stdin = stdin,
            Err(error @ input::InputError::TooLarge) => {
                output::error(&error);
                return Exit::Usage;
            }
            Err(error) => {
                output::error(&error);
                return Exit::Failed;
            }
        },
    }

    let id = args.session.clone().unwrap_or_else(session::fresh);
    let (call_host, mut escalations) = Escalations::new();
    let retention = config.limits().retention;
    let keeps = config.persist_state() && !args.no_state;
    let dir = session::directory(&globals.state_dir, &id);
    // Hooks are processes of their own, so nothing here can hold up the runtime that the engine lives on.
    let builder = RecoveryEngine::builder().config(config).runner(Runner::Inline).on_escalate(call_host);
    let is_new = keeps && !dir.exists();
    let unversioned = Unversioned::before_opening(&globals.state_dir);
    let builder = if keeps { builder.state_dir(&dir) } else { builder.in_memory() };
    let engine = match builder.spawn().await {
        Ok(engine) => engine,
        Err(error) => return not_opened(&error, &id, &dir),
    };

    let marker = dir.join("backstop").join("child");
    if keeps {
        unversioned.opened();
        let session = ("BACKSTOP_SESSION", id.as_str());
        if end_leftovers(&marker, session, Limits::default().grace).await {
            voice.say("an earlier run was killed: what was left of its command is ended");
        }
    }

    let mut turns = Turns::new(&agent, &engine, &voice, &control);
    turns.hooks = plan::hooks(args);
    turns.marker = keeps.then_some(marker);
    turns.lane = args.lane.as_deref().map(LaneKey::new);
    let end = drive(args, &id, &turns, passed_over).await;
    let Turns { exit: command, tries, .. } = turns;
    let ran = Ran { id: &id, command: command.into_inner(), tries: tries.get(), started, keeps };
    // Whatever it was to call is called by now.
    drop(engine);

    let mut exit = match &end {
        End::Worked(_) => Exit::Done,
        End::Verdict(outcome) => exits::of_verdict(&outcome.verdict, ran.command.as_ref()),
        End::Refused(EngineError::ShuttingDown) => Exit::Suspended,
        End::Refused(_) => Exit::Failed,
        End::Left { why: Left::Cancelled, .. } => Exit::Cancelled,
        End::Left { why: Left::Suspended, .. } => Exit::Suspended,
        End::Left { why: Left::NotStarted(error), .. } => {
            output::error(error);
            if error.exit_code() == 127 { Exit::NotFound } else { Exit::CannotStart }
        }
    };
    if exit == Exit::Escalated
        && let Some(command) = &args.on_escalate
        && let Some(outcome) = escalations.called().await
        && let Err(error) = escalation::tell(command, &outcome).await
    {
        output::error(&error);
    }

    let report = report(&end, &exit, &ran);
    voice.tell(&report);
    voice.say(&report.line());
    if let Some(path) = &args.report
        && let Err(error) = report.write(path)
    {
        output::note(format_args!("error: cannot write {}: {error}", path.display()));
        // The run itself counts, unless there is nothing to be said against it.
        exit = if exit == Exit::Done { Exit::Failed } else { exit };
    }
    if keeps {
        let never_began = matches!(end, End::Left { why: Left::NotStarted(_), stays_open: false });
        if (args.session.is_none() && nobody_needs(&end)) || (is_new && never_began) {
            session::forget(&globals.state_dir, &id);
        }
        session::sweep(&globals.state_dir, retention);
    }
    exit
}

/// Runs the turn until it works, a verdict falls, or something outside ends it; the engine is shut down then.
async fn drive(args: &ExecArgs, id: &SessionId, turns: &Turns<'_>, passed_over: PassedOver) -> End {
    let engine = turns.engine;
    let mut narrator = Narrator::new(turns.voice, engine.events(), passed_over);
    if engine.open_episodes().contains(id) {
        welcome_back(id, turns, &mut narrator).await;
    }
    let mut handle = engine.session(id.clone());
    if let Some(hooks) = &turns.hooks {
        handle = handle.client(Arc::clone(hooks) as _);
    }
    if let Some(lane) = &turns.lane {
        handle = handle.lane(lane.clone());
    }
    if let Some(limit) = args.deadline {
        handle = handle.deadline(limit);
    }
    let run = handle.report_found_with(Failed::report, Failed::found).run(async |turn| turns.one(turn).await);
    tokio::pin!(run);
    let mut cancelling = false;
    let end = loop {
        tokio::select! {
            biased;
            () = narrator.next() => {}
            result = &mut run => break match result {
                Ok(done) => End::Worked(done.recovery),
                Err(stopped) => match stopped.cause {
                    StopCause::Verdict(outcome) => End::Verdict(outcome),
                    StopCause::Engine(error) => End::Refused(error),
                },
            },
            why = turns.left(), if !cancelling => match why {
                Left::Cancelled if matches!(engine.cancel(id).await, Ok(true)) => cancelling = true,
                // Dropping the run without a shutdown cancels whatever there is.
                Left::Cancelled => break End::Left { why, stays_open: false },
                Left::Suspended | Left::NotStarted(_) => break End::Left { why, stays_open: true },
            },
        }
    };
    match end {
        End::Verdict(_) => turns.end_late().await,
        End::Worked(_) | End::Refused(_) | End::Left { .. } => turns.kill(),
    }
    if matches!(end, End::Worked(None)) && args.session.is_some() {
        // A turn that works ends the row of what failed before it (R16).
        let _not_counted = engine.turn_worked(id);
    }
    let open = shut_down(turns).await;
    narrator.catch_up().await;
    match end {
        End::Left { why, stays_open } => End::Left { why, stays_open: stays_open && open },
        end => end,
    }
}

/// Writes everything that is to be written, unless somebody insists; tells whether an episode stays open.
async fn shut_down(turns: &Turns<'_>) -> bool {
    let mut watch = turns.control.watch();
    let insists = async {
        loop {
            let asked = watch.asked();
            if asked.cancels + asked.suspends >= 2 {
                return;
            }
            watch.changed().await;
        }
    };
    tokio::select! {
        biased;
        shutdown = turns.engine.shutdown() => shutdown.open_episodes > 0,
        () = insists => true,
    }
}

async fn welcome_back(id: &SessionId, turns: &Turns<'_>, narrator: &mut Narrator<'_>) {
    let Ok(status) = turns.engine.status(id).await else { return };
    let Some(episode) = status.episode else { return };
    let most = turns.engine.config().limits().max_total_attempts;
    let (kind, used) = (&episode.kind, episode.executions);
    turns.voice.say(&format!("going on with session {id}: {kind}, {used} of {most} attempts are used"));
    turns.kind.replace(Some(episode.kind.clone()));
    if let Some(until) = episode.waits_until {
        let left = until.since(SystemClock.now());
        if !left.is_zero() {
            narrator.count(left, "the rest of the wait");
        }
    }
}

fn not_opened(error: &StartError, id: &SessionId, dir: &Path) -> Exit {
    if let StartError::State(StateError::Locked { holder, .. }) = error {
        let by = holder.map_or_else(String::new, |process| format!(" in process {process}"));
        output::note(format_args!("error: session {id} runs already{by}; its state is in {}", dir.display()));
        return Exit::Busy;
    }
    output::error(error);
    if matches!(error, StartError::State(_)) { Exit::State } else { Exit::Failed }
}

/// What is left of a run when the engine is gone.
struct Ran<'r> {
    id: &'r SessionId,
    /// How the command ended last.
    command: Option<command::Exit>,
    tries: u32,
    started: Instant,
    keeps: bool,
}

fn report<'a>(end: &'a End, exit: &Exit, ran: &Ran<'a>) -> FinalReport<'a> {
    let id = ran.id;
    let plain =
        |verdict, reason: &str| FinalReport { reason: reason.to_owned(), ..FinalReport::new(id, verdict, exit) };
    let mut report = match end {
        End::Worked(None) => plain("worked", "worked"),
        End::Worked(Some(outcome)) | End::Verdict(outcome) => FinalReport::new(id, "", exit).with_outcome(outcome),
        End::Refused(error) => plain("failed", &error.to_string()),
        End::Left { why: Left::Cancelled, .. } => plain("cancelled", "cancelled"),
        End::Left { why: Left::NotStarted(_), .. } => plain("not_started", "the command was not started"),
        End::Left { why: Left::Suspended, stays_open: false } => {
            plain("suspended", "suspended with nothing under recovery: the next run starts anew")
        }
        End::Left { why: Left::Suspended, .. } => plain("suspended", "suspended"),
    };
    let resumes = matches!(end, End::Left { stays_open: true, .. });
    report.resume = match (resumes, ran.keeps) {
        (true, true) => Some(format!("go on with: backstop exec --session {} …", output::quoted(id.as_str()))),
        (true, false) => Some("nothing was kept on disk, so it cannot go on".to_owned()),
        (false, true) if matches!(end, End::Verdict(_)) && !nobody_needs(end) => Some(format!("session {id}")),
        (false, _) => None,
    };
    report.command = CommandEnd::of(ran.command.as_ref());
    report.tries = ran.tries;
    report.elapsed_ms = u64::try_from(ran.started.elapsed().as_millis()).unwrap_or(u64::MAX);
    report
}

/// Whether the session ended so that there is nothing to look at or to go on with.
fn nobody_needs(end: &End) -> bool {
    use crate::Verdict;
    match end {
        End::Worked(_) => true,
        End::Verdict(outcome) => {
            matches!(outcome.verdict, Verdict::Recovered(_) | Verdict::Cancelled | Verdict::Unhandled(_))
        }
        End::Left { stays_open, .. } => !stays_open,
        End::Refused(_) => false,
    }
}
