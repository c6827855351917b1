//! What secrets look like.

/// One shape: what may stand before a secret and stays, and the secret itself.
#[derive(Debug)]
pub(crate) struct Shape {
    /// A regex of where it can start.
    edge: &'static str,
    /// A regex of what tells that a secret follows. `¦` stands for what parts a name from its value,
    /// `␣` for a blank, `∕` for a slash.
    before: &'static str,
    /// A regex of what is masked.
    secret: &'static str,
    /// Whether what was found must look like chance, because words can stand there too.
    pub(crate) by_chance: bool,
}

/// Where a secret can start: at a word's edge, also after an underscore, an escape sequence that ends
/// in a letter, a colour, or an encoded character.
const EDGE: &str = r"(?:\b|_|\\[nrtbf]|\x1b\[[0-9;]{0,9}m|\\(?:u00|x)1b\[[0-9;]{0,9}m|%[0-9A-Fa-f]{2})";

/// Between a name and its value: a colon, an equals sign or an arrow, quoted, escaped or encoded.
const SEPARATOR: &str = concat!(
    r"(?:(?:\\*(?:[\x22'\x60]|&quot;|&#3[49];|%22|%27))?",
    r"(?:\s*(?:=>|[:=])\s*|(?:%20)?%3[AaDd](?:%20|\+)?)\[?\s*",
    r"(?:b?\\*(?:[\x22'\x60]|&quot;|&#3[49];|%22|%27))?)"
);

/// A blank, encoded or not.
const BLANK: &str = r"(?:\s|%20|\+)";

/// A slash, escaped or encoded.
const SLASH: &str = r"(?:\\*/|%2[Ff])";

impl Shape {
    /// The regex as it is searched for: group `keep` stays, the rest is masked. Words are those of
    /// ASCII, so that a key right after Chinese text is one too.
    pub(crate) fn source(&self) -> String {
        let before = self.before.replace('¦', SEPARATOR).replace('␣', BLANK).replace('∕', SLASH);
        super::search::in_ascii(&format!("(?P<keep>{}{before})(?:{})", self.edge, self.secret))
    }
}

/// A secret that says what it is.
const fn bare(secret: &'static str) -> Shape {
    Shape { edge: EDGE, before: "", secret, by_chance: false }
}

/// A secret after a dash, before which no word has its edge.
const fn dashed(before: &'static str, secret: &'static str) -> Shape {
    Shape { edge: "", before, secret, by_chance: false }
}

/// A secret named by what stands before it.
const fn after(before: &'static str, secret: &'static str) -> Shape {
    Shape { edge: EDGE, before, secret, by_chance: false }
}

/// Likewise, where words can stand too.
const fn chance_after(before: &'static str, secret: &'static str) -> Shape {
    Shape { edge: EDGE, before, secret, by_chance: true }
}

/// A value without quotes, or what stands inside them.
const VALUE: &str = r"[^\s\x22'\x60,;&<>\\]{6,}";
const LONG_VALUE: &str = r"[^\s\x22'\x60,;&<>\\]{12,}";

/// A user's number, a time and a signature, each in base 64.
const DISCORD_BOT: &str =
    r"(?:M[DTjz]|N[DTjz]|O[DT])[AEIMQUYcgk][A-Za-z0-9_-]{17,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{25,}";

