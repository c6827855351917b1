use clap::Args;

/// Serve a host in any language: one JSON object a line in, one a line out, many sessions at once.
///
/// The host redoes its turns itself. It reports each failure and gets a directive: redo, or stop.
///
///   {"session":"s1","error":"429 Too Many Requests","id":7}
///   → {"id":7,"session":"s1","episode":1,"seq":1,"action":"redo","wait_ms":1630,
///      "not_before":1767225601630,"redo":1,"degraded":false,"skip":false,"injections":[]}
///
/// Wait until `not_before` (milliseconds since 1970; `wait_ms` is the same from now on), do the
/// `remedy` if there is one, give the agent the `injections`, redo the turn with `model` and
/// `truncate_to` where they are given, and say how it went:
///
///   {"op":"succeeded","session":"s1","seq":1}
///   → {"session":"s1","episode":1,"seq":1,"action":"stop","verdict":"recovered",…}
///
///   {"session":"s1","seq":1,"error":{"message":"Overloaded","status":529}}
///   → the next directive; at the end "action":"stop" with a verdict and its reason
///
/// Answers come as they are ready, not in the order of the lines: give each line an `id` of any
/// kind, and its answer carries it. What is said about one session is taken in the order in which
/// it is said.
///
///   op         fields besides id and session (* takes no session)
///   report     error (any JSON), seq, turn, status, exit_code, signal, cancelled, source,
///              provider, model, tool, lane, explain (true: the directive carries every
///              decision); `op` may be left out
///   succeeded  seq: the redone turn worked
///   declined   seq, reason: the remedy cannot be done; the answer says what to do instead
///   worked     a turn worked outside of recovery: an earlier recovery held
///   cancel     stop recovering; `cancelled` tells whether there was anything to stop
///   reset      forget the session
///   status     where the session is
///   admit *    lane, wait_ms: wait for the right to start a turn on a lane; the answer is
///              "action":"go" with a `permit`, or "wait" with a new `not_before`
///   release *  permit: that turn has ended
///   open *     sessions whose episode was open when backstop last ended; report again to go on
///   metrics *  what recovery has done so far
///   shutdown * as the end of input
///
/// A line that cannot be taken is answered by {"error":{"code","message","help","line"}}, and
/// nothing else happens. The end of input drains: everything is answered and written, and the
/// exit code is 0. SIGTERM and SIGINT suspend: open episodes stay open and go on with the next
/// start.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(in crate::cli) struct PipeArgs {
    /// Keep nothing on disk.
    #[arg(long)]
    pub no_state: bool,
    /// Let every directive carry the decisions that led to it.
    #[arg(long)]
    pub explain: bool,
}
