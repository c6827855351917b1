//! Whole lines and frames by which known programs tell how something ended.

/// A run of tests, linters or compilers that ended badly, whatever its first line looks like.
pub(super) const FAILED_RUN: &[&str] = &[
    // path:line[:column]: error, path(line,column): error
    r"\A\s*[^\s:()]+(?::\d+(?::\d+)?:|\(\d+(?:,\d+)?\):) (?:fatal |syntax )?(?:error|undefined)\b",
    r"^=+ short test summary info =+$",
    r"^=+ (?:[^\n]*, )?[1-9]\d* (?:failed|errors?)\b",
    r"^=+ (?:FAILURES|ERRORS) =+$",
    r"^--- FAIL: ",
    r"^FAIL\s+\S",
    r"^FAILED (?:\S+::|\()",
    r"\btest result: FAILED\b",
    r"^\s*(?:Tests|Test Files|Test Suites):? +(?:[^\n]*, )?[1-9]\d* failed\b",
    r"^\s*[1-9]\d* (?:failing|failed)\b",
    r"\bTests run: \d+, Failures: (?:[1-9]|0, Errors: [1-9])",
    r"^\s*not ok \d+",
    r"^\W*\d+ problems? \([1-9]\d* errors?",
    r"^Found [1-9]\d* errors?\b",
    r"\.{3,}Failed$",
    r"^error: could not compile ",
    r"^> Task \S+ FAILED$",
    r"^FAILURE: Build failed",
    r"^(?:#|ℹ) fail [1-9]",
    r"^\S+\.\w{1,5}:\d+:\d+: [A-Z]{1,4}[0-9]{3,4}\b",
    r"^\W+found [1-9]\d* problems?\b",
    r"\b\d+ (?:examples?|tests?|specs?|scenarios?)\b[^\n]*, [1-9]\d* (?:failures?|failed|errors?)\b",
];

/// A stop that was wanted, in languages other than English and in the frames of known agents.
pub(super) const STOPPED_FRAME: &[&str] = &[
    r"(?i)\A\W*(?:conversation |turn |session |run )?interrupted (?:· |- |by |[(\[]?(?:esc|ctrl|user))",
    r"(?i)\A\W*(?:the )?(?:user|previous turn was) interrupted\b",
    r"(?i)^(?:rpc error: )?(?:code = )?cancell?ed(?: desc =|: )",
    r"(?i)(?:^|: |= )context cancell?ed\W*$",
    r"(?i)^(?:npm (?:error|err!)|error:?) (?:command failed with )?signal SIGINT\b",
    r"(?i)\b(?:exited|terminated|killed|stopped) (?:with|by|due to|on) (?:signal )?(?:SIGINT|signal 2)\b",
    r"(?i)\A\W*(?:operation|request|task|query|tool call|generation|prompt|turn|command) cancell?ed\b[^\n:]{0,40}\z",
    r"(?i)\A\W*(?:aborted|cancell?ed|stopped|interrupted) by (?:the )?(?:user|operator|caller|client|host)\b",
    r"(?i)\b(?:user|operator) (?:has |had )?(?:pressed (?:esc|escape|ctrl[+-]?c)|cancell?ed the (?:run|turn|task|request|session|operation))\b",
    r"(?i)\bstopped by (?:the )?user\b",
    r"(?i)\A(?:error: )?(?:user[_ ]?)(?:cancell?ed|aborted|interrupted?)\s*\z",
    r"(?i)\A\W*\[operation cancell?ed\]\s*\z",
    r"(?i)\b(?:vom|durch den) (?:benutzer|nutzer|anwender) (?:abgebrochen|unterbrochen|gestoppt)",
    r"(?i)\bbenutzer hat .{0,40}\b(?:abgebrochen|unterbrochen)",
    r"(?i)\A\W*(?:vorgang|anfrage|ausführung|befehl) (?:wurde )?abgebrochen\W*\z",
    r"(?i)\b(?:annulée?|interrompue?|arrêtée?) par l'utilisateur",
    r"(?i)\A\W*(?:opération|requête|exécution) annulée\W*\z",
    r"(?i)\b(?:cancelad[oa]|interrumpid[oa]|abortad[oa]|detenid[oa]) por el usuario",
    r"(?i)\b(?:cancelad[oa]|interrompid[oa]) pelo usuário",
    r"(?i)\b(?:annullat[oa]|interrott[oa]) dall'utente",
    r"(?i)\A\W*operación cancelada\W*\z",
    r"(?:отменено|прервано) пользователем",
    r"(?:用户|用戶|使用者|操作员)(?:已|主动|手动)?(?:经)?(?:取消|中止|中断|终止|停止|打断)",
    r"\A\W*(?:操作|请求|任务|会话|生成|執行|操作)(?:已被?|被)?(?:用户)?(?:取消|中止|中断)\W*\z",
    r"(?:ユーザー|利用者|ユーザ)(?:が|により|によって|による)?(?:操作を|処理を|実行を)?(?:キャンセル|中断|中止|停止)",
    r"\A\W*(?:操作|処理|リクエスト|要求|実行|タスク)(?:が|は)?(?:キャンセル|中断|中止)(?:され|し)",
    r"사용자(?:가|에 의해) .{0,12}(?:취소|중단)",
];

