/// The candidate that a misspelt name most likely means.
///
/// `maxRetries`, `max-retries` and ` retry ` find their form with underscores; other slips may
/// differ in up to a third of their letters.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Longer names are nobody's slip; the bound keeps a hostile file cheap.
    const LONGEST: usize = 48;
    if name.len() > LONGEST {
        return None;
    }
    let written = snake_case(name);
    let allowed = (written.len() / 3).clamp(1, 3);
    let ranked = candidates.into_iter().filter(|candidate| candidate.len().abs_diff(written.len()) <= allowed);
    let (distance, best) = ranked.map(|candidate| (distance(&written, candidate), candidate)).min()?;
    (distance <= allowed).then_some(best)
}

/// The help that offers a name.
pub(super) fn did_you_mean(name: &str) -> String {
    format!("did you mean `{name}`?")
}

/// The name in small letters with underscores: `maxTotalAttempts` → `max_total_attempts`.
pub(super) fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut last_was_small = false;
    for c in name.trim().chars() {
        if c.is_uppercase() && last_was_small {
            out.push('_');
        }
        last_was_small = c.is_lowercase() || c.is_numeric();
        match c {
            '-' | ' ' | '.' => out.push('_'),
            _ => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// How many letters must be inserted, removed, changed or swapped with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for row in 1..=from.len() {
        let mut current = vec![row];
        for column in 1..=to.len() {
            let change = usize::from(from[row - 1] != to[column - 1]);
            let mut best = (above[column] + 1).min(current[column - 1] + 1).min(above[column - 1] + change);
            let swapped = row > 1 && column > 1 && from[row - 1] == to[column - 2] && from[row - 2] == to[column - 1];
            if swapped {
                best = best.min(before[column - 2] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["retry", "compact", "max_total_attempts", "abort"];

    #[test]
    fn slips_find_what_was_meant() {
        for (slip, meant) in [
            ("compct", "compact"),
            ("rerty", "retry"),
            ("Retry", "retry"),
            (" retry ", "retry"),
            ("maxTotalAttempts", "max_total_attempts"),
            ("max-total-attempt", "max_total_attempts"),
        ] {
            assert_eq!(nearest(slip, NAMES), Some(meant), "{slip}");
        }
    }

    #[test]
    fn what_resembles_nothing_gets_no_advice() {
        for name in ["teleport", "x", "", "quota"] {
            assert_eq!(nearest(name, NAMES), None, "{name}");
        }
        assert_eq!(nearest(&"retry".repeat(1_000), NAMES), None);
    }
}
