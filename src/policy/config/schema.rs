use serde_json::{Map, Value as Json, json};

use super::BUILT_IN_STRATEGIES;
use super::block::DURABILITIES;
use super::form::Form;
use super::limit_keys::LIMIT_KEYS;
use super::pattern::MAX_FIELDS;
use super::patterns_block::{CATEGORIES, MAX_PATTERNS, PRIORITY};
use super::settings::{TIMEOUT, settings_of};
use super::steps::MAX_STEPS;
use crate::failure::{Category, Kind};

/// The JSON Schema of a configuration: a role file with a `recovery:` block, or the block alone.
///
/// It accepts and refuses what [`RecoveryConfig::parse`](super::RecoveryConfig::parse) accepts,
/// warnings included, and refuses: unknown keys pass both. Three things it cannot say: whether a
/// regular expression compiles, what YAML alone can write (`.nan`, duplicate keys, tags), and, in
/// a block with `known_strategies`, whether a chain's names are among them.
///
/// ```
/// let schema = backstop::policy::config::schema();
/// assert_eq!(schema["title"], "Backstop recovery configuration");
/// ```
pub fn schema() -> Json {
    schema_with(std::iter::empty::<&str>())
}

/// The schema for a host that registers own strategies under these names.
pub fn schema_with<N: AsRef<str>>(known: impl IntoIterator<Item = N>) -> Json {
    let own: Vec<String> = known.into_iter().map(|name| name.as_ref().to_owned()).collect();
    let names: Vec<&str> = BUILT_IN_STRATEGIES.iter().copied().chain(own.iter().map(String::as_str)).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Backstop recovery configuration",
        "type": ["object", "null"],
        "if": {"type": "object", "required": ["recovery"]},
        "then": {"properties": {"recovery": {"anyOf": [{"type": ["boolean", "null"]}, {"$ref": "#/$defs/block"}]}}},
        "else": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/block"}]},
        "$defs": {
            "block": block(),
            "step": step(),
            "pattern": pattern(),
            "chain": chain("#/$defs/steps"),
            "open_chain": chain("#/$defs/open_steps"),
            "open_steps": {"type": "array", "minItems": 1, "maxItems": MAX_STEPS, "items": {"$ref": "#/$defs/step"}},
            "steps": {
                "$ref": "#/$defs/open_steps",
                "contains": {"anyOf": [
                    {"enum": names},
                    {"type": "object", "properties": {"strategy": {"enum": names}}},
                ]},
            },
        },
    })
}

/// A map: other keys pass, merge keys do not; `null` is the same as leaving a key out.
fn map(properties: Map<String, Json>) -> Json {
    let nullable = |(key, schema): (String, Json)| (key, json!({"anyOf": [{"type": "null"}, schema]}));
    let mut properties: Map<String, Json> = properties.into_iter().map(nullable).collect();
    properties.insert("<<".to_owned(), json!(false));
    json!({"type": "object", "properties": properties})
}

fn about(form: Form, about: &str) -> Json {
    let mut schema = form.schema();
    schema["description"] = json!(about);
    schema
}

fn block() -> Json {
    let mut properties = Map::new();
    let mut put = |key: &str, schema: Json| properties.insert(key.to_owned(), schema);
    put("enabled", about(Form::Flag, "Whether failures are recovered at all."));
    put("persist_state", about(Form::Flag, "`false` keeps nothing on disk: the same as `durability: off`."));
    put("collect_metrics", about(Form::Flag, "Whether outcomes are aggregated."));
    put("durability", about(Form::Word(DURABILITIES), "What is on disk before an effect can be seen."));
    put("known_strategies", about(Form::Names, "Names of own strategies that chains may use."));
    put("patterns", json!({"type": "array", "maxItems": MAX_PATTERNS, "items": {"$ref": "#/$defs/pattern"}}));
    for limit in LIMIT_KEYS {
        put(limit.name, about(limit.form(), limit.about));
    }
    let mut block = map(properties);
    // Names in the document itself are out of a schema's reach: with them any name passes.
    block["if"] = json!({
        "required": ["known_strategies"],
        "properties": {"known_strategies": {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1}]}},
    });
    block["then"] = chains("#/$defs/open_chain");
    block["else"] = chains("#/$defs/chain");
    block
}

fn chains(target: &str) -> Json {
    let chain = json!({"$ref": target});
    let mut properties: Map<String, Json> =
        Category::ALL.iter().map(|category| (category.as_str().to_owned(), chain.clone())).collect();
    let kinds: Map<String, Json> =
        Kind::BUILT_IN.iter().map(|kind| (kind.as_str().to_owned(), json!({"$ref": target}))).collect();
    let mut kinds = map(kinds);
    kinds["additionalProperties"] = json!({"anyOf": [{"type": "null"}, {"$ref": target}]});
    properties.insert("kinds".to_owned(), kinds);
    map(properties)
}

fn chain(steps: &str) -> Json {
    let mut properties = Map::new();
    properties.insert("chain".to_owned(), json!({"$ref": steps}));
    properties.insert("enabled".to_owned(), Form::Flag.schema());
    json!({"anyOf": [{"type": "boolean"}, {"$ref": steps}, map(properties)]})
}

/// A step: a name, or a map whose settings depend on the strategy. Settings may stand beside
/// `strategy` too, which the parser takes with a warning.
fn step() -> Json {
    let cases = BUILT_IN_STRATEGIES.iter().map(|strategy| {
        let settings = settings_of(strategy).unwrap_or_default();
        let properties: Map<String, Json> =
            settings.iter().map(|setting| (setting.name.to_owned(), about(setting.form, setting.about))).collect();
        let mut beside = properties.clone();
        beside.insert("config".to_owned(), map(properties));
        json!({"if": {"properties": {"strategy": {"const": strategy}}}, "then": map(beside)})
    });
    let mut every = Map::new();
    every.insert(TIMEOUT.name.to_owned(), about(TIMEOUT.form, TIMEOUT.about));
    every.insert("config".to_owned(), map(every.clone()));
    let mut object = map(every);
    object["required"] = json!(["strategy"]);
    object["properties"]["strategy"] = Form::Name.schema();
    object["allOf"] = cases.collect();
    json!({"anyOf": [Form::Name.schema(), object]})
}

fn pattern() -> Json {
    let mut properties = Map::new();
    let mut put = |key: &str, schema: Json| properties.insert(key.to_owned(), schema);
    put("category", Form::Word(CATEGORIES).schema());
    put("kind", about(Form::Name, "The kind of what it matches; the pattern's name by default."));
    put("regex", about(Form::Name, "A regular expression searched for in the failure's text."));
    put("priority", about(PRIORITY, "The higher wins among own patterns."));
    put(
        "fields",
        json!({
            "type": "object",
            "maxProperties": MAX_FIELDS,
            "propertyNames": {"minLength": 1, "not": {"const": "<<"}},
            "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
        }),
    );
    let kinds: Vec<&str> = Kind::BUILT_IN.iter().map(Kind::as_str).collect();
    let mut pattern = map(properties);
    pattern["required"] = json!(["name"]);
    pattern["properties"]["name"] = Form::Name.schema();
    pattern["allOf"] = json!([
        {"anyOf": [
            {"required": ["category"], "properties": {"category": {"type": "string"}}},
            {"required": ["kind"], "properties": {"kind": {"enum": kinds}}},
        ]},
        {"anyOf": [
            {"required": ["regex"], "properties": {"regex": {"type": "string"}}},
            {"required": ["fields"], "properties": {"fields": {"type": "object", "minProperties": 1}}},
        ]},
    ]);
    pattern
}
