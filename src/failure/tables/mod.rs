//! The built-in knowledge, as data: one table for each family of failures.
//!
//! Rules with a higher rank win; within a rank the order of the tables and of the rules in them
//! decides. A rank says how much a match proves:
//!
//! | rank | what matched |
//! | --- | --- |
//! | 95 | how a reply says that it ended (`finish_reason`) |
//! | 90 | words that settle the matter whatever else is said: unpaid, a per-minute limit |
//! | 80–88 | fixed frames and codes of one system: overflow, pairing, edits, guards, certificates |
//! | 60–78 | phrases that many systems use for one thing; the more specific the higher |
//! | 30–58 | words that are trusted only when nothing better speaks |
//! | 10 | the HTTP status alone |
//! | 5 | the exit code or signal alone |

use super::rule::Rule;

mod access;
mod cjk;
mod cjk_limits;
mod command;
mod content_filter;
mod context;
mod crashes;
mod edit;
mod edit_match;
mod environment;
mod exceptions;
mod generated;
mod guard;
mod json;
mod limits;
mod local;
mod locale;
mod locale_machine;
mod loops;
mod model;
mod network;
mod pairing;
mod quota;
mod registries;
mod rejected;
mod reply;
mod request;
mod schema;
mod sdk;
mod server;
mod status;
mod storage;
mod throttle;
mod tool;
mod transport;
mod vendor_codes;
mod verify;

/// Every built-in rule.
pub(crate) fn all() -> Vec<&'static Rule> {
    [
        vendor_codes::RULES,
        quota::RULES,
        throttle::RULES,
        cjk_limits::RULES,
        context::RULES,
        local::RULES,
        sdk::RULES,
        pairing::RULES,
        edit::RULES,
        edit_match::RULES,
        rejected::RULES,
        loops::RULES,
        content_filter::RULES,
        guard::RULES,
        reply::RULES,
        json::RULES,
        schema::RULES,
        generated::RULES,
        model::RULES,
        registries::RULES,
        access::RULES,
        request::RULES,
        transport::RULES,
        network::RULES,
        cjk::RULES,
        server::RULES,
        storage::RULES,
        limits::RULES,
        exceptions::RULES,
        crashes::RULES,
        environment::RULES,
        locale_machine::RULES,
        locale::RULES,
        command::RULES,
        tool::RULES,
        verify::RULES,
        status::RULES,
    ]
    .into_iter()
    .flatten()
    .collect()
}
