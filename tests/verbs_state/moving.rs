//! Export and import.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_is_imported_into_an_empty_directory_and_goes_on_there() {
    let dir = two_sessions().await;
    let file = dir.path().join("all.json");
    let exported = state(dir.path(), &["export", "--output", file.to_str().unwrap()]);
    assert_eq!(exported.status.code(), Some(0), "{exported:?}");
    assert!(err(&exported).contains("2 sessions written to"), "{exported:?}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let document: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!((&document["format"], &document["version"]), (&"backstop-state".into(), &1.into()));
    assert_eq!(document["sessions"].as_array().unwrap().len(), 2);
    let again = state(dir.path(), &["export", "--output", file.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    assert!(err(&again).contains("exists already"), "{again:?}");

    let other = TempDir::new().unwrap();
    let there = other.path().join("deep/state");
    let imported = state(&there, &["import", file.to_str().unwrap()]);
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    assert!(out(&imported).contains("2 sessions imported: 2 new"), "{imported:?}");
    assert_eq!(
        fs::read(there.join("recovery-gone.json")).unwrap(),
        fs::read(dir.path().join("recovery-gone.json")).unwrap()
    );
    assert_eq!(state(&there, &["verify"]).status.code(), Some(0));
    let once_more = state(&there, &["import", file.to_str().unwrap()]);
    assert!(
        out(&once_more).contains("0 sessions imported") && out(&once_more).contains("2 were there"),
        "{once_more:?}"
    );
    let engine = engine(&there).await;
    assert_eq!(engine.open_episodes(), [id("open")]);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_changes_nothing_unless_the_documents_sessions_are_to_win() {
    let (one, other) = (two_sessions().await, two_sessions().await);
    let engine = engine(other.path()).await;
    abort(&engine, "theirs").await;
    engine.shutdown().await;
    let file = one.path().join("all.json");
    fs::write(&file, state(one.path(), &["export"]).stdout).unwrap();
    let before = tree(other.path());
    let refused = state(other.path(), &["import", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(err(&refused).contains("\"gone\", \"open\"") && err(&refused).contains("--replace"), "{refused:?}");
    assert_eq!(tree(other.path()), before);
    let replaced = json(&state(other.path(), &["import", "--json", "--replace", file.to_str().unwrap()]));
    assert_eq!((&replaced["added"], &replaced["replaced"]), (&0.into(), &2.into()), "{replaced}");
    assert_eq!(sessions(other.path()), ["gone", "open", "theirs"]);
    let shown = fs::read(other.path().join("recovery-gone.json")).unwrap();
    assert_eq!(shown, fs::read(one.path().join("recovery-gone.json")).unwrap());
}

#[test]
fn a_document_that_is_none_is_refused_before_anything_is_touched() {
    let dir = TempDir::new().unwrap();
    let there = dir.path().join("state");
    let cases = [
        ("", "does not read"),
        ("{}", "no export"),
        ("[1,2", "does not read"),
        (r#"{"format":"backstop-state","version":99,"sessions":"?"}"#, "version 99"),
        ("{\"format\":\"backstop-state\",\"version\":1,\"sessions\":[\n{\"session\":\"\",\"revision\":1}]}", "line 2"),
        (r#"{"format":"backstop-state","version":1,"sessions":[{"session":"a","revision":-1,"memory":{}}]}"#, "line 1"),
    ];
    for (text, why) in cases {
        let file = dir.path().join("document");
        fs::write(&file, text).unwrap();
        let refused = state(&there, &["import", file.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(1), "{text}: {refused:?}");
        assert!(err(&refused).contains(why), "{text}: {refused:?}");
        let piped = command(&there, &["import", "-"]).stdin(fs::File::open(&file).unwrap()).output().unwrap();
        assert_eq!(piped.status.code(), Some(1), "{piped:?}");
    }
    assert_eq!(state(&there, &["import", "/nowhere/at/all"]).status.code(), Some(1));
    assert!(!there.exists());
}

#[test]
fn hostile_ids_in_a_document_stay_in_the_directory() {
    let dir = TempDir::new().unwrap();
    let there = dir.path().join("a/state");
    let ids = ["../../escaped", "/etc/passwd", "a\u{0}b", "CON", "x/../../y", "\u{1b}[2J"];
    let lines: Vec<String> = ids
        .iter()
        .flat_map(|id| {
            let line = |of: &str| serde_json::json!({"session": id, "of": of, "revision": 1, "memory": {}}).to_string();
            [line("host"), line("exec")]
        })
        .collect();
    let document = format!(r#"{{"format":"backstop-state","version":1,"sessions":[{}]}}"#, lines.join(","));
    let file = dir.path().join("document");
    fs::write(&file, document).unwrap();
    let imported = state(&there, &["import", file.to_str().unwrap()]);
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    assert_eq!(sessions(&there).len(), ids.len());
    let all = tree(dir.path());
    assert!(all.keys().all(|path| path.starts_with(&there) || *path == file), "{:?}", all.keys());
    assert_eq!(there.join("backstop/exec").read_dir().unwrap().count(), ids.len());
    let shown = state(&there, &["verify"]);
    assert!(!out(&shown).contains('\u{1b}') && shown.status.success(), "{shown:?}");
}

#[test]
fn the_sessions_of_exec_are_verified_repaired_exported_and_imported_too() {
    let dir = TempDir::new().unwrap();
    let config = dir.path().join("fast.yaml");
    fs::write(&config, "session_error: [{strategy: retry, config: {max_retries: 1, backoff_ms: 1}}, abort]\n").unwrap();
    let there = dir.path().join("state");
    let failed = Command::new(env!("CARGO_BIN_EXE_backstop"))
        .arg("--state-dir")
        .arg(&there)
        .arg("--config")
        .arg(&config)
        .args(["exec", "--session", "job", "--", "sh", "-c", "echo '503 Service Unavailable' >&2; exit 1"])
        .output()
        .unwrap();
    assert_eq!(failed.status.code(), Some(80), "{failed:?}");
    let exported = json(&state(&there, &["export"]));
    assert_eq!((&exported["sessions"][0]["session"], &exported["sessions"][0]["of"]), (&"job".into(), &"exec".into()));
    let whole = state(&there, &["verify"]);
    assert!(whole.status.success() && out(&whole).contains("1 session of exec: nothing is wrong"), "{whole:?}");
    let own = there.join("backstop/exec/job");
    flip(&own);
    assert_eq!(state(&there, &["verify"]).status.code(), Some(1));
    let repaired = state(&there, &["repair"]);
    assert_eq!(repaired.status.code(), Some(0), "{repaired:?}");
    assert_eq!(sessions(&own), ["job"], "its readable copy made up for it");

    let document = dir.path().join("document");
    fs::write(&document, exported.to_string()).unwrap();
    let other = dir.path().join("other");
    assert_eq!(state(&other, &["import", document.to_str().unwrap()]).status.code(), Some(0));
    assert_eq!(sessions(&other.join("backstop/exec/job")), ["job"]);
    assert!(sessions(&other).is_empty());
}
