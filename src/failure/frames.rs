//! What texts look like: a wanted stop, a report of an error, talk about errors, a tool's failure.

/// Whole messages of a stop that was wanted.
pub(super) const STOPPED_TEXT: &[&str] = &[
    concat!(
        r"^\W*(?:\w*error: )?(?:the |this )?(?:user )?(?:request|operation|tool execution|tool call",
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
];

/// Something else than a person stopped it.
pub(super) const NOT_BY_A_PERSON: &[&str] =
    &[r"time[d ]?-?out\b", r"\bdeadline\b", r"\btimeout", r"超时|タイムアウト|zeitüberschreitung"];

/// A text that reports an error, whatever else stands in it.
pub(super) const REPORTS: &[&str] = &[
    concat!(
        r"\A(?i:[\W_]*(?:api |http |stream |agent |mcp |tool |fatal |server |internal |the )*(?:error|fatal|panic",
        r"|exception|failed|failure|invalid|cannot|can't|could not|unable)\b)"
    ),
    r"\A[\w.:]*(?:Error|Exception|Timeout|Fault)\b",
    r"\A(?i:[\W_]*(?:unknown|unsupported|no such|no tool|no function|no agent)\b)",
    r"\A(?i:(?:the )?(?:command|process|tool|script)\b[^\n]{0,60}\b(?:timed out|cancell?ed because|killed|exceeded))",
    r"\A(?:[\w ]{0,20}: )?E[A-Z]{3,14}: ",
    r"\A(?i:we(?:'re| are| were|'ve| have)? ?(?:could not|couldn't|cannot|can't|unable|experiencing|sorry|encountered)\b)",
    r"\A[\[<]?[45]\d\d[\]>]?(?:[ :]|\z)",
    r"\A\[?\d\d:\d\d:\d\d\b[^\n]{0,60}\b(?:ERROR|FATAL|CRITICAL)\b",
    r"\A# (?i:[^\n]{0,60}\b(?:failed|errors?)\b)",
    r"(?m:^Traceback \(most recent)",
    r"(?m:^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)(?: \[\w+\])?: )",
    r"(?m:^\[?\d{4}-\d\d-\d\d[T ][\d:.,]+Z?\]? ?\|? ?(?:ERROR|FATAL|CRITICAL))",
];

/// Marks of text that speaks about errors and is none, in its first line.
pub(super) const ABOUT: [(&str, &[&str]); 9] = [
    (
        "source_code",
        &[
            r"^\s*(?://|/\*|\* |#!|\d+(?:: |[|\t]\s?)(?:\w|//))",
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
    ("diff", &[r"^(?:diff --git|@@ -\d|\+\+\+ |--- a/)", r"^\s*\d+ files? changed\b", r"^ ?create mode \d+"]),
    (
        "documentation",
        &[
            r"^> ",
            r"^\W*This is (?:an? )?\*\*",
            r"\*\*\w[^*\n]{2,60}\*\*.*`",
            r"^#{1,6} \w",
            r"^\s*(?:[-*]|\d+\.) (?:\*\*|`|fix|add|handle|support|use|when|if|retry|the )",
            r"\b(?:if|when|once) (?:you|your|a|an|any|the|it)\b[^.\n]{0,80}\bwill (?:fail|return|raise|throw|be|get|see)\b",
            r"^(?:如果|假如|一旦)",
            r"^(?:this|the|that) (?:error|message|failure|status|response) (?:indicates?|means?|suggests?|shows?|says?|tells?|is telling)\b",
            r"^this is an? [\w -]{0,30}\b(?:error|failure|limit)\.",
            r"^\W*(?:if|when|in case) you (?:see|get|hit|run into|encounter|receive|face|experience)\b",
            r"\bis (?:an error|thrown|returned|raised|emitted)\b",
            r"\b(?:how to|what is|why do|in this (?:guide|article|section|chapter)|for example|tl;dr)\b",
            concat!(
                r"\b(?:throws?|raises?|handles?|covers|describes?|documents?|explains?|mentions?) (?:an? ",
                r"|the |when |on |for |if )?[\x22'`(\w-]{0,40}.{0,30}\b(?:error|exception|429|401|403",
                r"|5\d\d|time-?out|limit)s?\b"
            ),
        ],
    ),
    (
        "table",
        &[r"^<(?:table|thead|tr|td)\b", r"^\|?[^|\n]*\|[^|\n]*\|.*\|\s*$|^\|?[^|\n]*\|[^|\n]*\|\s*$", r"^#?\d+\t.*\t"],
    ),
    (
        "test_run",
        &[
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
        &[
            r"^[\w./-]+\.\w{1,5}:\d+[:-]\s",
            r"^Found \d+ (?:files?|results?)\b",
            r"^Found \d+ match(?:es)? (?:for|in \d+ files?)\b",
        ],
    ),
    (
        "all_well",
        &[
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
        ],
    ),
    (
        "commit",
        &[
            r"^(?:[0-9a-f]{7,40} )?(?:feat|fix|docs|chore|refactor|test|perf|style|ci|build)(?:\([\w-]+\))?!?: ",
            r"^\[\w[\w/-]* [0-9a-f]{7,}\]",
        ],
    ),
    (
        "quotation",
        &[
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
];

/// Words without which a text that nobody knows is not a failure.
pub(super) const SOUNDS_WRONG: &[&str] = &[
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
];

/// Frames inside ordinary tool output that do say that it failed.
pub(super) const TOOL_FRAME: &[&str] = &[
    concat!(
        r"\A(?:error|mcp error|invalid json|tool error|fatal|exception|failed to|could not",
        r"|cannot)\b[^\n]{0,400}(?:\n|\z)"
    ),
    r"\A(?:oldstring|old_string|search (?:string|text|block))\b[^\n]{0,200}",
    r"\A<(?:error|error_details|tool_use_error)>",
    r"<(?:shell|bash)_metadata>\n?[^<]{0,200}\b(?:timeout|terminated|aborted)\b",
    r"\A[^\n]{0,80}\bcommand timed out after\b",
];
