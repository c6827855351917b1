#![allow(clippy::unwrap_used)]

use super::*;
use crate::failure::SessionId;
use crate::policy::Injection;
use crate::policy::Turn;

const SMALL: &str = "name: x\nversion: 1\nagent: { program: x, version: '1' }\n";

fn problem(more: &str) -> String {
    Preset::parse("x.yaml", &format!("{SMALL}{more}")).unwrap_err().to_string()
}

#[test]
fn every_embedded_preset_is_valid_and_bears_its_name() {
    for name in Preset::names() {
        assert_eq!(Preset::named(name).unwrap().name, name);
    }
    let error = Preset::named("clod").unwrap_err().to_string();
    assert_eq!(error, "no preset `clod`; there are: claude");
}

#[test]
fn what_is_wrong_in_a_preset_is_said_with_its_place() {
    assert!(problem("modle: y\n").contains("unknown field `modle`"));
    assert!(problem("args: 5\n").starts_with("x.yaml: args: invalid type"));
    assert!(problem("failure: { json_error: [error] }").contains("`error` is no JSON pointer"));
    assert_eq!(problem("failure: { exit: { 41: { kind: atuh } } }"), "x.yaml: failure.exit.41: no kind `atuh`");
    assert!(problem("failure: { regex: ['('] }").starts_with("x.yaml: failure.regex[0]: regex parse error"));
    assert_eq!(problem("result: { where: {} }"), "x.yaml: result.where: must name at least one value");
    assert!(problem("env: { 'A=B': c }").contains("cannot name a variable"));
    assert!(Preset::parse("x.yaml", &"#".repeat(70_000)).unwrap_err().to_string().contains("larger than"));
}

#[test]
fn a_preset_that_expands_without_end_is_refused() {
    let mut bomb = format!("{SMALL}notes: x\nargs: &a0 [['x','x']]\n");
    for level in 1..40 {
        bomb += &format!("b{level}: &a{level} [*a{0},*a{0},*a{0}]\n", level - 1);
    }
    assert!(Preset::parse("bomb", &bomb).is_err());
}

#[test]
fn a_preset_file_is_read_and_a_missing_one_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.yaml");
    assert!(matches!(Preset::load(&path), Err(PresetError::Read { .. })));
    std::fs::write(&path, SMALL).unwrap();
    assert_eq!(Preset::load(&path).unwrap().program, "x");
}

fn redo(model: Option<&str>, inject: Option<&str>) -> Invocation {
    Invocation::new(&Turn {
        model: model.map(Into::into),
        injections: inject.map(Injection::new).into_iter().collect(),
        ..Turn::first(SessionId::new("s").unwrap())
    })
}

fn arguments(own: &[&str], invocation: &Invocation) -> Vec<String> {
    let own: Vec<OsString> = own.iter().map(Into::into).collect();
    let args = Preset::named("claude").unwrap().arguments(&own, invocation);
    args.into_iter().map(|arg| arg.into_string().unwrap()).collect()
}

#[test]
fn arguments_are_added_only_where_there_is_something_to_say() {
    assert_eq!(arguments(&["-p", "fix"], &redo(None, None)), ["-p", "fix"]);
    assert_eq!(arguments(&["-p", "fix"], &redo(Some("opus"), None)), ["-p", "fix", "--model", "opus"]);
    let told = arguments(&["-p", "--", "fix"], &redo(None, Some("read first")));
    assert_eq!(told, ["-p", "--append-system-prompt", "read first", "--", "fix"]);
}

#[test]
fn a_users_own_placeholder_replaces_the_presets_argument() {
    let own = ["-m", "{model}", "-p", "fix\n{inject}"];
    assert_eq!(arguments(&own, &redo(Some("opus"), Some("now"))), ["-m", "opus", "-p", "fix\nnow"]);
}

#[test]
fn the_users_own_variables_win() {
    let preset = Preset::named("claude").unwrap();
    assert_eq!(preset.environment(|_| false).len(), preset.env.len());
    assert_eq!(preset.environment(|_| true), []);
}
