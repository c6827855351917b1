//! Whether a value is a failure at all (R1), before any rule names it.

use std::sync::LazyLock;

use super::evidence::{Evidence, Shape};
use super::marks::{COMPLAINS, ENDED_WELL, FAILED_RUN, FILE_LIST, STOPPED_FRAME, TOOL_SAYS_NO, WELL};
use super::search::Search;
use super::text::head;

/// How much of a first line tells what a text is.
const MAX_FIRST_LINE: usize = 600;

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
    "operationcanceledexception",
    "operationcanceled",
    "cancellationexception",
    "jobcancellationexception",
    "agentaborterror",
    "usercancellederror",
    "usercancelederror",
    "user_cancelled",
    "user_canceled",
    "user_interrupt",
    "user_aborted",
    "turn_aborted",
    "finish:cancelled",
    "finish:canceled",
    "finish:user_cancelled",
    "-32800",
    "taskcanceledexception",
    "request_cancelled",
    "finish:aborted",
    "err_canceled",
    "keyboardinterrupt",
];

/// Whole messages of a stop that was wanted.
static STOPPED_TEXT: LazyLock<Search> = LazyLock::new(|| {
    any(&[
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
            r"^(?:\w+: )?(?:AbortError|(?:[\w.]+\.)?CancelledError|(?:[\w.]+\.)?\w*CancellationException",
            r"|(?:[\w.]+\.)?(?:Operation|Task)Cancell?edException|DOMException \[AbortError\]",
            r"|APIUserAbortError|KeyboardInterrupt)\b"
        ),
        r"^(?:error: )?request was aborted\.?$",
        r"\bcontext canceled$",
        r"\b(?:1 CANCELLED: |StatusCode\.CANCELLED\b|code = Canceled\b|NSURLErrorDomain Code=-999\b)",
        r"^\^C$",
        r"^(?:操作已取消|用户取消|请求已取消|已中断|キャンセルされました|ユーザーによって中断)",
    ])
});

/// Something else than a person stopped it.
static NOT_BY_A_PERSON: LazyLock<Search> = LazyLock::new(|| {
    any(&[r"time[d ]?-?out\b", r"\bdeadline\b", r"\btimeout", r"超时|タイムアウト|zeitüberschreitung"])
});

/// A text that reports an error, whatever else stands in it.
static REPORTS: LazyLock<Search> = LazyLock::new(|| {
    Search::bare(concat!(
        r"\A(?i:[\W_]*(?:api |http |stream |agent |mcp |tool |fatal |server |internal |the",
        r" )*(?:error|fatal|panic|exception|failed|failure|invalid|cannot|can't|could not",
        r"|unable)\b)",
        r"|\A[\w.:]*(?:Error|Exception|Timeout|Fault)\b",
        r"|\A(?i:[\W_]*(?:unknown|unsupported|no such|no tool|no function|no agent)\b)",
        r"|\A(?i:(?:the )?(?:command|process|tool|script)\b[^\n]{0,60}\b(?:timed out|cancell?ed because|killed|exceeded))",
        r"|\A(?:[\w ]{0,20}: )?E[A-Z]{3,14}: ",
        r"|\A(?i:we(?:'re| are| were|'ve| have)? ?(?:could not|couldn't|cannot|can't|unable|experiencing|sorry|encountered)\b)",
        r"|\A[\[<]?[45]\d\d[\]>]?(?:[ :]|\z)",
        r"|\A# (?i:[^\n]{0,60}\b(?:failed|errors?)\b)",
        r"|(?m:^Traceback \(most recent)",
        r"|(?m:^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)(?: \[\w+\])?: )",
        r"|(?m:^\[?\d{4}-\d\d-\d\d[T ][\d:.,]+Z?\]? ?\|? ?(?:ERROR|FATAL|CRITICAL))",
    ))
});

