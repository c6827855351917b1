use super::frames::{ABOUT, NOT_BY_A_PERSON, REPORTS, SOUNDS_WRONG, STOPPED_TEXT, TOOL_FRAME};
use super::lexicon::{Scan, Words};
use super::marks::{COMPLAINS, ENDED_WELL, FAILED_RUN, FILE_LIST, STOPPED_FRAME, TOOL_SAYS_NO, WELL};
use super::need::Need;
use super::search::Search;

/// Patterns of which one is enough, searched only where a scan saw a word that they need.
#[derive(Debug)]
pub(crate) struct AnyOf(Vec<Search>);

impl AnyOf {
    /// Patterns under these flags. Those that need words are joined as far as the join still does; those
    /// that need none stand apart.
    fn new(flags: &str, patterns: &[&str], words: &mut Words) -> Self {
        let under = |pattern: &str| format!("{flags}(?:{pattern})");
        let needs = |pattern: &str| regex_syntax::parse(&under(pattern)).is_ok_and(|hir| Need::of(&hir).is_some());
        let (gated, free): (Vec<&str>, Vec<&str>) = patterns.iter().partition(|pattern| needs(pattern));
        let mut joined: Vec<String> = vec![];
        for pattern in gated {
            let longer = joined.last().map(|last| format!("{last}|{pattern}")).filter(|longer| needs(longer));
            match (longer, joined.last_mut()) {
                (Some(longer), Some(last)) => *last = longer,
                _ => joined.push(pattern.to_owned()),
            }
        }
        if !free.is_empty() {
            joined.push(free.join("|"));
        }
        Self(joined.iter().map(|pattern| Search::new(&under(pattern), words)).collect())
    }

    /// Whether one is in a scanned text, or in what it begins with.
    pub(crate) fn is_found(&self, text: &str, scan: &Scan) -> bool {
        self.0.iter().any(|search| search.is_found(text, scan))
    }
}

/// What the gate looks for in texts.
#[derive(Debug)]
pub(crate) struct GateMarks {
    pub(crate) stopped_text: AnyOf,
    pub(crate) stopped_frame: AnyOf,
    pub(crate) not_by_a_person: AnyOf,
    pub(crate) reports: AnyOf,
    pub(crate) failed_run: AnyOf,
    pub(crate) ended_well: AnyOf,
    pub(crate) well: AnyOf,
    pub(crate) file_list: AnyOf,
    pub(crate) about: Vec<(&'static str, AnyOf)>,
    pub(crate) sounds_wrong: AnyOf,
    pub(crate) complains: AnyOf,
    pub(crate) tool_frame: AnyOf,
    pub(crate) tool_says_no: AnyOf,
}

impl GateMarks {
    pub(crate) fn new(words: &mut Words) -> Self {
        let mut lines = |patterns: &[&str]| AnyOf::new("(?m)", patterns, words);
        let (failed_run, stopped_frame, well) = (lines(FAILED_RUN), lines(STOPPED_FRAME), lines(WELL));
        let (tool_says_no, complains) = (lines(TOOL_SAYS_NO), lines(COMPLAINS));
        let (ended_well, file_list) = (lines(ENDED_WELL), lines(FILE_LIST));
        let reports = AnyOf::new("", REPORTS, words);
        let mut any_case = |patterns: &[&str]| AnyOf::new("(?im)", patterns, words);
        Self {
            stopped_text: any_case(STOPPED_TEXT),
            stopped_frame,
            not_by_a_person: any_case(NOT_BY_A_PERSON),
            reports,
            failed_run,
            ended_well,
            well,
            file_list,
            about: ABOUT.iter().map(|(name, patterns)| (*name, any_case(patterns))).collect(),
            sounds_wrong: any_case(SOUNDS_WRONG),
            complains,
            tool_frame: any_case(TOOL_FRAME),
            tool_says_no,
        }
    }

    /// Every regex of it.
    #[cfg(test)]
    pub(crate) fn searches(&self) -> impl Iterator<Item = &Search> {
        let about = self.about.iter().map(|(_, any)| any);
        [
            &self.stopped_text,
            &self.stopped_frame,
            &self.not_by_a_person,
            &self.reports,
            &self.failed_run,
            &self.ended_well,
            &self.well,
            &self.file_list,
            &self.sounds_wrong,
            &self.complains,
            &self.tool_frame,
            &self.tool_says_no,
        ]
        .into_iter()
        .chain(about)
        .flat_map(|any| &any.0)
    }
}

#[cfg(test)]
mod tests {
    use super::AnyOf;
    use crate::failure::Report;
    use crate::failure::evidence::{DEFAULT_CAP, Evidence};
    use crate::failure::knowledge::knowledge;

    fn finds(any: &AnyOf, text: &str) -> bool {
        let evidence = Evidence::of(&Report::text(text), DEFAULT_CAP);
        any.is_found(evidence.text(), evidence.scan())
    }

    #[test]
    fn a_failed_run_is_known_by_its_frames() {
        for text in [
            "src/a.ts(4,9): error TS2322: no",
            "Main.java:9: error: incompatible types",
            "PASS a.test.js\nFAIL b.test.js",
            "ruff.....Failed",
            "✖ 2 problems (1 error, 1 warning)",
        ] {
            assert!(finds(&knowledge().gate.failed_run, text), "{text}");
        }
        for text in ["src/a.rs:4: let error = 1;", "=== 3 passed in 1s ===", "Found 0 errors", "12 passed, 0 failed"] {
            assert!(!finds(&knowledge().gate.failed_run, text), "{text}");
        }
    }

    #[test]
    fn a_wanted_stop_is_known_in_other_languages() {
        for text in [
            "Vorgang vom Benutzer abgebrochen.",
            "用户已取消操作（Esc），任务中止。",
            "Operación cancelada por el usuario",
            "rpc error: code = Canceled desc = context canceled",
            "ユーザーがキャンセルしました",
        ] {
            assert!(finds(&knowledge().gate.stopped_frame, text), "{text}");
        }
        assert!(!finds(&knowledge().gate.stopped_frame, "Interrupted: 1 error during collection"));
    }
}
