//! Objects as Python and JavaScript print them: `{'code': 429, 'param': None}`, `{ code: 'x' }`.

use serde_json::{Map, Number, Value};

/// How deep printed objects are followed.
const MAX_DEPTH: usize = 16;
/// How many printed objects of one text are opened.
const MAX_OBJECTS: usize = 8;
/// Without one of these keys a printed object says nothing about a failure.
const TELLING: [&str; 8] = ["error", "message", "code", "status", "type", "statusCode", "status_code", "detail"];

/// The printed objects in a text that tell of a failure; those that are JSON are left to others.
pub(crate) fn printed_objects(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut tries = 0;
    while let Some(step) = text[at..].find('{') {
        let start = at + step;
        tries += 1;
        if found.len() >= MAX_OBJECTS || tries > MAX_OBJECTS * 4 {
            break;
        }
        at = start + 1;
        let mut reader = Reader { text, at: start };
        if let Some(Value::Object(map)) = reader.value(0)
            && TELLING.iter().any(|key| map.contains_key(*key))
        {
            found.push(Value::Object(map));
            at = reader.at;
        }
    }
    found
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, ch: char) -> bool {
        self.blanks();
        let found = self.rest().starts_with(ch);
        if found {
            self.at += ch.len_utf8();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.blanks();
        if depth > MAX_DEPTH {
            return None;
        }
        match self.rest().chars().next()? {
            '{' => self.object(depth).map(Value::Object),
            '[' => self.list(']', depth),
            '(' => self.list(')', depth),
            '\'' | '"' | '`' => self.string().map(Value::String),
            _ => self.bare(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Map<String, Value>> {
        let mut map = Map::new();
        self.eat('{');
        loop {
            if self.eat('}') {
                return Some(map);
            }
            let key = match self.rest().chars().next()? {
                '\'' | '"' => self.string()?,
                _ => self.name()?,
            };
            if !self.eat(':') {
                return None;
            }
            let value = self.value(depth + 1)?;
            map.insert(key, value);
            if !self.eat(',') && !self.rest().starts_with('}') {
                return None;
            }
        }
    }

    fn list(&mut self, end: char, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            if self.eat(end) {
                return Some(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            if !self.eat(',') && !self.rest().starts_with(end) {
                return None;
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let mut chars = self.rest().char_indices();
        let (_, quote) = chars.next()?;
        let mut out = String::new();
        let mut end = None;
        while let Some((at, ch)) = chars.next() {
            match ch {
                '\\' => match chars.next()?.1 {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'r' => out.push('\r'),
                    other => out.push(other),
                },
                ch if ch == quote => {
                    end = Some(at + ch.len_utf8());
                    break;
                }
                ch => out.push(ch),
            }
        }
        self.at += end?;
        Some(out)
    }

    /// A key without quotes.
    fn name(&mut self) -> Option<String> {
        let ends = |ch: char| !(ch.is_ascii_alphanumeric() || matches!(ch, '_' | '$' | '-' | '@'));
        let rest = self.rest();
        let end = rest.find(ends).filter(|end| *end > 0)?;
        let name = rest[..end].to_owned();
        self.at += end;
        Some(name)
    }

    /// A number, a word, or a call such as `CompletionUsage(total_tokens=3)`, which is kept as text.
    fn bare(&mut self) -> Option<Value> {
        let rest = self.rest();
        let mut open = 0_usize;
        let end = rest.find(|ch: char| {
            match ch {
                '(' | '[' | '<' => open += 1,
                ')' | ']' | '>' if open > 0 => open -= 1,
                ',' | '}' | ')' | ']' | '\n' => return open == 0,
                _ => {}
            }
            false
        })?;
        let word = rest[..end].trim();
        let value = match word {
            "" => return None,
            "None" | "null" | "undefined" => Value::Null,
            "True" | "true" => Value::Bool(true),
            "False" | "false" => Value::Bool(false),
            word => word.parse::<Number>().map_or_else(|_| Value::String(word.to_owned()), Value::Number),
        };
        self.at += end;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dicts_of_python_and_objects_of_node_are_read() {
        let python = "Error code: 429 - {'error': {'message': \"it's full\", 'param': None, 'code': '1302'}}";
        assert_eq!(
            printed_objects(python),
            [json!({"error": {"message": "it's full", "param": null, "code": "1302"}})]
        );
        let node = "no { status: 429, error: { code: 'x', ok: [ 1, true ] } }";
        assert_eq!(printed_objects(node), [json!({"status": 429, "error": {"code": "x", "ok": [1, true]}})]);
    }

    #[test]
    fn code_and_objects_that_break_off_are_not() {
        for text in ["if (x) { return error; }", "{'error': {'message': 'half", "{'a': 1}", "{ error ", "{{{{{{{{"] {
            assert!(printed_objects(text).is_empty(), "{text}");
        }
    }
}
