//! Other processes, other users, other versions, links, and a kill.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_log_is_refused_by_every_verb_and_left_untouched() {
    let dir = two_sessions().await;
    let log = log_file(dir.path());
    let mut bytes = fs::read(&log).unwrap();
    bytes[8..12].copy_from_slice(&9_u32.to_le_bytes());
    let sum = crc32fast::hash(&bytes[..24]);
    bytes[24..28].copy_from_slice(&sum.to_le_bytes());
    fs::write(&log, bytes).unwrap();
    let document = dir.path().join("document");
    fs::write(
        &document,
        r#"{"format":"backstop-state","version":1,"sessions":[{"session":"x","revision":1,"memory":{}}]}"#,
    )
    .unwrap();
    let before = tree(dir.path());
    for args in [&["verify"][..], &["repair"], &["export"], &["import", document.to_str().unwrap()]] {
        let refused = state(dir.path(), args);
        assert_eq!(refused.status.code(), Some(3), "{args:?}: {refused:?}");
        assert!(err(&refused).contains("format 9"), "{args:?}: {refused:?}");
    }
    let mut after = tree(dir.path());
    after.insert(dir.path().join("backstop/lock"), before[&dir.path().join("backstop/lock")].clone());
    assert_eq!(after, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_the_directory_is_named_at_once() {
    let dir = two_sessions().await;
    let exported = state(dir.path(), &["export"]);
    let (_held, _) = FileStore::open(dir.path(), FileStoreOptions::default()).unwrap();
    let document = dir.path().join("document");
    fs::write(&document, exported.stdout).unwrap();
    let pipe = || {
        let mut pipe = Command::new(env!("CARGO_BIN_EXE_backstop"));
        pipe.arg("--state-dir").arg(dir.path()).arg("pipe").stdin(Stdio::null()).output().unwrap()
    };
    let import = ["import", "--replace", document.to_str().unwrap()];
    let refused = [state(dir.path(), &["repair"]), state(dir.path(), &import), pipe()];
    for output in &refused {
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(err(output).contains(&format!("process {}", std::process::id())), "{output:?}");
        assert!(err(output).contains(dir.path().to_str().unwrap()), "{output:?}");
    }
    for verb in ["verify", "export"] {
        assert_eq!(state(dir.path(), &[verb]).status.code(), Some(0), "looking works beside it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_nowhere() {
    let dir = two_sessions().await;
    let outside = TempDir::new().unwrap();
    let canary = outside.path().join("canary");
    fs::write(&canary, "canary").unwrap();
    // What a repair writes.
    symlink(outside.path(), dir.path().join("backstop/backup.new")).unwrap();
    symlink(&canary, dir.path().join("backstop/log.new")).unwrap();
    symlink(&canary, dir.path().join("recovery-.new")).unwrap();
    fs::remove_file(dir.path().join("recovery-gone.json")).unwrap();
    symlink(&canary, dir.path().join("recovery-gone.json")).unwrap();
    flip(dir.path());
    let repaired = state(dir.path(), &["repair"]);
    assert_eq!(repaired.status.code(), Some(0), "{repaired:?}");
    assert!(dir.path().join("recovery-gone.json").symlink_metadata().unwrap().is_file());
    // What an export writes.
    let link = outside.path().join("link.json");
    symlink(&canary, &link).unwrap();
    symlink(&canary, outside.path().join("new.json.part")).unwrap();
    assert_eq!(state(dir.path(), &["export", "-o", link.to_str().unwrap()]).status.code(), Some(1));
    let new = outside.path().join("new.json");
    assert_eq!(state(dir.path(), &["export", "-o", new.to_str().unwrap()]).status.code(), Some(0));
    // The directory itself.
    let way = outside.path().join("way");
    symlink(dir.path(), &way).unwrap();
    let before = tree(dir.path());
    for args in [&["verify"][..], &["repair"], &["export"], &["import", new.to_str().unwrap()]] {
        let refused = state(&way, args);
        assert_eq!(refused.status.code(), Some(3), "{args:?}: {refused:?}");
        assert!(err(&refused).contains("symbolic link"), "{args:?}: {refused:?}");
    }
    assert_eq!(tree(dir.path()), before);
    assert_eq!(fs::read_to_string(&canary).unwrap(), "canary");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_somebody_else_where_everybody_may_write_is_refused() {
    let dir = two_sessions().await;
    let document = TempDir::new().unwrap();
    let file = document.path().join("document");
    fs::write(&file, state(dir.path(), &["export"]).stdout).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let nobody = 65_534;
    if std::os::unix::fs::chown(dir.path(), Some(nobody), None).is_err() {
        eprintln!("skipped: only root can give a directory away");
        return;
    }
    let before = tree(dir.path());
    for args in [&["verify"][..], &["repair"], &["export"], &["import", file.to_str().unwrap()]] {
        let refused = state(dir.path(), args);
        assert_eq!(refused.status.code(), Some(3), "{args:?}: {refused:?}");
        assert!(err(&refused).contains("no safe place"), "{args:?}: {refused:?}");
    }
    assert_eq!(tree(dir.path()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_repair_and_import_write_is_private_whatever_the_umask() {
    let source = two_sessions().await;
    let document = source.path().join("document");
    fs::write(&document, state(source.path(), &["export"]).stdout).unwrap();
    for umask in ["000", "077"] {
        let dir = TempDir::new().unwrap();
        let there = dir.path().join("state");
        let run = |args: &[&str]| {
            let made = command(&there, args);
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
            shell.arg(made.get_program()).args(made.get_args()).output().unwrap()
        };
        assert_eq!(run(&["import", document.to_str().unwrap()]).status.code(), Some(0));
        flip(&there);
        assert_eq!(run(&["repair"]).status.code(), Some(0));
        assert!(there.join("backstop/backup-1").is_dir());
        for path in tree(&there).keys().chain([&there, &there.join("backstop"), &there.join("backstop/backup-1")]) {
            let meta = path.metadata().unwrap();
            let expected = if meta.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(meta.permissions().mode() & 0o777, expected, "{} under {umask}", path.display());
        }
    }
}

/// Killed as soon as each of its works is seen, a repair leaves the log as it was or repaired.
#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_is_killed_leaves_nothing_broken() {
    let dir = two_sessions().await;
    let own = dir.path().join("backstop");
    flip(dir.path());
    let known = sessions(dir.path());
    for seen in ["backup.new", "backup-1", "damaged-", "log.new", "log-00000003"] {
        let mut repair = command(dir.path(), &["repair"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let is_there =
            || own.read_dir().unwrap().flatten().any(|name| name.file_name().to_str().unwrap().contains(seen));
        while !is_there() && repair.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let _ = repair.kill();
        repair.wait().unwrap();
        let now = sessions(dir.path());
        assert!(known.iter().all(|session| now.contains(session)), "after {seen}: {now:?}");
    }
    let repaired = state(dir.path(), &["repair"]);
    assert_eq!(repaired.status.code(), Some(0), "{repaired:?}");
    assert_eq!(state(dir.path(), &["verify"]).status.code(), Some(0));
    assert_eq!(sessions(dir.path()), ["gone", "open"]);
    assert!(!own.join("backup.new").exists());
}
