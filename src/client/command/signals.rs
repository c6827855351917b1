use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Control;

/// Turns the signals sent to this program into requests: SIGINT cancels; SIGTERM, and SIGHUP unless
/// it was ignored (`nohup`), suspend.
///
/// Call it before the first child is started. A signal that the program was started to ignore would
/// be ignored by its children too; one that it handles they get with its usual meaning, so after this
/// an agent can be interrupted even where `backstop` runs in a script's background.
///
/// The listener lives as long as the runtime, and the signals keep their new meaning for ever.
///
/// # Errors
///
/// The system refused a handler; then nothing was installed for that signal and those after it.
///
/// # Panics
///
/// Outside of a runtime with I/O enabled.
pub fn listen(control: &Control) -> io::Result<()> {
    let interrupt = signal(SignalKind::interrupt())?;
    let terminate = signal(SignalKind::terminate())?;
    let hang_up = if ignores_hang_up() { None } else { Some(signal(SignalKind::hangup())?) };
    tokio::spawn(forward(interrupt, terminate, hang_up, control.clone()));
    Ok(())
}

async fn forward(mut interrupt: Signal, mut terminate: Signal, mut hang_up: Option<Signal>, control: Control) {
    loop {
        tokio::select! {
            biased;
            Some(()) = interrupt.recv() => control.cancel(),
            Some(()) = terminate.recv() => control.suspend(),
            Some(()) = next(&mut hang_up) => control.suspend(),
            else => return,
        }
    }
}

async fn next(signal: &mut Option<Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Where the system does not say, hang-ups are left alone: `nohup` must keep working.
fn ignores_hang_up() -> bool {
    match std::fs::read_to_string("/proc/self/status") {
        Ok(status) => ignored_in(&status, SignalKind::hangup()),
        Err(_) => true,
    }
}

/// Reads the mask of ignored signals in `/proc/self/status`: bit n − 1 stands for signal n.
fn ignored_in(status: &str, kind: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(u64::MAX);
    mask & 1 << (kind.as_raw_value() - 1) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_respected() {
        assert!(ignored_in("Name:\tx\nSigIgn:\t0000000000001001\n", SignalKind::hangup()));
        assert!(!ignored_in("Name:\tx\nSigIgn:\t0000000000001000\n", SignalKind::hangup()));
        assert!(ignored_in("no such line", SignalKind::hangup()));
    }
}
