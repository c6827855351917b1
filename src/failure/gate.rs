//! Whether a value is a failure at all (R1), before any rule names it.

use std::sync::LazyLock;

use super::evidence::{Evidence, Shape};
use super::knowledge::knowledge;
use super::lexicon::Words;
use super::search::Search;
use super::text::head;

/// How much of a first line tells what a text is.
const MAX_FIRST_LINE: usize = 600;
/// Shorter than this is a text that says nothing but that somebody stopped.
const MAX_STOPPED: usize = 2000;

/// The gate's answer, with the name of the rule that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Rules may name it; without one it is of kind `other`.
    Failure,
    /// Rules may name it; without one it is a failure only if it sounds like one.
    Reported,
    /// Nothing came back.
    Empty(&'static str),
    /// Stopped by a person or the host.
    Cancelled(&'static str),
    /// Ordinary output.
    Ordinary(&'static str),
}

fn any(patterns: &[&str]) -> Search {
    Search::bare(&format!("(?im){}", patterns.join("|")))
}

/// What the gate looks for anywhere in a text.
#[derive(Debug)]
pub(crate) struct Marks {
    stopped: Vec<Search>,
    not_by_a_person: Vec<Search>,
    reports: Vec<Search>,
}

impl Marks {
    pub(crate) fn new(words: &mut Words) -> Self {
        let mut each = |patterns: &[&str], flags: &str| {
            patterns.iter().map(|pattern| Search::new(&format!("{flags}{pattern}"), words)).collect()
        };
        Self {
            stopped: each(STOPPED_TEXT, "(?im)"),
            not_by_a_person: each(NOT_BY_A_PERSON, "(?im)"),
            reports: each(REPORTS, "(?m)"),
        }
    }

    #[cfg(test)]
    pub(crate) fn searches(&self) -> impl Iterator<Item = &Search> {
        self.stopped.iter().chain(&self.not_by_a_person).chain(&self.reports)
    }
}

fn one_found(searches: &[Search], evidence: &Evidence) -> bool {
    searches.iter().any(|search| search.is_found(evidence.text(), evidence.scan()))
}

/// Machine words of a stop that was wanted.
const STOPPED: &[&str] = &[
    "aborterror",
    "messageabortederror",
    "apiuseraborterror",
    "apiuseraborted",
    "abort_err",
    "cancellederror",
    "cancelederror",
    "operationcancelled",
    "operationcancelledexception",
    "taskcanceledexception",
    "request_cancelled",
    "finish:aborted",
    "err_canceled",
    "keyboardinterrupt",
];

/// Whole messages of a stop that was wanted.
const STOPPED_TEXT: &[&str] = &[
    concat!(
        r"^(?:\w*error: )?(?:the |this )?(?:user )?(?:request|operation|tool execution|tool call",
        r"|task|run|turn|generation|prompt|query|execution|command|response|stream|agent) (?:was ",
        r"|has been |is )?(?:aborted|cancell?ed|interrupted)(?: by (?:the )?user)?[.!]?$"
    ),
    r"^\[?request interrupted by user",
    concat!(
        r"\b(?:signal is aborted without reason|this operation was aborted|interrupted by (?:the",
        r" )?user|cancell?ed by (?:the )?user|aborted by (?:the )?user|user (?:aborted|cancell?ed",
        r"|interrupted))\b"
    ),
    concat!(
        r"^(?:\w+: )?(?:AbortError|CancelledError|asyncio\.exceptions\.CancelledError",
        r"|APIUserAbortError|KeyboardInterrupt)\b"
    ),
    r"^(?:error: )?request was aborted\.?$",
    r"^\^C$",
    r"^(?:操作已取消|用户取消|请求已取消|已中断|キャンセルされました|ユーザーによって中断)",
];

/// Something else than a person stopped it.
const NOT_BY_A_PERSON: &[&str] = &[r"time[d ]?-?out\b", r"\bdeadline\b", r"\btimeout"];

/// A text that by its start reports an error, whatever else stands in it.
static STARTS_AS_REPORT: LazyLock<Search> = LazyLock::new(|| {
    Search::bare(concat!(
        r"\A(?i:[\W_]*(?:api |http |stream |agent |mcp |tool |fatal |server |internal |the",
        r" )*(?:error|fatal|panic|exception|failed|failure|invalid|cannot|can't|could not",
        r"|unable)\b)",
        r"|\A[\w.:]*(?:Error|Exception|Timeout|Fault)\b",
        r"|\A[\[<]?[45]\d\d[\]>]?(?:[ :]|\z)",
        r"|\A# (?i:[^\n]{0,60}\b(?:failed|errors?)\b)",
    ))
});

/// Lines that make a text such a report.
const REPORTS: &[&str] = &[
    r"^Traceback \(most recent",
    r"^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)(?: \[\w+\])?: ",
    r"^\[?\d{4}-\d\d-\d\d[T ][\d:.,]+Z?\]? ?\|? ?(?:ERROR|FATAL|CRITICAL)",
];

/// Several marks, each with its name, and one regex of all: most texts bear none.
struct About {
    any: Search,
    each: Vec<(&'static str, Search)>,
}

impl About {
    fn new(all: [(&'static str, Vec<&'static str>); 9]) -> Self {
        let patterns: Vec<&str> = all.iter().flat_map(|(_, patterns)| patterns).copied().collect();
        // Over one line, so that its start and end are those of the text.
        let first_line = |patterns: &[&str]| Search::bare(&format!("(?i){}", patterns.join("|")));
        let each = all.iter().map(|(name, patterns)| (*name, first_line(patterns))).collect();
        Self { any: first_line(&patterns), each }
    }

    /// The name of the first mark that this line bears.
    fn of(&self, line: &str) -> Option<&'static str> {
        if !self.any.is_match(line) {
            return None;
        }
        self.each.iter().find(|(_, marks)| marks.is_match(line)).map(|(name, _)| *name)
    }
}

/// Marks of text that speaks about errors and is none, in its first line.
static ABOUT: LazyLock<About> = LazyLock::new(|| {
    About::new([
        (
            "source_code",
            vec![
                r"^\s*(?://|/\*|\* |#!|\d+[:|\t]\s?(?:\w|//))",
                concat!(
                    r"^\s*(?:export |pub |async |private |public |static )*(?:class|fn|function|def|impl",
                    r"|interface|struct|enum|const|let|var|import|package|return|if|for|while|match|catch|try",
                    r"|except|elif|switch)\b.{0,120}[{;:(]\s*$"
                ),
                r"\b(?:if|else if|elif) ?\(?[\w.]+ ?(?:===?|!==?|>=?|<=?) ?",
                r"\bthrow new \w+",
                r"=> ?\{",
                r"^\s*(?:assert|expect|describe|it|test)\w*\(",
            ],
        ),
        ("diff", vec![r"^(?:diff --git|@@ -\d|\+\+\+ |--- a/)", r"^\s*\d+ files? changed\b", r"^ ?create mode \d+"]),
        (
            "documentation",
            vec![
                r"^> ",
                r"^\W*This is (?:an? )?\*\*",
                r"\*\*\w[^*\n]{2,60}\*\*.*`",
                r"^#{1,6} \w",
                r"^\s*(?:[-*]|\d+\.) (?:\*\*|`|fix|add|handle|support|use|when|if|retry|the )",
                r"\bis (?:an error|thrown|returned|raised|emitted)\b",
                r"\b(?:how to|what is|why do|in this (?:guide|article|section|chapter)|for example|tl;dr)\b",
                concat!(
                    r"\b(?:throws?|raises?|handles?|covers|describes?|documents?|explains?|mentions?) (?:an? ",
                    r"|the |when |on |for |if )?[\x22'`(\w-]{0,40}.{0,30}\b(?:error|exception|429|401|403",
                    r"|5\d\d|time-?out|limit)s?\b"
                ),
            ],
        ),
        ("table", vec![r"^<(?:table|thead|tr|td)\b", r"^\|.*\|.*\|\s*$", r"^#?\d+\t.*\t"]),
        (
            "test_run",
            vec![
                r"\b(?:tests?|suites?|examples?|specs?)\s*:?\s+\d+ passed\b",
                r"^\W*\d+ passed(?:, 0 failed)?(?: in [\d.]+s)?\b",
                r"\btest result: ok\b",
                r"^(?:GREEN|PASS|ok \d+)\b",
                r"^\s*(?:test |✓ |✔ |\[ ?ok ?\] ).{1,160}",
                r"\bAll (?:\d+ )?(?:unit )?tests (?:are green|passed|pass)\b",
            ],
        ),
        (
            "search_results",
            vec![
                r"^[\w./-]+\.\w{1,5}:\d+[:-]\s",
                r"^Found \d+ (?:files?|results?)\b",
                r"^Found \d+ match(?:es)? (?:for|in \d+ files?)\b",
            ],
        ),
        (
            "all_well",
            vec![
                concat!(
                    r"\bno (?:rate limit(?:ing|s)?|errors?|issues?|problems?|warnings?|time-?outs?)\b(?:,|",
                    r" (?:found|detected|needed|reported)|$)"
                ),
                r"^\W*(?:done|success|completed|finished|fixed|added|implemented|updated|created)\b",
                r"\b0 (?:errors?|failures?|problems?)\b",
                r"\bwithout (?:any )?(?:output|errors?|problems?|failures?)\b",
                r"\b(?:exit(?:ed)?|finished)(?: with)?(?: code| status)?:? 0\b",
                r"^\W*(?:no output|no content|no matches found|no results)\b",
                r"^(?:\[?(?:info|debug|trace|notice|npm warn)\b\]?:? |\S+ \S+ \[?(?:INFO|DEBUG)\b)",
                concat!(
                    r"\b(?:has been|was|were|been) (?:updated|created|written|saved|deleted|added|applied",
                    r"|edited|removed)(?: successfully)?[.!]?$"
                ),
                r"\bsuccessfully\b",
            ],
        ),
        (
            "commit",
            vec![
                r"^(?:[0-9a-f]{7,40} )?(?:feat|fix|docs|chore|refactor|test|perf|style|ci|build)(?:\([\w-]+\))?!?: ",
                r"^\[\w[\w/-]* [0-9a-f]{7,}\]",
            ],
        ),
        (
            "quotation",
            vec![
                concat!(
                    r"\b(?:says?|said|tells?|prints?|printed|logs?|shows?|showed|called|named|wording|text",
                    r"|string|phrase)\b.{0,60}[\x22`'].{6,}[\x22`']"
                ),
                r"(?:^|[;.,:] )I(?:'ll| will| have|'ve| would| think|'m going to) ",
                concat!(
                    r"^(?:I|I'll|I've|We|We'll|Let me|Let's|Now,? I|Next|Here is|Here are|Please (?:explain",
                    r"|check|fix|add)|Can you|Could you|Should)\b"
                ),
            ],
        ),
    ])
});

/// Words without which a text that nobody knows is not a failure.
static SOUNDS_WRONG: LazyLock<Search> = LazyLock::new(|| {
    any(&[
        concat!(
            r"\b(?:error|errors|err|fail|fails|failed|failure|failing|exception|panic|panicked|fatal",
            r"|crash|crashed|abort|aborted|denied|refused|rejected|invalid|unsupported|unable|cannot",
            r"|can't|could not|couldn't|not (?:found|supported|allowed|permitted|available|valid",
            r"|possible|responding)|missing|unknown|unexpected|broken|corrupt|corrupted|terminated",
            r"|killed|exceeded|exhausted|unavailable|went wrong|problem|boom|limit reached|not",
            r" connected|too (?:many|large|long|big)|busy|gave up|disconnected|interrupted|expired",
            r"|lost|no longer|not responding|stuck)\b"
        ),
        r"\w(?:Error|Exception)\b",
        r"错误|失败|异常|无法|不存在|超时|拒绝|エラー|失敗|できません|例外|오류|실패",
    ])
});

/// Frames inside ordinary tool output that do say that it failed.
static TOOL_FRAME: LazyLock<Search> = LazyLock::new(|| {
    any(&[
        concat!(
            r"\A(?:error|mcp error|invalid json|tool error|fatal|exception|failed to|could not",
            r"|cannot)\b[^\n]{0,400}(?:\n|\z)"
        ),
        r"\A(?:oldstring|old_string|search (?:string|text|block))\b[^\n]{0,200}",
        r"\A<(?:error|error_details|tool_use_error)>",
        r"<(?:shell|bash)_metadata>\n?[^<]{0,200}\b(?:timeout|terminated|aborted)\b",
        r"\A[^\n]{0,80}\bcommand timed out after\b",
    ])
});

/// Tools whose output is somebody else's text.
const READERS: &[&str] = &[
    "read",
    "read_file",
    "readfile",
    "cat",
    "grep",
    "search",
    "glob",
    "webfetch",
    "web_fetch",
    "cat_file",
    "fetch",
    "websearch",
    "view",
    "list",
    "ls",
    "find",
    "query",
];

/// Programs that answer with exit code 1 for "no", as the last of a command line.
static ASKS: LazyLock<Search> = LazyLock::new(|| {
    any(&[concat!(
        r"(?:^|[|;&(] ?|\bthen )(?:sudo |command |env |! )*(?:rg|grep|egrep|fgrep|zgrep|ag|ack",
        r"|diff|cmp|test|\[{1,2}|pgrep|",
        r"git (?:--no-pager )?(?:diff|grep)|which|type|command -v|find|expr|git merge-base)\b[^|;&]*$"
    )])
});

/// Judges a report's evidence.
pub(crate) fn judge(evidence: &Evidence) -> Gate {
    let text = evidence.text();
    match evidence.shape {
        Shape::Cancelled => return Gate::Cancelled("stopped_command"),
        Shape::Empty => return Gate::Empty("empty"),
        Shape::Success => return Gate::Ordinary("success"),
        Shape::Failure | Shape::Text | Shape::Output => {}
    }
    if evidence.shape == Shape::Output {
        let reader = evidence.tool.as_deref().is_some_and(|tool| READERS.contains(&tool.to_ascii_lowercase().as_str()));
        return if !reader && TOOL_FRAME.is_match(text) { Gate::Reported } else { Gate::Ordinary("output") };
    }
    if stopped(evidence) {
        return Gate::Cancelled("stopped");
    }
    if evidence.shape == Shape::Failure && !evidence.is_bare_text() {
        return if said_no(evidence) { Gate::Ordinary("said_no") } else { Gate::Failure };
    }
    if STARTS_AS_REPORT.is_match(text) || one_found(&knowledge().marks.reports, evidence) {
        return Gate::Failure;
    }
    let first = head(text.lines().next().unwrap_or_default(), MAX_FIRST_LINE);
    match ABOUT.of(first) {
        Some(name) => Gate::Ordinary(name),
        None => Gate::Reported,
    }
}

/// Whether a text that no rule knows is a failure.
pub(crate) fn sounds_wrong(evidence: &Evidence) -> bool {
    SOUNDS_WRONG.is_match(evidence.text())
}

fn stopped(evidence: &Evidence) -> bool {
    if matches!(evidence.signal.as_deref(), Some("SIGINT" | "INT" | "2")) || evidence.exit_code == Some(130) {
        return true;
    }
    // Longer texts tell of other things besides.
    if evidence.text().len() >= MAX_STOPPED {
        return false;
    }
    let marks = &knowledge().marks;
    let says = evidence.codes().iter().any(|code| STOPPED.contains(&code.as_str()));
    (says || one_found(&marks.stopped, evidence)) && !one_found(&marks.not_by_a_person, evidence)
}

/// A program whose exit code 1 is an answer and not a failure.
fn said_no(evidence: &Evidence) -> bool {
    if evidence.exit_code != Some(1) {
        return false;
    }
    // Its streams must not complain: `grep` says 2 for that, but a shell around it may not.
    let silent = !SOUNDS_WRONG.is_match(evidence.text()) || evidence.text().len() > 400;
    evidence.codes().iter().any(|code| code.contains("not an error") || code.contains("no matches found"))
        || (silent && evidence.command.as_deref().is_some_and(|command| ASKS.is_match(command)))
}
