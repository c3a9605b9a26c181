// SPDX-License-Identifier: Apache-2.0
//! The published schemas (`trial/*.schema.json`), generated from the types of requests and results.

use schemars::generate::SchemaSettings;
use schemars::transform::{transform_subschemas, Transform};
use schemars::{Schema, SchemaGenerator};
use serde_json::{json, Value};

use crate::report::{ComparisonResult, Line};
use crate::request::{Comparison, Request, COMPARISON_RULES, ENGINE_RULES, SCHEMA_RULES};

/// Schema of a trial request.
pub fn request() -> Schema {
    let types = generator(SchemaSettings::draft2020_12().for_deserialize()).into_root_schema_for::<Request>();
    let mut schema = named("request", types);
    schema.insert("allOf".into(), rules());
    // A keyword of our own, which validators ignore: rules that only the engine checks.
    schema.insert("x-beyond-schema".into(), json!(ENGINE_RULES));
    schema
}

/// Rules between fields of a trial request.
fn rules() -> Value {
    let rules = SCHEMA_RULES.iter().map(|rule| {
        let mut schema = (rule.schema)();
        schema["$comment"] = format!("{}: {}", rule.field, rule.text).into();
        schema
    });
    rules.collect()
}

/// Schema of a comparison request.
pub fn comparison() -> Schema {
    let types = generator(SchemaSettings::draft2020_12().for_deserialize()).into_root_schema_for::<Comparison>();
    let mut schema = named("comparison", types);
    if let Some(trial) = schema.pointer_mut("/$defs/TrialRequest").and_then(Value::as_object_mut) {
        trial.insert("allOf".into(), rules());
    }
    schema.insert("x-beyond-schema".into(), json!([ENGINE_RULES, &COMPARISON_RULES].concat()));
    schema
}

/// Schema of a comparison's result, one line.
pub fn comparison_result() -> Schema {
    let types = generator(SchemaSettings::draft2020_12().for_serialize()).into_root_schema_for::<ComparisonResult>();
    named("comparison-result", types)
}

/// Schema of a trial's output lines.
pub fn result() -> Schema {
    let types = generator(SchemaSettings::draft2020_12().for_serialize()).into_root_schema_for::<Line>();
    named("result", types)
}

/// Add the schema's name, and put title and description first.
fn named(name: &str, mut types: Schema) -> Schema {
    let mut schema = Schema::default();
    types.insert("$id".into(), format!("https://natgauge.invalid/trial/{name}-1.json").into());
    for key in ["$schema", "$id", "title", "description"] {
        if let Some(value) = types.remove(key) {
            schema.insert(key.into(), value);
        }
    }
    schema.ensure_object().extend(types.ensure_object().clone());
    schema
}

/// Text of a published schema.
pub fn text(schema: &Schema) -> String {
    format!("{:#}\n", schema.as_value())
}

fn generator(settings: SchemaSettings) -> SchemaGenerator {
    settings.with_transform(Plain).into_generator()
}

/// Removes null, which no field accepts, Rust's formats, and line ends in descriptions.
#[derive(Debug, Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        let null = json!({"type": "null"});
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                schema.insert("type".into(), only);
            }
        }
        if let Some(Value::Array(kinds)) = schema.get("anyOf") {
            if let [Value::Object(only), other] = kinds.as_slice() {
                if *other == null {
                    let only = only.clone();
                    schema.remove("anyOf");
                    schema.ensure_object().extend(only);
                }
            }
        }
        if schema.get("default").is_some_and(Value::is_null) {
            schema.remove("default");
        }
        schema.remove("format");
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace('\n', " ");
        }
        transform_subschemas(self, schema);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schemas_are_those_of_the_types() {
        let all = [
            ("request", request()),
            ("result", result()),
            ("comparison", comparison()),
            ("comparison-result", comparison_result()),
        ];
        for (name, schema) in all {
            let path = format!("{}/../trial/{name}-1.schema.json", env!("CARGO_MANIFEST_DIR"));
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(committed == text(&schema), "{path} is not what the types say: run `make schemas`");
        }
    }
}
