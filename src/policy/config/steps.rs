use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::node::{Entry, Found, Node, Quoted};
use super::problems::{Problems, Spot, no_help};
use super::settings::{Setting, TIMEOUT, settings_of};
use super::{BUILT_IN_STRATEGIES, did_you_mean, nearest};
use crate::policy::{Step, StepConfig};

/// Steps in one chain; more is a generated file gone wrong.
pub(super) const MAX_STEPS: usize = 256;

/// The strategies that steps may name: the built-in ones and those that were made known.
#[derive(Debug, Default)]
pub(super) struct Known(pub(super) BTreeSet<Arc<str>>);

impl Known {
    fn contains(&self, name: &str) -> bool {
        BUILT_IN_STRATEGIES.contains(&name) || self.0.contains(name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        BUILT_IN_STRATEGIES.iter().copied().chain(self.0.iter().map(|name| &**name))
    }
}

/// Reads a list of steps. Unknown strategies are skipped with a warning; a list in which nothing is
/// left is an error.
pub(super) fn read_steps(items: &[Node], at: &Spot, known: &Known, problems: &mut Problems) -> Vec<Step> {
    if items.is_empty() {
        problems.error(at, "expected at least one step, found an empty list", || {
            Some("leave it out for the built-in chain, or write `false` to switch it off".to_owned())
        });
        return vec![];
    }
    if items.len() > MAX_STEPS {
        problems.error(at, format!("expected at most {MAX_STEPS} steps, found {}", items.len()), no_help);
        return vec![];
    }
    let mut steps: Vec<Step> = vec![];
    let mut wrong = false;
    for (index, item) in items.iter().enumerate() {
        let here = at.item(index, item);
        match read_step(item, &here, known, problems) {
            Read::Step(step) => {
                if let Some(last) = steps.last().filter(|last| ends_a_chain(&last.strategy)) {
                    let message = format!("this step never runs: `{}` before it ends the chain", last.strategy);
                    problems.warning(&here, message, no_help);
                }
                steps.push(step);
            }
            Read::Skipped => {}
            Read::Wrong => wrong = true,
        }
    }
    if steps.is_empty() && !wrong {
        problems.error(at, "no step is left: none of the strategies is known", || {
            Some("name own strategies under `known_strategies`".to_owned())
        });
    }
    steps
}

fn ends_a_chain(strategy: &str) -> bool {
    matches!(strategy, "abort" | "escalate")
}

enum Read {
    Step(Step),
    Skipped,
    Wrong,
}

fn read_step(node: &Node, at: &Spot, known: &Known, problems: &mut Problems) -> Read {
    let entries = match &node.value {
        Found::Text(name) if !name.is_empty() => return named(name, at, known, problems, Step::new(name.as_str())),
        Found::Map(entries) => entries,
        found => {
            problems.error(at, format!("expected a step such as `strategy: retry`, found {found}"), no_help);
            return Read::Wrong;
        }
    };
    let Some(strategy) = entries.iter().find(|entry| entry.key == "strategy") else {
        problems.error(at, "expected a `strategy` in the step, found none", || {
            let keys = entries.iter().map(|entry| entry.key.as_str());
            let slip = keys.clone().find(|key| nearest(key, ["strategy"]).is_some());
            let name = keys.clone().find(|key| known.contains(key));
            slip.map(|_| did_you_mean("strategy")).or_else(|| name.map(|name| format!("write `strategy: {name}`")))
        });
        return Read::Wrong;
    };
    let name = match &strategy.value.value {
        Found::Text(name) if !name.is_empty() => name,
        found => {
            problems.error(&at.value(strategy), format!("expected a strategy's name, found {found}"), no_help);
            return Read::Wrong;
        }
    };
    let settings = read_config(name, entries, at, known, problems);
    let step = Step { strategy: name.as_str().into(), config: Arc::new(StepConfig::new(settings)) };
    named(name, &at.value(strategy), known, problems, step)
}

fn named(name: &str, at: &Spot, known: &Known, problems: &mut Problems, step: Step) -> Read {
    if known.contains(name) {
        return Read::Step(step);
    }
    problems.warning(at, format!("no strategy {}", Quoted(name)), || nearest(name, known.names()).map(did_you_mean));
    Read::Skipped
}

/// The settings under `config`, and those that were written beside `strategy` by mistake: they are
/// used where their meaning is plain, with a warning.
fn read_config(name: &str, entries: &[Entry], at: &Spot, known: &Known, problems: &mut Problems) -> Map<String, Json> {
    let mut settings = Map::new();
    for entry in entries.iter().filter(|entry| !matches!(&*entry.key, "strategy" | "config")) {
        let here = at.key(entry);
        if settings_of(name).is_some() && find(name, &entry.key).is_none() && entry.key != "<<" {
            let candidates = ["strategy", "config"].into_iter().chain(names(name));
            problems.warning(&here, "unknown key", || nearest(&entry.key, candidates).map(did_you_mean));
            continue;
        }
        if known.contains(name) && entry.key != "<<" {
            let message =
                format!("the setting stands beside `strategy`; it belongs under `config` of {}", Quoted(name));
            problems.warning(&here, message, no_help);
        }
        read_setting(name, entry, at, &mut settings, problems);
    }
    let Some(config) = entries.iter().find(|entry| entry.key == "config") else {
        return settings;
    };
    let at = at.value(config);
    match &config.value.value {
        Found::Nothing => {}
        Found::Map(entries) => {
            for entry in entries {
                read_setting(name, entry, &at, &mut settings, problems);
            }
        }
        found => problems.error(&at, format!("expected a map of settings, found {found}"), no_help),
    }
    settings
}

fn names(strategy: &str) -> impl Iterator<Item = &'static str> {
    settings_of(strategy).unwrap_or_default().iter().chain([&TIMEOUT]).map(|setting| setting.name)
}

fn find(strategy: &str, setting: &str) -> Option<&'static Setting> {
    settings_of(strategy).unwrap_or_default().iter().chain([&TIMEOUT]).find(|known| known.name == setting)
}

fn read_setting(strategy: &str, entry: &Entry, at: &Spot, to: &mut Map<String, Json>, problems: &mut Problems) {
    let here = at.value(entry);
    if entry.key == "<<" {
        return merge_key(&at.key(entry), problems);
    }
    if entry.value.is_nothing() {
        return;
    }
    let checked = match (find(strategy, &entry.key), settings_of(strategy)) {
        (Some(setting), _) => setting.form.check(&entry.value).map_err(|wrong| {
            let message = format!("expected {}, found {}", setting.form, wrong.value);
            problems.error(&here.at(wrong), message, || setting.form.advice(&wrong.value));
        }),
        (None, Some(_)) => {
            let help = || nearest(&entry.key, names(strategy)).map(did_you_mean);
            problems.warning(&at.key(entry), format!("`{strategy}` has no such setting"), help);
            return;
        }
        (None, None) => entry.value.to_json().map_err(|wrong| {
            let message = format!("expected a value that JSON can say, found {}", wrong.value);
            problems.error(&here.at(wrong), message, no_help);
        }),
    };
    if let Ok(value) = checked {
        to.insert(entry.key.clone(), value);
    }
}

/// `<<` is refused: leaving out what it would merge in would change the meaning without a word.
pub(super) fn merge_key(at: &Spot, problems: &mut Problems) {
    problems.error(at, "merge keys are not read here", || {
        Some("write the values out, or use an alias for the whole block".to_owned())
    });
}
