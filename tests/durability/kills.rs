//! SIGKILL at random moments of real recoveries.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Duration;

use backstop::state::FileStore;

use super::child::{child, said};
use super::load::{BUDGET, SESSIONS};
use super::times;

/// What is known from outside of the sessions of one directory.
#[derive(Default)]
struct Known {
    /// The last episode whose end was told, per session.
    told: BTreeMap<String, u64>,
    kills: usize,
    tellings: usize,
    resumed: usize,
}

impl Known {
    fn hear(&mut self, line: &str) {
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
    fn check(&self, dir: &Path) {
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

fn kill_again_and_again(kills: usize, seed: u64) -> Known {
    let dir = tempfile::tempdir().unwrap();
    let mut known = Known::default();
    for kill in 0..kills {
        let mut child = child(&format!("recover {}", seed + kill as u64), dir.path()).spawn().unwrap();
        let mut lines = said(&mut child);
        let ready = lines.next().expect("it starts");
        known.hear(&ready);
        // Not a wait for anything: the moment of the kill.
        std::thread::sleep(Duration::from_micros(300 + (seed + kill as u64 * 7_919) % 9_000));
        child.kill().unwrap();
        child.wait().unwrap();
        lines.for_each(|line| known.hear(&line));
        known.check(dir.path());
        known.kills += 1;
    }
    known
}

/// `BACKSTOP_KILLS` asks for more.
#[test]
fn a_thousand_kills_lose_nothing_double_nothing_and_refill_no_budget() {
    let kills = times("BACKSTOP_KILLS", 1_000);
    let lanes = [1_u64, 100_003].map(|seed| std::thread::spawn(move || kill_again_and_again(kills / 2, seed)));
    let known = lanes.map(|lane| lane.join().unwrap());
    let sum = |of: fn(&Known) -> usize| known.iter().map(of).sum::<usize>();
    let (kills, told, resumed) = (sum(|known| known.kills), sum(|known| known.tellings), sum(|known| known.resumed));
    println!("{kills} kills, {told} verdicts told, {resumed} episodes resumed, none lost or doubled");
    assert!(told > kills / 10 && resumed > kills / 10, "it hardly worked: {told} told, {resumed} resumed");
}
