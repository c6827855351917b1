use tracing_subscriber::EnvFilter;

use super::Globals;

/// The variable that holds a log filter of one's own, such as `backstop=trace`.
const FILTER: &str = "BACKSTOP_LOG";

/// Sends logs to stderr; stdout belongs to the verbs.
pub(super) fn start(globals: &Globals) {
    let level = match (globals.quiet, globals.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, _) => "debug",
    };
    // ractor logs every actor that ends.
    let usual = || EnvFilter::new(format!("{level},ractor=warn"));
    let filter = std::env::var(FILTER).ok().and_then(|own| own.parse().ok()).unwrap_or_else(usual);
    let _already_started =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().try_init();
}