/// First lines that say in other languages, or for a machine, that all went well.
pub(super) const WELL: &[&str] = &[
    r"(?i)\A\W*(?:build|tests?|compilation|compile|deploy(?:ment)?|lint(?:ing)?|checks?|install(?:ation)?|all) (?:has |have )?(?:succeeded|passed|completed|successful|ok)\b[^\n]*\z",
    r"(?i)\b(?:failed|failures?|errors?)\W{1,2}0\b",
    concat!(
        r"(?i)\A\W*(?:refactored|renamed|removed|moved|replaced|ran|switched|changed|improved|extended|cleaned|merged|committed",
        r"|pushed|wrote|rewrote|introduced|adjusted|bumped|documented|tested|verified|reviewed|cleaned up|reworked|formatted)\b"
    ),
    concat!(
        r"(?i)\A(?:the |this |that |it |its |our |a )?(?:function|method|class|module|script|code|handler|loop|helper|guard|parser",
        r"|endpoint|agent|test|rule|policy|config|option|flag|setting|retry loop)s?(?: [`'][^`'\n]{1,60}[`'])? (?:now |then |also |already )?(?:returns?|stops?|retries",
        r"|handles?|checks?|skips?|exits?|logs|reads|writes|uses|calls|waits|falls?|maps|throws|raises|treats|keeps|guards|rejects|requires|blocks)\b"
    ),
    r"(?i)\A(?:the )?file \S+ has been (?:successfully )?(?:updated|edited|created|written|saved|deleted)\b",
    r"(?i)\Ax-ratelimit-(?:limit|remaining)[\w-]*: ?[1-9]",
    r"(?i)\Arate limits?: (?:up to )?\d",
    r"(?i)\A(?:web )?search results (?:for|from)\b",
    r"\A\s*[-*] \[[ xX]\] ",
    r"(?i)\bnow (?:all )?(?:the )?(?:tests? )?(?:pass|work|green|fixed)",
    r"\A(?:已修复|修复了|已完成|已更新|已添加|新增|更新了|添加了|解决了|已解决)",
    r"を(?:修正|追加|更新|実装|削除)しました",
    r"(?i)\b(?:ist|wurde) behoben\b|\btests (?:laufen durch|bestanden)\b|\best corrigée?\b|\btests passent\b|\bestá corregid[oa]\b|\bpruebas pasan\b",
    r"(?i)\b(?:tests?|they|it|everything|verify|ci|suite) (?:now )?(?:all )?pass(?:es)?(?: now)?[.!]?\s*\z",
    r"\A\S+ \[?(?:INFO|DEBUG|TRACE)\b",
    r"(?i)\A(?:what|how|why|when|where|which|who|is|are|can|could|does|do|should|would)\b[^\n]*\?\s*\z",
    r"\A请(?:你)?(?:修复|帮|解释|检查一下|添加|修改|实现|写|把|给|看)",
    r"(?:直して|修正して|教えて|説明して|追加して|書いて|調べて|実装して)(?:ください)?。?\z",
    r"(?i)\Abitte (?:behebe|erkläre|prüfe|füge|schreibe?|ändere|mach|zeige?|finde)\b",
    r"(?i)\A(?:corrige[rz]?|explique[rz]?|peux-tu|ajoute[rz]?|arregla|explica|agrega|añade|puedes)\b",
    r"(?i)\A\W*(?:plan|todo|next steps?|steps|changelog|approach|overview|tl;dr)\b *:",
    r"(?i)\AOn branch \S+$",
    r"\AHTTP/[\d.]+ 2\d\d\b",
    concat!(
        r"(?:编译|构建|測試|测试|操作|执行|更新|修改|保存|写入|安装|提交|应用|运行|部署|创建|删除|检查|验证|编辑)",
        r"(?:已)?(?:成功|完成|通过|通過)"
    ),
    r"(?:^|[^\d])0 ?(?:个|個|件の|つの)?(?:错误|失败|警告|エラー|失敗|오류)",
    r"(?:没有|無|无)(?:任何)?(?:错误|问题|警告)|エラーはありません|エラーなし|問題ありません|正常に(?:終了|完了)",
    r"(?:成功しました|完了しました|更新しました|作成しました|保存しました)",
    r"(?i)\b(?:erfolgreich|keine fehler|avec succès|aucune erreur|con éxito|sin errores|ningún error|com sucesso)\b",
    r"(?i)\b0 (?:fehler|erreurs?|errores|erros|errori)\b",
    concat!(
        r"(?i)\A\W*(?:warning|warn|note|hint|info)\b[^\n]*\b(?:defaulting|falling back|fallback|using defaults?|ignor(?:ed|ing)",
        r"|continuing|deprecated|will be removed|skipping|proceeding)\b[^\n]*\z"
    ),
];

