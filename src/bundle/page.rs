//! Splits long lists into pages.
//!
//! A cursor contains the number of items before the page and the digest of the whole list. If the list changed between two
//! pages, they would not fit together, so the cursor is rejected.

use serde::Serialize;

use crate::digest::{Digest, to_canonical};
use crate::model::bundle::Limits;

/// The most items of one bundle.
pub const MAX_ITEMS: u32 = 100_000;

/// Why a list cannot be continued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// The text is not a cursor.
    #[error("{0:?} is not a cursor")]
    Syntax(String),
    /// The list changed, or is another one.
    #[error("the list changed since the cursor {0:?} was returned, or the cursor is that of another request")]
    Stale(String),
}

/// The part of `items` that starts at `cursor` and has at most `limit` items.
///
/// # Errors
/// If the cursor does not belong to this list.
pub fn page<T: Serialize>(
    items: Vec<T>,
    limit: Option<u32>,
    cursor: Option<&str>,
) -> Result<(Vec<T>, Limits), CursorError> {
    let cap = limit.unwrap_or(MAX_ITEMS).min(MAX_ITEMS);
    let total = u32::try_from(items.len()).unwrap_or(u32::MAX);
    let whole = total <= cap && cursor.is_none();
    // The digest of the whole list is only needed if the list is split.
    let list_digest = if whole { String::new() } else { digest_of(&items) };
    let start = match cursor {
        None => 0,
        Some(text) => {
            let syntax = || CursorError::Syntax(text.to_owned());
            let (offset, digest) = text.split_once('-').ok_or_else(syntax)?;
            if digest.len() != 12 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(syntax());
            }
            let offset: u32 = offset.parse().map_err(|_| syntax())?;
            if digest != list_digest || offset > total {
                return Err(CursorError::Stale(text.to_owned()));
            }
            offset
        }
    };
    let end = start.saturating_add(cap).min(total);
    let truncated = end < total;
    let cursor = truncated.then(|| format!("{end}-{list_digest}"));
    let part = items.into_iter().skip(start as usize).take((end - start) as usize).collect();
    Ok((part, Limits { cap, total, truncated, cursor }))
}

/// The cursor that continues after `shown` items of a page, for output that shows fewer items than the page has.
#[must_use]
pub fn continue_after<T: Serialize>(
    items: &[T],
    limits: &Limits,
    given: Option<&str>,
    shown: usize,
) -> String {
    let before = given.and_then(|cursor| cursor.split_once('-')?.0.parse::<usize>().ok()).unwrap_or(0);
    let list_digest = given
        .or(limits.cursor.as_deref())
        .and_then(|cursor| Some(cursor.split_once('-')?.1.to_owned()))
        .unwrap_or_else(|| digest_of(items));
    format!("{}-{list_digest}", before + shown)
}

fn digest_of<T: Serialize>(items: &[T]) -> String {
    let forms = items.iter().map(|item| to_canonical(item).unwrap_or_default());
    Digest::of_fields(forms).to_hex()[..12].to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pages_concatenate_to_the_list(items in prop::collection::vec(0..9_u32, 0..40), limit in 1..9_u32) {
            let mut cursor: Option<String> = None;
            let mut all = Vec::new();
            loop {
                let (part, limits) = page(items.clone(), Some(limit), cursor.as_deref()).unwrap();
                prop_assert!(part.len() <= limit as usize);
                prop_assert_eq!(limits.total as usize, items.len());
                prop_assert_eq!(limits.truncated, limits.cursor.is_some());
                all.extend(part);
                match limits.cursor {
                    Some(next) => cursor = Some(next),
                    None => break,
                }
            }
            prop_assert_eq!(all, items);
        }
    }

    #[test]
    fn a_list_continues_after_any_item() {
        let items: Vec<u32> = (0..10).collect();
        let (part, limits) = page(items.clone(), None, None).unwrap();
        let cursor = continue_after(&part, &limits, None, 3);
        let (part, limits) = page(items.clone(), Some(4), Some(&cursor)).unwrap();
        assert_eq!(part, [3, 4, 5, 6]);
        let cursor = continue_after(&part, &limits, Some(&cursor), 2);
        assert_eq!(page(items, None, Some(&cursor)).unwrap().0, [5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_cursor_of_another_list_is_rejected() {
        let (_, limits) = page(vec![1, 2, 3], Some(1), None).unwrap();
        let cursor = limits.cursor.unwrap();
        assert_eq!(page(vec![1, 2, 4], Some(1), Some(&cursor)), Err(CursorError::Stale(cursor)));
        assert!(matches!(page(vec![1], None, Some("x")), Err(CursorError::Syntax(_))));
    }
}