pub(crate) const SHAPES: &[Shape] = &[
    // Keys of models' providers and of what agents use.
    chance_after(r"(?:sk|pk|rk)-(?:ant-|proj-|or-|svcacct-|admin-|live-|test-|lf-)?", r"[A-Za-z0-9_-]{12,}"),
    bare(r"(?:sk|pk|rk)_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    bare(r"(?:sk|key)_[0-9a-f]{40,}"),
    bare(r"AIza[A-Za-z0-9_-]{20,}"),
    bare(r"hf_[A-Za-z0-9]{16,}"),
    chance_after(
        concat!(
            r"(?:(?:gsk|r8|fw|tgp_v1|jina|lsv2_(?:pt|sk)|e2b|pcsk|wandb_v1|vck|vcp|cpk)_|(?:xai|pplx|nvapi",
            r"|csk|tvly|fc|pa|lin_api|ntn|AQ)[-_.])"
        ),
        r"[A-Za-z0-9_-]{20,}",
    ),
    // Clouds.
    bare(r"(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{12,}\b"),
    bare(r"ABSK[A-Za-z0-9+/%]{40,}={0,2}"),
    bare(r"(?:LTAI|AKID)[A-Za-z0-9]{12,}\b"),
    bare(r"ya29\.[A-Za-z0-9_-]{16,}"),
    bare(r"GOCSPX-[A-Za-z0-9_-]{16,}"),
    bare(r"1(?://|%2F%2F)0[A-Za-z0-9_-]{20,}"),
    bare(r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{30,}"),
    bare(r"[A-Za-z0-9]{40,80}(?:AZDO|JQQJ99)[A-Za-z0-9]{4,40}"),
    bare(r"do[opr]_v1_[a-f0-9]{20,}"),
    bare(r"dapi[0-9a-f]{32}"),
    bare(r"(?:FlyV1 )?fm[12][a-z]?_[A-Za-z0-9+/_-]{20,}={0,2}"),
    bare(
        r"(?:HRKU|NRAK|PMAK|LTAI|sbp|sb_secret|nfp|rnd|pul|figd|glc|glsa|sntrys|sntryu|phc|phx)[_-][A-Za-z0-9_-]{16,}",
    ),
    bare(r"(?:pscale_(?:tkn|pw|oauth)_|dp\.(?:pt|st|ct|sa)\.|dckr_[op]at_)[A-Za-z0-9_.-]{16,}"),
    bare(r"hv[sbr]\.[A-Za-z0-9_-]{16,}"),
    bare(r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{20,}"),
    bare(r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    // Forges and registries of packages.
    bare(r"gh[pousr]_[A-Za-z0-9]{16,}"),
    bare(r"github_pat_[A-Za-z0-9_]{20,}"),
    bare(r"gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|imt)-[A-Za-z0-9_.-]{16,}"),
    bare(r"(?:ATATT3|ATCTT3|ATBB)[A-Za-z0-9_=-]{16,}"),
    bare(r"npm_[A-Za-z0-9]{20,}"),
    bare(r"pypi-[A-Za-z0-9_-]{20,}"),
    bare(r"(?:rubygems|CLOJARS)_[A-Za-z0-9]{20,}"),
    bare(r"cio[A-Za-z0-9]{32}\b"),
    // Messengers, mail, payment, shops.
    bare(r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9%-]{10,}"),
    bare(r"xapp-\d-[A-Za-z0-9-]{10,}"),
    after(r"hooks\.slack\.com∕(?:services|workflows|triggers)∕", r"[A-Za-z0-9/%\\]{10,}"),
    after(r"discord(?:app)?\.com∕api∕webhooks∕\d{1,30}∕", r"[A-Za-z0-9_-]{20,}"),
    // Its start is that of many a word, so it is looked for at words' starts alone.
    Shape { edge: r"\b", ..bare(DISCORD_BOT) },
    Shape { edge: r"\\[nrt]", ..bare(DISCORD_BOT) },
    bare(r"(?:bot)?\d{6,12}(?::|%3A)AA[A-Za-z0-9_-]{30,}"),
    bare(r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    bare(r"key-[0-9a-f]{32}\b"),
    bare(r"(?:AC|SK)[0-9a-f]{32}\b"),
    bare(r"whsec_[A-Za-z0-9+/=]{16,}"),
    bare(r"(?:sq0(?:atp|csp)-|shp(?:at|ss|ca|pa)_|EAA)[A-Za-z0-9_-]{22,}"),
    // Signed tokens and keys in armour, cut ones too.
    bare(r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*"),
    dashed(
        "",
        concat!(
            r"-----BEGIN(?:[A-Z0-9 +]|%20)*PRIVATE(?: |\+|%20)KEY(?:(?: |\+|%20)BLOCK)?-----",
            r"(?:[A-Za-z0-9+/=:,.()\s]|-[^-]|\\+[nr]|%[0-9A-Fa-f]{2})*",
            r"(?:-----END(?:[A-Z0-9 +]|%20)*PRIVATE(?: |\+|%20)KEY(?:(?: |\+|%20)BLOCK)?-----)?"
        ),
    ),
    bare(concat!(
        r"(?:[A-Za-z0-9+/=]{16,}(?:\s|\\+[nr]|%0[AaDd])+)*[A-Za-z0-9+/=]*(?:\s|\\+[nr]|%0[AaDd])*",
        r"-----END(?:[A-Z0-9 +]|%20)*PRIVATE(?: |\+|%20)KEY(?:(?: |\+|%20)BLOCK)?-----"
    )),
    after(r"ssh-(?:rsa|ed25519|dss)␣", r"AAAA[A-Za-z0-9+/=%]{20,}"),
    // Headers.
    after(r"(?i:bearer)␣+", r"[A-Za-z0-9._~+/=%-]{8,}"),
    after(r"(?i:(?:authorization¦)?basic)␣+", r"[A-Za-z0-9+/%]{8,}={0,2}"),
    after(
        r"(?i:authorization¦(?:(?:token|apikey|key|bot|ssws|digest|negotiate|ntlm|aws4-hmac-sha256)␣*)?)",
        r"[A-Za-z0-9._~+/=%:-]{10,}",
    ),
    after(r"(?i:(?:set-)?cookies?\d?¦)", r"[^\s\x22';,\\]+(?:=|%3[Dd])[^\r\n\x22'\\]+"),
    after(
        r"(?:(?i:jsessionid|phpsessid|asp\.net_sessionid|connect\.sid|csrftoken)¦|sessionid=)",
        r"[^\s\x22'\\;,&]{8,}",
    ),
    after(
        concat!(
            r"(?i:(?:x-[\w-]{0,30}(?:key|token|secret)|api-?key|authorization|cookie|(?:private|job|deploy)-token)",
            r"\\*[\x22']\s*,\s*b?\\*[\x22'](?:bearer |basic |token )?)"
        ),
        r"[^\s\x22'\\]{8,}",
    ),
    after(
        concat!(
            r"(?i:(?:x-[\w-]{0,30}(?:api-?key|token|secret|auth-key|access-key|functions-key|subscription-key)",
            r"|ocp-apim-subscription-key|(?:private|job|deploy)-token|api-key)¦)"
        ),
        VALUE,
    ),
    // Addresses.
    after(
        concat!(
            r"(?i:(?:[?&;#]|%26|%3f|%23|\\+u0026)(?:key|api[_-]?key|token|access[_-]?token|id[_-]?token",
            r"|refresh[_-]?token|auth|sig|signature|secret|client[_-]?secret|password|pwd",
            r"|x-(?:amz|goog)-(?:signature|credential|security-token)|sas|jwt)(?:=|%3d))"
        ),
        r"[^\s&\x22'<>#\\]+",
    ),
    chance_after(
        r"(?i:(?:[?&;#]|%26|%3f|\\+u0026)(?:code|session|sid|ticket|state|x-goog-api-key)(?:=|%3d))",
        LONG_VALUE,
    ),
    after(
        r"(?i:[a-z][a-z0-9+.-]{1,20}(?:://|:\\{1,4}/\\{1,4}/))",
        r"[^\s/@:\x22'<>\\]*:(?:[^\s/\x22'<>\\\d][^\s\x22'<>\\]*|[^\s/\x22'<>\\]+)@",
    ),
    chance_after(
        r"(?i:[a-z][a-z0-9+.-]{1,20}(?:://|:\\{1,4}/\\{1,4}/|%3a%2f%2f))",
        r"[A-Za-z0-9_-]{20,}(?::|%3A)?(?:@|%40)",
    ),
    after(r"(?i:%3a%2f%2f)", r"[^\s%]*(?i:%3a)(?:[^\s%&]|%[0-9A-Fa-f]{2})+%40"),
    // Names of secrets, their values after them.
    after(
        concat!(
            r"(?i:[\w.-]{0,40}(?:api[_-]?key|secret(?:[_-]?(?:key|access[_-]?key|token))?",
            r"|access[_-]?key|auth[_-]?(?:token|key)|(?:access|refresh|id|session|bot|csrf|personal|bearer)[_-]?token",
            r"|client[_-]?secret|private[_-]?key|encryption[_-]?key|signing[_-]?key|master[_-]?key|passwd|password",
            r"|passphrase|credentials?|connection[_-]?string|account[_-]?key|subscription[_-]?key",
            r"|shared[_-]?access[_-]?(?:key|signature)|_auth|_authtoken)¦)"
        ),
        VALUE,
    ),
    after(r"(?:[Pp]wd|DB_PWD|[Pp]ass)¦", VALUE),
    after(r"[A-Z0-9_]{0,40}_(?:TOKEN|KEY|SECRET|PASS|PWD|PAT|CREDENTIALS|DSN|COOKIE)¦", r"[^\s\x22'\x60,;&<>\\]{8,}"),
    chance_after(r"(?i:[\w.-]{0,40}token¦)", LONG_VALUE),
    chance_after(
        r"(?i:(?:api|access|secret|account|auth|service|license)(?:␣|[_-])key(?:␣(?:provided|is|was))?¦?␣*)",
        LONG_VALUE,
    ),
    after(r"(?i:(?:incorrect|invalid) api key(?: provided)?: )", r"\S{6,}"),
    dashed(
        concat!(
            r"(?i:--(?:[\w-]{0,30}(?:api-?key|token|secret|password|passwd|passphrase|access-key|secret-key))",
            r"(?:␣+|=|%3[Dd])[\x22']?)"
        ),
        VALUE,
    ),
    dashed(r"-(?:u|-user|-proxy-user)(?:␣|=)?[\x22']?[^\s:\x22'%]{1,60}(?::|%3A)", r"[^\s\x22'@/]{6,}"),
    after(r"(?i:sshpass -p ?[\x22']?)", r"[^\s\x22']{4,}"),
    after(r"login␣+[^\s%]{1,80}␣+password␣+", r"\S{4,}"),
];
