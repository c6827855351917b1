use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::Globals;

/// How far long work has come, on stderr where a person sees it.
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub fn of(what: &'static str, globals: &Globals) -> Self {
        let is_seen = io::stderr().is_terminal() && !globals.quiet && !globals.json;
        let target = if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target).with_message(what);
        // An invalid template would only cost the looks.
        if let Ok(style) = ProgressStyle::with_template("{msg} {pos} of {len} {wide_bar} {eta}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    pub fn at(&self, done: usize, of: usize) {
        self.0.set_length(of as u64);
        self.0.set_position(done as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
