use serde_json::{Value, json};

use super::progress::Progress;
use super::{count, line, places, refused, worse};
use crate::cli::{Exit, Globals, output};
use crate::state::{FileStore, Keeper, Verification};

pub(super) fn run(globals: &Globals) -> Exit {
    let (mut exit, mut shown, mut whole_of_exec) = (Exit::Done, vec![], 0);
    for (of, dir) in places(&globals.state_dir) {
        let progress = Progress::of("reading state files", globals);
        let found = FileStore::verify(&dir, &mut |done, all| progress.at(done, all));
        drop(progress);
        match found {
            Ok(found) => {
                if !found.is_whole() {
                    exit = worse(exit, Exit::Problems);
                }
                if globals.json {
                    shown.push(as_json(of, &found));
                } else if of == Keeper::Exec && found.findings.is_empty() {
                    whole_of_exec += 1;
                } else {
                    print(of, &found);
                }
            }
            Err(error) => {
                exit = worse(exit, refused(&error));
                shown.push(json!({"of": of, "dir": dir, "error": output::with_causes(&error)}));
            }
        }
    }
    if globals.json {
        output::json_line(&json!({"state_dir": globals.state_dir, "whole": exit == Exit::Done, "places": shown}));
    } else {
        if whole_of_exec > 0 {
            output::line(format_args!("{} of exec: nothing is wrong", count(whole_of_exec, "session")));
        }
        if exit == Exit::Problems {
            output::note("`backstop state repair` sets aside what is damaged and keeps what is whole");
        }
    }
    exit
}

fn as_json(of: Keeper, found: &Verification) -> Value {
    let mut value = json!(found);
    value["of"] = json!(of);
    for (shown, finding) in value["findings"].as_array_mut().into_iter().flatten().zip(&found.findings) {
        shown["problem"] = finding.kind.is_problem().into();
    }
    value
}

pub(super) fn print(of: Keeper, found: &Verification) {
    output::line(headline(of, found));
    found.findings.iter().for_each(|finding| {
        output::line(line(finding));
    });
    if found.more > 0 {
        output::line(format_args!("  and {} more", found.more));
    }
}

fn headline(of: Keeper, found: &Verification) -> String {
    let dir = found.dir.display();
    if of == Keeper::Host && found.sessions == 0 && found.log_bytes == 0 && found.findings.is_empty() {
        return format!("{dir}: no state");
    }
    let (sessions, copies) = (count(found.sessions, "session"), count(found.copies, "readable copy"));
    let copies = copies.replace("copys", "copies");
    let verdict = match found.problems {
        0 => "nothing is wrong".to_owned(),
        problems => count(problems, "problem"),
    };
    let (open, bytes) = (found.open_episodes, found.log_bytes);
    format!("{dir}: {sessions} ({open} in recovery), {bytes} bytes of log, {copies}: {verdict}")
}