/// Marks of text that speaks about errors and is none, in its first line.
static ABOUT: LazyLock<[(&'static str, Search); 9]> = LazyLock::new(|| {
    [
        (
            "source_code",
            any(&[
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
            ]),
        ),
        ("diff", any(&[r"^(?:diff --git|@@ -\d|\+\+\+ |--- a/)", r"^\s*\d+ files? changed\b", r"^ ?create mode \d+"])),
        (
            "documentation",
            any(&[
                r"^> ",
                r"^\W*This is (?:an? )?\*\*",
                r"\*\*\w[^*\n]{2,60}\*\*.*`",
                r"^#{1,6} \w",
                r"^\s*(?:[-*]|\d+\.) (?:\*\*|`|fix|add|handle|support|use|when|if|retry|the )",
                r"\b(?:if|when|once) (?:you|your|a|an|any|the|it)\b[^.\n]{0,80}\bwill (?:fail|return|raise|throw|be|get|see)\b",
                r"^(?:如果|假如|一旦)",
                r"^\W*(?:if|when|in case) you (?:see|get|hit|run into|encounter|receive|face|experience)\b",
                r"\bis (?:an error|thrown|returned|raised|emitted)\b",
                r"\b(?:how to|what is|why do|in this (?:guide|article|section|chapter)|for example|tl;dr)\b",
                concat!(
                    r"\b(?:throws?|raises?|handles?|covers|describes?|documents?|explains?|mentions?) (?:an? ",
                    r"|the |when |on |for |if )?[\x22'`(\w-]{0,40}.{0,30}\b(?:error|exception|429|401|403",
                    r"|5\d\d|time-?out|limit)s?\b"
                ),
            ]),
        ),
        (
            "table",
            any(&[
                r"^<(?:table|thead|tr|td)\b",
                r"^\|?[^|\n]*\|[^|\n]*\|.*\|\s*$|^\|?[^|\n]*\|[^|\n]*\|\s*$",
                r"^#?\d+\t.*\t",
            ]),
        ),
        (
            "test_run",
            any(&[
                r"\b(?:tests?|suites?|examples?|specs?)\s*:?\s+\d+ passed\b",
                r"^\W*\d+ passed(?:, 0 failed)?(?: in [\d.]+s)?\b",
                r"\btest result: ok\b",
                r"^(?:GREEN|PASS|ok \d+)\b",
                r"^\s*(?:test |✓ |✔ |\[ ?ok ?\] ).{1,160}",
                r"\bAll (?:\d+ )?(?:unit )?tests (?:are green|passed|pass)\b",
            ]),
        ),
        (
            "search_results",
            any(&[
                r"^[\w./-]+\.\w{1,5}:\d+[:-]\s",
                r"^Found \d+ (?:files?|results?)\b",
                r"^Found \d+ match(?:es)? (?:for|in \d+ files?)\b",
            ]),
        ),
        (
            "all_well",
            any(&[
                concat!(
                    r"\bno (?:rate limit(?:ing|s)?|errors?|issues?|problems?|warnings?|time-?outs?)\b(?:,|",
                    r" (?:found|detected|needed|reported)|$)"
                ),
                r"^\W*(?:done|success|completed|finished|fixed|added|implemented|updated|created)\b",
                r"\b0 (?:errors?|failures?|problems?)\b",
                r"\b\d{1,2}(?:\.\d+)?% (?:of|used|left|remaining|full)\b",
                r"\b[1-9][\d,.]* (?:requests?|credits?|messages?|tokens?) (?:left|remaining)\b",
                r"\bwithout (?:any )?(?:output|errors?|problems?|failures?)\b",
                r"\b(?:exit(?:ed)?|finished)(?: with)?(?: code| status)?:? 0\b",
                r"^\W*(?:no output|no content|no matches found|no results)\b",
                r"^(?:\[?(?:info|debug|trace|notice|npm warn)\b\]?:? |\S+ \S+ \[?(?:INFO|DEBUG)\b)",
                r"^(?:[\d\[]\S* ){1,3}[|\[]? ?(?:info|debug|trace|notice)\b",
                r"^\{?\x22?(?:level|lvl|severity)\x22?[=:] ?\x22?(?:info|debug|trace|notice)\b",
                r"\b(?:recovered|succeeded) (?:after|on) (?:\d+ |the )?(?:\w+ )?(?:retry|retries|attempts?)\b",
                r"(?:已(?:修复|修正|添加|实现|完成|更新|通过)|测试(?:全部|均|都)?(?:已)?通过)",
                r"(?:(?:実装|追加|修正|更新|対応)しました|成功(?:しました|しています)|テストは(?:すべて|全て))",
                r"(?:(?:추가|수정|구현|완료|변경)(?:했|하였|되었)|테스트(?:가|는)? ?(?:모두 )?통과)",
                concat!(
                    r"\b(?:has been|was|were|been) (?:updated|created|written|saved|deleted|added|applied",
                    r"|edited|removed)(?: successfully)?[.!]?$"
                ),
                r"\bsuccessfully\b",
            ]),
        ),
        (
            "commit",
            any(&[
                r"^(?:[0-9a-f]{7,40} )?(?:feat|fix|docs|chore|refactor|test|perf|style|ci|build)(?:\([\w-]+\))?!?: ",
                r"^\[\w[\w/-]* [0-9a-f]{7,}\]",
            ]),
        ),
        (
            "quotation",
            any(&[
                concat!(
                    r"\b(?:says?|said|tells?|prints?|printed|logs?|shows?|showed|called|named|wording|text",
                    r"|string|phrase)\b.{0,60}[\x22`'].{6,}[\x22`']"
                ),
                r"(?:^|[;.,:] )I(?:'ll| will| have|'ve| would| think|'m going to) ",
                concat!(
                    r"^(?:I|I'll|I've|We|We'll|Let me|Let's|Now,? I|Next|Here is|Here are|Please (?:explain",
                    r"|check|fix|add)|Can you|Could you|Should)\b"
                ),
            ]),
        ),
    ]
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
        r"错误|失败|异常|无法|不存在|超时|拒绝|未通过|エラー|失敗|できません|例外|오류|실패",
        r"\b(?:fehler|fehlgeschlagen|konnte nicht|kann nicht|nicht möglich|nicht gefunden|ungültig)",
        r"\b(?:erreur|échec|échoué|impossible|introuvable|invalide|no se pudo|falló|fallo|inválid[oa]|erro|falhou)\b",
        r"ошибка|не удалось|錯誤|失敗|無法",
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
    any(&[
        concat!(
            r"(?:^|[|;&(] ?|\bthen )(?:sudo |command |env |! )*(?:rg|grep|egrep|fgrep|zgrep|ag|ack",
            r"|diff|cmp|test|pgrep|",
            r"git (?:--no-pager )?(?:diff|grep)|which|type|command -v|find|expr|git merge-base)\b[^|;&]*$"
        ),
        r"(?:^|[|;&(] ?)\[{1,2} [^|;&]*\]\s*$",
    ])
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
        if text.starts_with("[Request interrupted by user") {
            return Gate::Cancelled("stopped");
        }
        let framed = TOOL_FRAME.is_match(text) || TOOL_SAYS_NO.is_match(text);
        return if !reader && framed { Gate::Reported } else { Gate::Ordinary("output") };
    }
    if stopped(evidence) {
        return Gate::Cancelled("stopped");
    }
    if evidence.shape == Shape::Failure && !evidence.is_bare_text() {
        return if said_no(evidence) { Gate::Ordinary("said_no") } else { Gate::Failure };
    }
    if REPORTS.is_match(text) {
        return Gate::Failure;
    }
    if FAILED_RUN.is_match(text) || TOOL_SAYS_NO.is_match(text) {
        return Gate::Reported;
    }
    if ENDED_WELL.is_match(text) && evidence.shape != Shape::Failure {
        return Gate::Ordinary("ended_well");
    }
    let first = head(text.lines().next().unwrap_or_default(), MAX_FIRST_LINE);
    if WELL.is_match(first) && evidence.shape != Shape::Failure {
        return Gate::Ordinary("all_well");
    }
    if FILE_LIST.is_match(text) {
        return Gate::Ordinary("file_list");
    }
    match ABOUT.iter().find(|(_, marks)| marks.is_match(first)) {
        Some((name, _)) => Gate::Ordinary(name),
        None => Gate::Reported,
    }
}

