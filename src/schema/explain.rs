//! What a validator says, in words that help.
//!
//! Of a value that fits none of several forms a validator says just that. Here the form that was meant is found by its
//! tag (a constant, or the type of the whole value), and what is wrong with that one is told.

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind};
use serde_json::Value;

use super::json_path::JsonPath;

/// The most bytes of a value that are repeated in a message.
const MAX_SHOWN: usize = 80;

/// The problems that one error of a validator stands for.
pub(super) fn explain(error: &ValidationError<'_>) -> Vec<(JsonPath, String)> {
    let place = JsonPath::of(error.instance_path());
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            unexpected.iter().map(|key| (place.key(key), "there is no such member".to_owned())).collect()
        }
        ValidationErrorKind::Required { property } => {
            vec![(place, format!("the member {property} is missing"))]
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            forms(&place, error.instance(), context)
        }
        _ => vec![(place, plain(error))],
    }
}

fn forms(
    place: &JsonPath,
    value: &Value,
    forms: &[Vec<ValidationError<'static>>],
) -> Vec<(JsonPath, String)> {
    let mut meant = forms.iter().filter(|form| !form.iter().any(|error| tag(place, error).is_some()));
    if let (Some(form), None) = (meant.next(), meant.next()) {
        return form.iter().flat_map(explain).collect();
    }

    // What is wrong with every form, such as a tag that is missing.
    let explained: Vec<Vec<_>> = forms.iter().map(|form| form.iter().flat_map(explain).collect()).collect();
    if let Some((first, others)) = explained.split_first() {
        let common: Vec<_> = first
            .iter()
            .filter(|problem| others.iter().all(|form| form.contains(problem)))
            .cloned()
            .collect();
        if !common.is_empty() {
            return common;
        }
    }

    // A tag that no form has.
    let tags: Vec<_> =
        forms.iter().filter_map(|form| form.iter().find_map(|error| tag(place, error))).collect();
    match tags.split_first() {
        Some((first, others))
            if tags.len() == forms.len() && others.iter().all(|tag| tag.place == first.place) =>
        {
            let known: Vec<&str> = tags.iter().map(|tag| tag.expected.as_str()).collect();
            vec![(first.place.clone(), format!("{} is none of {}", first.found, known.join(", ")))]
        }
        _ => vec![(place.clone(), format!("{} has none of the forms that are possible here", shown(value)))],
    }
}

/// What tells one form from another.
struct Tag {
    place: JsonPath,
    found: String,
    expected: String,
}

/// The tag that `error` is about: a constant in the value or one step inside, or the type of the value.
fn tag(value: &JsonPath, error: &ValidationError<'_>) -> Option<Tag> {
    let place = JsonPath::of(error.instance_path());
    let expected = match error.kind() {
        ValidationErrorKind::Constant { expected_value } => expected_value.to_string(),
        ValidationErrorKind::Type { kind: TypeKind::Single(name) } if place == *value => name.to_string(),
        _ => return None,
    };
    Some(Tag { place, found: shown(error.instance()), expected })
}

fn plain(error: &ValidationError<'_>) -> String {
    let value = error.instance();
    let shown = shown(value);
    match error.kind() {
        ValidationErrorKind::Constant { expected_value } => format!("{shown} is not {expected_value}"),
        ValidationErrorKind::Type { kind: TypeKind::Single(name) } => {
            format!("{shown} is not of type {name}")
        }
        _ => error.masked_with(shown).to_string(),
    }
}

/// A value as it is written, or what kind of value it is when that is long.
pub(super) fn shown(value: &Value) -> String {
    // Writing a long list down only to see that it is long would take as much memory as the list.
    let short = match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.len() <= MAX_SHOWN,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    };
    match value {
        _ if short => value.to_string(),
        Value::Array(_) => "the array".to_owned(),
        Value::Object(_) => "the object".to_owned(),
        _ => "the string".to_owned(),
    }
}