/// Frames by which tools of known agents say, in what looks like ordinary output, that they failed.
pub(super) const TOOL_SAYS_NO: &[&str] = &[
    r"(?i)\A(?:apply_patch verification failed|patch detected without|patch rejected by|exec command rejected|command rejected)",
    r"(?i)\A(?:unsupported (?:custom tool )?call|exec error|execution error|failed in sandbox|sandbox denied|sandbox error)",
    r"(?i)\A(?:failed to parse function arguments|tool call error|unknown tool|no such tool|tool not found|tool \S+ not found)",
    r"(?i)\A(?:command timed out|the (?:user|command|tool) (?:denied|rejected|declined|was|timed|doesn't|failed|execution))",
    r"(?i)\A(?:user (?:denied|rejected|declined)|permission denied by|\[operation cancell?ed\]|no replacement was performed)",
    r"(?i)\A(?:the )?\S+ tool was called with invalid arguments",
    r"(?i)\A(?:reversed \(or previously applied\) patch|the edit (?:produced|resulted in|made) no|no changes to (?:apply|make))",
    r"(?i)\A(?:invalid (?:tool|arguments|patch|json)|failed: |(?:tool )?execution (?:failed|denied)|request timed out)",
    r"(?i)\A(?:blocked by|denied by|rejected by|hook blocked|aborted by|stopped by)",
    r"(?i)\A(?:编辑失败|工具执行失败|执行失败|错误：|错误:|エラー:|エラー：|ツールの実行に失敗)",
];

/// Words of a verdict or a refusal, which need not mean a failure in other texts.
pub(super) const COMPLAINS: &[&str] = &[concat!(
    r"(?i)\b(?:disallowed|blocked|forbidden|violat\w+|reject\w*|den(?:y|ies|ied)|declined|prohibited|restricted|halted|outside",
    r"|limits?|exceed\w*|problems?|issues? found|not in|not on|would|dangerous|unsafe|ignored|requires?|not (?:met|reached|pass",
    r"|whitelisted|allowlisted)|tripwire\w*|triggered|granted|undefined|unresolved|mismatched|incompatible|permissions?",
    r"|differs?|in a row|same (?:arguments|parameters|call)|escapes|maximum|max|repeat\w*|repetit\w+|loop|halt\w*|offenses?|below)\b"
)];

/// A log of tries of which one worked.
pub(super) const ENDED_WELL: &[&str] = &[
    r"(?i)\b(?:all )?(?:\d+ )?tests (?:now )?pass(?:ed)?\b[^\n]*\z",
    r"(?i)^\W*(?:\S+ ){0,3}(?:attempt|try|retry)(?: #?\d+)?(?:(?: of |/)\d+)?[:,]? (?:has )?(?:succeeded|worked|ok|successful|passed)\b",
    r"(?i)\b(?:ok|succeeded|worked|recovered|connected|completed) (?:after|on|at|in) (?:the )?(?:\d+|second|third|last|next)(?:nd|rd|th)? (?:attempts?|retr(?:y|ies)|tries|try)\b",
];

/// A listing of files and nothing else.
pub(super) const FILE_LIST: &[&str] = &[r"\A(?:[\w@./-]+(?:\.\w{1,8}|/)(?:\n|\z)){2,}\z"];