/// Whether a text that no rule knows is a failure.
pub(crate) fn sounds_wrong(evidence: &Evidence) -> bool {
    SOUNDS_WRONG.is_match(evidence.text())
}

/// Whether a text can be a verdict or the end of a program: it complains, is no English, or has the frames of one.
pub(crate) fn may_be_a_verdict(evidence: &Evidence) -> bool {
    let text = evidence.text();
    !text.is_ascii() || SOUNDS_WRONG.is_match(text) || COMPLAINS.is_match(text) || FAILED_RUN.is_match(text)
}

fn stopped(evidence: &Evidence) -> bool {
    if matches!(evidence.signal.as_deref(), Some("SIGINT" | "INT" | "2")) || evidence.exit_code == Some(130) {
        return true;
    }
    let text = evidence.text();
    let says = evidence.codes().iter().any(|code| STOPPED.contains(&code.as_str()))
        || STOPPED_TEXT.is_match(text)
        || STOPPED_FRAME.is_match(text);
    says && !NOT_BY_A_PERSON.is_match(text) && text.len() < 2000
}

/// A program whose exit code 1 is an answer and not a failure.
fn said_no(evidence: &Evidence) -> bool {
    if evidence.exit_code != Some(1) {
        return false;
    }
    if evidence.text().starts_with("diff --git ") {
        // A difference is what it was asked for.
        return true;
    }
    // Its streams must not complain: `grep` says 2 for that, but a shell around it may not.
    let silent = !SOUNDS_WRONG.is_match(evidence.text()) || evidence.text().len() > 400;
    evidence.codes().iter().any(|code| code.contains("not an error") || code.contains("no matches found"))
        || (silent && evidence.command.as_deref().is_some_and(|command| ASKS.is_match(command)))
}
