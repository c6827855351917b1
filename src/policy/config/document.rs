use super::Place;
use super::marks::{Mark, Marks, Shape, Unreadable};
use super::node::{Entry, Found, Node};
use super::values::{self, Raw};

/// The largest text that is read; a configuration is some kilobytes.
const MAX_BYTES: usize = 1024 * 1024;

/// Reads a YAML text: values by `serde_yaml`, which keeps no positions, and positions by a marked
/// second pass. Both must accept the text and agree on its shape.
///
/// Size, depth, aliases and duplicate keys are bounded by the marked pass, which goes first.
pub(super) fn read(text: &str) -> Result<Node, Unreadable> {
    if text.len() > MAX_BYTES {
        let message = format!("the text has {} bytes; {MAX_BYTES} are read at most", text.len());
        return Err(Unreadable { place: Place::START, message });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    read_both(text).map_err(|error| well_placed(error, text))
}

fn read_both(text: &str) -> Result<Node, Unreadable> {
    let marks = Marks::read(text)?;
    let Some(root) = marks.root() else {
        return Ok(Node { value: Found::Nothing, place: Some(Place::START) });
    };
    join(values::read(text)?, root, &marks)
}

/// Of a character that YAML does not allow the parsers tell the byte, or a column behind the line's end.
fn well_placed(error: Unreadable, text: &str) -> Unreadable {
    let is_of_character = ["unprintable", "control characters"].iter().any(|words| error.message.contains(words));
    let place = unprintable(text).filter(|_| is_of_character).unwrap_or(error.place);
    Unreadable { place, ..error }
}

/// Where the first character stands that YAML does not allow.
fn unprintable(text: &str) -> Option<Place> {
    let allowed = |ch: char| {
        matches!(ch, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}'
            | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
    };
    let before = &text[..text.find(|ch| !allowed(ch))?];
    let line = before.rsplit('\n').next().unwrap_or_default();
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Some(Place { line: number(before.matches('\n').count() + 1), column: number(line.chars().count() + 1) })
}

/// Puts each value at its mark. The two passes keep the order of keys and items.
fn join(value: Raw, mark: &Mark, marks: &Marks) -> Result<Node, Unreadable> {
    let found = match (value, &mark.shape) {
        (Raw::Nothing, Shape::Scalar(_)) => Found::Nothing,
        (Raw::Flag(flag), Shape::Scalar(_)) => Found::Flag(flag),
        (Raw::Whole(number), Shape::Scalar(_)) => Found::Whole(number),
        (Raw::Float(number), Shape::Scalar(_)) => Found::Float(number),
        (Raw::Text(text), Shape::Scalar(_)) => Found::Text(text),
        (Raw::Tagged, _) => Found::Tagged,
        (Raw::List(values), Shape::List(items)) if values.len() == items.len() => {
            let joined = values.into_iter().zip(items).map(|(value, item)| join(value, marks.mark(*item), marks));
            Found::List(joined.collect::<Result<_, _>>()?)
        }
        (Raw::Map(values), Shape::Map(pairs)) if values.len() == pairs.len() => {
            let joined = values.into_iter().zip(pairs).map(|((key, value), (key_mark, value_mark))| {
                let key_mark = marks.mark(*key_mark);
                let value = join(value, marks.mark(*value_mark), marks)?;
                Ok(Entry { key: key_text(key, key_mark), key_place: Some(key_mark.place), value })
            });
            Found::Map(joined.collect::<Result<_, _>>()?)
        }
        _ => {
            let message = "this can be read in two ways; write it more plainly".to_owned();
            return Err(Unreadable { place: mark.place, message });
        }
    };
    Ok(Node { value: found, place: Some(mark.place) })
}

/// A key as text: `1:` is the key `1`; a list or map as key is no key of ours, whatever its text.
fn key_text(key: Raw, mark: &Mark) -> String {
    match (key, &mark.shape) {
        (Raw::Text(text), _) => text,
        (_, Shape::Scalar(text)) => text.to_string(),
        _ => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Json;

    use super::super::marks::MAX_NODES;
    use super::*;

    fn both(text: &str) -> (bool, bool) {
        (Marks::read(text).is_ok(), values::read(text).is_ok())
    }

    #[test]
    fn both_passes_accept_the_same_documents() {
        for text in [
            "a: 1",
            "a: [1, {b: c}]\nd: |\n  text\n  more\n",
            "- x\n- - y\n  - z\n",
            "a: &x [1]\nb: *x\n",
            "{a: b, c: [d]}",
            "? a\n: b\n",
            "a: !own x",
            "a: !!str 5",
            "a: 'it''s'\nb: \"\\u0041\\n\"",
            "--- \na: 1\n...\n",
            "%YAML 1.2\n---\na: 1\n",
            "a:\n- 1\n- 2\n",
            "a: # nothing\nb: ~\n",
            "a: >-\n  folded\n  text\n",
            "a: 0x1F\nb: 0o17\nc: 1e3\nd: .5\n",
            "a: 99999999999999999999999999\nb: 18446744073709551616\nc: -9223372036854775809\n",
            "\"quoted key\": 1\n1: 2\ntrue: 3\n",
            "a:\r\n  b: 1\r\n",
        ] {
            assert_eq!(both(text), (true, true), "{text:?}");
            assert!(read(text).is_ok(), "{text:?}");
        }
        for text in ["a: [1", "a: {b", "a: 'x", "a: b: c", "a: *nowhere", "- a\nb: 1", "a: @x", "[a]]", "a: \"\\q\""] {
            assert_eq!(both(text), (false, false), "{text:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(read("\u{feff}a: 1"), read("a: 1"));
    }

    #[test]
    fn every_refusal_has_its_place() {
        for (text, line, column, message) in [
            ("a: 1\nb: 2\na: 3\n", 3, 1, "the key `a` stands here twice"),
            ("a: 1\n---\nb: 2\n", 2, 1, "a second document begins; one is expected"),
            ("a: &a\n  <<: *a\n", 2, 7, "an alias inside the value that it names"),
        ] {
            let expected = Unreadable { place: Place { line, column }, message: message.to_owned() };
            assert_eq!(read(text), Err(expected));
        }
        for (text, line, column) in [("é: 1\nb: é\u{1}\n", 2, 5), ("\u{203d}\u{203d}a: b\0", 1, 7)] {
            assert_eq!(read(text).map_err(|error| error.place), Err(Place { line, column }), "{text:?}");
        }
        let tab = read("a:\n\tb: 1\n").map_err(|error| error.place.line);
        assert_eq!(tab, Err(2));
    }

    #[test]
    fn bombs_depth_and_size_are_refused_by_their_bounds() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let inner = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{inner}]\n");
        }
        let refused = |text: &str| read(text).map_err(|error| error.message);
        assert_eq!(refused(&bomb), Err(format!("the document has more than {MAX_NODES} values, aliases expanded")));
        let deep = "nested more than 64 levels deep".to_owned();
        for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", "")] {
            let text = format!("{}x{}", open.repeat(20_000), close.repeat(20_000));
            assert_eq!(refused(&text).as_ref().err(), Some(&deep), "{open}");
        }
        let mut chain = "a0: &a0 [x]\n".to_owned();
        for level in 1..100 {
            chain += &format!("a{level}: &a{level} [*a{}]\n", level - 1);
        }
        assert_eq!(refused(&chain), Err(deep));
        assert!(refused(&"x".repeat(10_000_000)).is_err_and(|message| message.starts_with("the text has 10000000")));
        assert!(refused(&format!("[{}]", "a,".repeat(500_000))).is_err());
    }

    /// Text made of what YAML is made of: far more often nearly a document than random letters are.
    fn yaml_like() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            "a",
            "b: ",
            "- ",
            "\n",
            "\n  ",
            "[",
            "]",
            "{",
            "}",
            ", ",
            "? ",
            ": ",
            "&x ",
            "*x",
            "!t ",
            "!!str ",
            "'",
            "\"",
            "|\n",
            ">-\n  ",
            "#",
            " ",
            "\t",
            "---\n",
            "...\n",
            "%",
            "@",
            "<<: ",
            "~",
            ".nan",
            "1e999",
            "-5",
            "\u{feff}",
            "\r\n",
            "é",
            "\u{0}",
            "\u{85}",
            "\\",
            "recovery:\n  ",
            "enabled: ",
            "chain: ",
        ]);
        prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
    }

    /// Any JSON value, with texts that need every way of quoting.
    fn any_value() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            (-1e9..1e9f64).prop_map(Json::from),
            "[ -~é\n\t]{0,12}".prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                prop::collection::btree_map("[ -~é]{1,8}", inner, 0..4)
                    .prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn both_passes_read_every_document_that_can_be_written(value in any_value()) {
            let text = serde_yaml::to_string(&value).expect("JSON can be written as YAML");
            let node = read(&text).map_err(|error| TestCaseError::fail(format!("{error:?} in {text}")))?;
            prop_assert_eq!(node.to_json().ok(), Some(value));
        }

        /// The passes differ over next-line characters and byte order marks inside a text, which
        /// one takes for line ends; wherever they differ the text is refused.
        #[test]
        fn no_text_panics_and_a_text_that_both_accept_is_read(text in yaml_like()) {
            let accepted = read(&text).is_ok();
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            let plain = !text.contains(['\u{feff}', '\u{85}']);
            match both(text) {
                (true, true) => prop_assert!(accepted || !plain),
                (true, false) => prop_assert!(!accepted || text.trim().is_empty() || Marks::read(text).is_ok_and(|marks| marks.root().is_none())),
                (false, _) => prop_assert!(!accepted),
            }
        }
    }
}
