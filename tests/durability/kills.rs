//! SIGKILL at random moments of real recoveries.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Duration;

use backstop::state::FileStore;

use super::child::{child, said};
use super::load::{BUDGET, SESSIONS};
use super::{scratch, times};

/// What is known from outside of the sessions of one directory.
#[derive(Default)]
pub struct Known {
    /// The last episode whose end was told, per session.
    told: BTreeMap<String, u64>,
    kills: usize,
    tellings: usize,
    resumed: usize,
}

impl Known {
    pub fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["ready", temporary, open] => {
                assert_eq!(temporary, "0", "a temporary file was left over");
                self.resumed += open.parse::<usize>().unwrap();
            }
            ["told", session, episode, executions, durable] => {
                let episode = episode.parse().unwrap();
                let before = self.told.insert(session.to_owned(), episode);
                assert!(before < Some(episode), "episode {episode} of {session} ended twice");
                assert!(executions.parse::<u32>().unwrap() <= BUDGET, "the budget was refilled: {line}");
                assert_eq!(durable, "true");
                self.tellings += 1;
            }
            _ => panic!("{line}"),
        }
    }

    /// What is on disk right after a kill, against what was told and done.
    pub fn check(&self, dir: &Path) {
        let look = FileStore::inspect(dir.join("state")).unwrap();
        assert_eq!(look.unreadable_bytes(), 0);
        let effects = std::fs::read_to_string(dir.join("effects")).unwrap_or_default();
        let mut seen = HashSet::new();
        let mut done: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for line in effects.lines() {
            assert!(seen.insert(line), "{line} happened twice");
            let words: Vec<&str> = line.split(' ').collect();
            if words[0] == "act" {
                done.entry(words[1]).or_default().push(words[2].parse().unwrap());
            }
        }
        for number in 0..SESSIONS {
            let name = format!("s{number}");
            let record = look.load(&name.as_str().try_into().unwrap());
            let memory = record.map(|record| record.read().unwrap().unwrap()).unwrap_or_default();
            let told = self.told.get(&name).copied().unwrap_or(0);
            assert!(memory.episodes() >= told, "{name}: episode {told} was told and is lost");
            let done = done.get(name.as_str()).map_or(&[][..], Vec::as_slice);
            let last = done.iter().max().copied().unwrap_or(0);
            assert!(memory.fence().seq >= last, "{name}: attempt {last} was made and is lost");
            let Some(episode) = memory.open_episode() else { continue };
            assert!(episode.id() > told, "{name}: episode {told} is open again");
            let mut numbers: Vec<u64> = episode.attempts().iter().map(|attempt| attempt.seq).collect();
            let count = numbers.len();
            numbers.dedup();
            assert_eq!(numbers.len(), count, "{name}: an attempt is there twice");
            let first = numbers.first().copied().unwrap_or(episode.seq());
            let made = done.iter().filter(|seq| **seq >= first).count();
            assert!(episode.executions() as usize >= made, "{name}: {made} attempts were made: {episode:?}");
            assert!(episode.executions() <= BUDGET);
        }
    }
}

fn kill_recoveries(kills: usize, seed: u64) -> Known {
    let dir = tempfile::tempdir().unwrap();
    let mut known = Known::default();
    for kill in 0..kills {
        let number = seed + kill as u64;
        let mut child = child(&format!("recover {number}"), dir.path()).spawn().unwrap();
        let mut lines = said(&mut child);
        let ready = lines.next().expect("it starts");
        known.hear(&ready);
        if kill % 3 == 0 {
            // While it finds out what failed, and goes on with what was open.
            pause(100_000 + number * 7_919 % 300_000);
        } else {
            let told = lines.next().expect("it works");
            known.hear(&told);
            pause(number * 7_919 % 30_000);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        lines.for_each(|line| known.hear(&line));
        known.check(dir.path());
        known.kills += 1;
    }
    known
}

/// Not a wait for anything: the moment of a kill.
fn pause(micros: u64) {
    std::thread::sleep(Duration::from_micros(micros));
}

/// `BACKSTOP_ENGINE_KILLS` asks for more. In a test build a process needs a quarter of a second before it
/// knows its first failure, which is why there are no more of them.
#[test]
fn killed_recoveries_lose_nothing_double_nothing_and_refill_no_budget() {
    let kills = times("BACKSTOP_ENGINE_KILLS", 40);
    let lanes = [1_u64, 100_003].map(|seed| std::thread::spawn(move || kill_recoveries(kills / 2, seed)));
    let known = lanes.map(|lane| lane.join().unwrap());
    let sum = |of: fn(&Known) -> usize| known.iter().map(of).sum::<usize>();
    let (kills, told, resumed) = (sum(|known| known.kills), sum(|known| known.tellings), sum(|known| known.resumed));
    println!("{kills} kills, {told} verdicts told, {resumed} episodes resumed, none lost or doubled");
    assert!(told >= kills / 2 && resumed >= kills / 2, "it hardly worked: {told} told, {resumed} resumed");
}

fn kill_saves(kills: usize, seed: u64) -> u64 {
    let dir = scratch();
    let mut known: BTreeMap<String, u64> = BTreeMap::new();
    for kill in 0..kills as u64 {
        let mut child = child("store", dir.path()).spawn().unwrap();
        let mut lines = said(&mut child);
        assert_eq!(lines.next().as_deref(), Some("ready 0 0"), "it does not start, or left something over");
        pause((seed + kill * 7_919) % 9_000);
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines {
            let [_, session, revision] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let before = known.insert(session.to_owned(), revision.parse().unwrap()).unwrap_or(0);
            assert_eq!(known[session], before + 1, "{session} was acknowledged twice, or not at all");
        }
        let look = FileStore::inspect(dir.path().join("state")).unwrap();
        assert_eq!(look.unreadable_bytes(), 0);
        for line in look.list() {
            let session = line.session.as_str();
            let acked = known.get(session).copied().unwrap_or(0);
            assert!(line.revision == acked || line.revision == acked + 1, "{line:?} after {acked}");
            assert_eq!(look.load(&line.session), Some(super::load::record(session, line.revision)), "not whole");
            // What was saved and not acknowledged any more is known from here on.
            known.insert(session.to_owned(), line.revision);
        }
        assert!(known.keys().all(|session| look.load(&session.as_str().try_into().unwrap()).is_some()));
    }
    known.values().sum()
}

/// `BACKSTOP_KILLS` asks for more.
#[test]
fn a_thousand_kills_of_a_saving_process_lose_nothing_and_double_nothing() {
    let kills = times("BACKSTOP_KILLS", 1_000);
    let lanes = [3_u64, 4_501].map(|seed| std::thread::spawn(move || kill_saves(kills / 2, seed)));
    let records: u64 = lanes.map(|lane| lane.join().unwrap()).iter().sum();
    println!("{kills} kills, {records} records, none lost, doubled or half there");
    assert!(records > kills as u64, "it hardly saved: {records}");
}
