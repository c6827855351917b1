use serde_json::{Value, json};

use super::progress::Progress;
use super::{count, line, places, refused, worse};
use crate::cli::human::escaped;
use crate::cli::{Exit, Globals, output};
use crate::state::{FileStore, FileStoreOptions, Keeper, Repaired, StateError};

pub(super) fn run(globals: &Globals) -> Exit {
    let (mut exit, mut shown) = (Exit::Done, vec![]);
    for (of, dir) in places(&globals.state_dir) {
        // A session of `exec` that runs is none of ours unless something is wrong with it.
        let is_passed_over =
            of == Keeper::Exec && FileStore::verify(&dir, &mut |_, _| {}).is_ok_and(|it| it.is_whole());
        if is_passed_over {
            continue;
        }
        let progress = Progress::of("repairing", globals);
        let repaired = FileStore::repair(&dir, options(), &mut |done, all| progress.at(done, all));
        drop(progress);
        match repaired {
            Ok(repaired) => {
                if !repaired.after.is_whole() {
                    exit = worse(exit, Exit::Problems);
                }
                if globals.json {
                    shown.push(as_json(of, &repaired));
                } else {
                    print(&repaired);
                }
            }
            Err(error) => {
                exit = worse(exit, refused(&error));
                if matches!(error, StateError::View { .. }) {
                    output::note("the log is repaired; the readable copies are made up for at the next start");
                }
                shown.push(json!({"of": of, "dir": dir, "error": output::with_causes(&error)}));
            }
        }
    }
    if globals.json {
        output::json_line(&json!({"state_dir": globals.state_dir, "whole": exit == Exit::Done, "places": shown}));
    }
    exit
}

fn options() -> FileStoreOptions {
    FileStoreOptions::default()
}

fn as_json(of: Keeper, repaired: &Repaired) -> Value {
    let mut value = json!(repaired);
    value["of"] = json!(of);
    value["repaired"] = repaired.backup.is_some().into();
    value["notes"] = repaired.notes.iter().map(ToString::to_string).collect();
    value
}

fn print(repaired: &Repaired) {
    let dir = repaired.before.dir.display();
    let Some(backup) = &repaired.backup else {
        output::line(format_args!("{dir}: nothing to repair"));
        return;
    };
    let sessions = count(repaired.after.sessions, "session");
    output::line(format_args!("{dir}: repaired, {sessions} kept"));
    for finding in &repaired.before.findings {
        output::line(line(finding));
    }
    for note in &repaired.notes {
        output::line(format_args!("  done     {}", escaped(&note.to_string())));
    }
    output::line(format_args!("  backup   {}", backup.display()));
    for left in repaired.after.findings.iter().filter(|finding| finding.kind.is_problem()) {
        output::line(format_args!("  left     {}", escaped(&left.to_string())));
    }
}
