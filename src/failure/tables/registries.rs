//! Repositories and package registries that a command line talks to.

use super::super::Kind;
use super::super::rule::Rule;

pub(crate) const RULES: &[Rule] = &[Rule {
    name: "repository_auth",
    kind: &Kind::Auth,
    rank: 79,
    phrases: &[
        "permission denied (publickey*",
        "host key verification failed*",
        "could not read username for*",
        "could not read password for*",
        "authentication failed for*",
        "http basic: access denied*",
        "invalid username or password*",
        "invalid username or token*",
        "support for password authentication was removed*",
        "please make sure you have the correct access rights*",
        "npm err! code e401",
        "npm error code e401",
        "npm err! code eneedauth",
        "npm error code eneedauth",
        "npm err! code e403",
        "npm error code e403",
        "no basic auth credentials*",
        "unauthorized: authentication required*",
        "pull access denied*",
        "please run `cargo login`*",
        "gh auth login",
        "docker login",
    ],
    regexes: &[
        ("denied to*", r"\bpermission to \S+ denied to \S+"),
        ("requested url returned error*", r"requested url returned error: 40[13]\b"),
    ],
    yes: "git@github.com: Permission denied (publickey).",
    no: "bash: ./run.sh: Permission denied",
    ..Rule::BASE
}];
