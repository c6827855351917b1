//! What the command gets: placeholders, variables, stdin; and what hooks get.

use std::process::Stdio;

use crate::support::{Dir, corpus};

#[test]
fn placeholders_and_variables_arrive() {
    let dir = Dir::new();
    let agent = r#"echo "$# $1|$2|$3|$BACKSTOP_ATTEMPT|$BACKSTOP_SESSION|$BACKSTOP_KIND|$BACKSTOP_SEQ" >> seen
        [ $BACKSTOP_ATTEMPT = 2 ] || { echo 503 overloaded >&2; exit 1; }"#;
    let options = ["--config", "fast.yaml", "--session", "a b", "--model", "m"];
    let mut exec =
        dir.exec(&options, &["sh", "-c", agent, "agent", "try{attempt}", "{session}/{model}", "--note", "{inject}"]);
    exec.env("BACKSTOP_KIND", "inherited");
    dir.ended(exec).expect(0);
    assert_eq!(dir.read("seen"), "2 try1|a b/m||1|a b||0\n2 try2|a b/m||2|a b|overloaded|1\n");
}

#[test]
fn stdin_is_replayed_to_each_try() {
    let dir = Dir::new();
    let prompt = "a long prompt\n".repeat(20_000);
    dir.file("prompt", &prompt);
    let agent = "cat > got$BACKSTOP_ATTEMPT; [ -e got3 ] || { echo overloaded, status 529 >&2; exit 1; }";
    let mut exec = dir.exec(&["--config", "fast.yaml"], &["sh", "-c", agent]);
    exec.stdin(std::fs::File::open(dir.path("prompt")).unwrap());
    dir.ended(exec).expect(0).reports("tries", 3);
    for got in ["got1", "got2", "got3"] {
        assert_eq!(dir.read(got), prompt, "{got}");
    }
}

#[test]
fn a_pipe_that_never_closes_does_not_hold_up_the_command() {
    let dir = Dir::new();
    let mut exec = dir.exec(&[], &["sh", "-c", "cat; echo ok"]);
    exec.stdin(Stdio::piped());
    // `Running` keeps the other end open.
    let ran = dir.start(exec).end();
    ran.expect(0).says("nothing comes on stdin");
    assert_eq!(ran.stdout, "ok\n");
}

#[test]
fn stdin_can_be_left_to_the_command_or_kept_from_it() {
    let dir = Dir::new();
    dir.file("prompt", "words");
    for (mode, read) in [("inherit", "words"), ("null", ""), ("replay", "words")] {
        let mut exec = dir.exec(&["--stdin", mode], &["cat"]);
        exec.stdin(std::fs::File::open(dir.path("prompt")).unwrap());
        assert_eq!(dir.ended(exec).expect(0).stdout, read, "{mode}");
    }
}

#[test]
fn hooks_make_remedies_real() {
    let dir = Dir::new();
    dir.file("compact.yaml", "session_error: [compact, abort]\ncontext_window: [summarize, abort]");
    dir.file("error", &corpus("a052"));
    let agent = "if [ -e mended ]; then echo ok; else cat error >&2; exit 1; fi";
    let hook = r#"echo "$BACKSTOP_SESSION $BACKSTOP_REMEDY $BACKSTOP_KIND" > mended; echo from the hook"#;
    let options = ["--config", "compact.yaml", "--session", "s", "--on-compact", hook];
    let ran = dir.run(&options, &["sh", "-c", agent]);
    ran.expect(0).reports("tries", 2).says("from the hook");
    assert_eq!((dir.read("mended").as_str(), ran.stdout.as_str()), ("s compact overloaded\n", "ok\n"));

    std::fs::remove_file(dir.path("mended")).unwrap();
    dir.file("error", &corpus("a056"));
    let options = ["--config", "compact.yaml", "--session", "s", "--on-summarize", hook];
    dir.run(&options, &["sh", "-c", agent]).expect(0).reports("tries", 2);
    assert_eq!(dir.read("mended"), "s summarize context_overflow\n");
}

#[test]
fn a_hook_that_fails_is_no_remedy() {
    let dir = Dir::new();
    dir.file("compact.yaml", "session_error: [compact, abort]");
    let options = ["--config", "compact.yaml", "--on-compact", "exit 3"];
    let ran = dir.run(&options, &["sh", "-c", "echo Overloaded, status 529 >&2; exit 1"]);
    ran.expect(80).reports("tries", 1).says("remedy not done");
}
