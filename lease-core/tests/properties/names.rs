//! [`LeaseName`], [`Label`], [`Holder`], [`Note`] and [`Token`]: what is legal, and that it stays as it was given.

use std::collections::HashSet;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::str::FromStr;

use lease_core::{
    Holder, InvalidName, Label, LeaseName, MAX_LABEL_BYTES, MAX_NAME_BYTES, MAX_NOTE_BYTES, Note, SUFFIX_BYTES, Token,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::run::{check, corpus};

/// Characters at the edges of a rule: controls and what stands beside them, spaces, what looks like a space and is
/// none, marks that combine or turn the direction, the ends of each length in UTF-8, and what means something in SQL.
const EDGES: &[char] = &[
    '\0',
    '\t',
    '\n',
    '\r',
    '\u{1b}',
    '\u{1f}',
    ' ',
    '\u{7f}',
    '\u{80}',
    '\u{85}',
    '\u{9f}',
    '\u{a0}',
    '\u{ad}',
    '\u{301}',
    '\u{7ff}',
    '\u{800}',
    '\u{180e}',
    '\u{2003}',
    '\u{200b}',
    '\u{2028}',
    '\u{202e}',
    '\u{3000}',
    '\u{d7ff}',
    '\u{e000}',
    '\u{feff}',
    '\u{ffff}',
    '\u{10000}',
    '\u{10ffff}',
    '🦀',
    'é',
    'ß',
    'İ',
    'ſ',
    '\'',
    '"',
    '\\',
    '%',
    '_',
    '/',
    ';',
    '$',
    'a',
    'Z',
    '0',
];

/// Any text, often of a length around a limit.
fn hostile() -> impl Strategy<Value = String> {
    let edge = prop::sample::select(EDGES);
    let filler = prop::sample::select(vec!["a", "é", "あ", "🦀", "\u{301}"]);
    prop_oneof![
        any::<String>(),
        vec(edge.clone(), 0..12).prop_map(String::from_iter),
        vec(any::<char>(), 0..300).prop_map(String::from_iter),
        // A legal text but for its ends and its length.
        (vec(edge.clone(), 0..2), filler, 20..270_usize, vec(edge, 0..2)).prop_map(|(start, filler, bytes, end)| {
            let middle = filler.repeat(bytes / filler.len());
            [String::from_iter(start), middle, String::from_iter(end)].concat()
        }),
        prop::sample::select(vec!["evict", "pause", "Evict", "evict/ops", "pause/", "/"]).prop_map(str::to_owned),
    ]
}

/// The rules, by what the standard library says of a character.
fn fault(what: &'static str, text: &str, max: usize) -> Option<InvalidName> {
    if text.is_empty() {
        return Some(InvalidName::Empty { what });
    }
    if text.len() > max {
        let bytes = text.len();
        return Some(InvalidName::TooLong { what, bytes, max });
    }
    if let Some((at, _)) = text.char_indices().find(|(_, c)| c.is_control()) {
        return Some(InvalidName::Control { what, at });
    }
    (text.trim() != text).then_some(InvalidName::Space { what })
}

fn label_fault(text: &str) -> Option<InvalidName> {
    fault("a label", text, MAX_LABEL_BYTES)
        .or_else(|| text.find('/').map(|at| InvalidName::Slash { at }))
        .or_else(|| (text == "evict").then_some(InvalidName::Reserved { label: "evict" }))
        .or_else(|| (text == "pause").then_some(InvalidName::Reserved { label: "pause" }))
}

/// What one type makes of a text.
fn judged<T>(text: &str, parsed: Result<T, InvalidName>, fault: Option<InvalidName>) -> TestCaseResult
where
    T: Display + Debug + AsRef<str> + FromStr<Err = InvalidName> + Eq + Hash,
{
    prop_assert_eq!(parsed.as_ref().err(), fault.as_ref());
    prop_assert_eq!(&T::from_str(text), &parsed);
    match parsed {
        Ok(value) => {
            prop_assert_eq!(value.as_ref(), text, "nothing is cut or folded");
            prop_assert_eq!(value.to_string(), text);
            prop_assert!(
                !format!("{value:?}").contains(char::is_control),
                "a log line stays one line"
            );
            let both: HashSet<T> = HashSet::from_iter([value, T::from_str(text).unwrap()]);
            prop_assert_eq!(both.len(), 1);
        }
        Err(error) => {
            // It may be logged: whatever was given, the message is one short line that does not quote it.
            let shown = format!("{error}");
            prop_assert!(shown.len() < 100 && !shown.contains(char::is_control), "{}", shown);
        }
    }
    Ok(())
}

fn every_type_judges(text: &str) -> TestCaseResult {
    judged(text, LeaseName::new(text), fault("a lease name", text, MAX_NAME_BYTES))?;
    judged(text, Holder::new(text), fault("a holder", text, MAX_NAME_BYTES))?;
    judged(text, Note::new(text), fault("a note", text, MAX_NOTE_BYTES))?;
    judged(text, Label::new(text), label_fault(text))?;
    if let Ok(label) = Label::new(text) {
        let holder = label.new_holder();
        prop_assert_eq!(
            &Holder::new(holder.as_str()),
            &Ok(holder.clone()),
            "a label's holders are legal"
        );
        let (start, random) = holder.as_str().rsplit_once('/').unwrap();
        prop_assert_eq!(start, text);
        prop_assert_eq!(random.len(), SUFFIX_BYTES);
        prop_assert!(
            random.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')),
            "{}",
            random
        );
        prop_assert_ne!(holder, label.new_holder());
    }
    Ok(())
}

#[test]
fn a_text_is_legal_as_the_rules_say_and_then_kept_as_it_is() {
    for seed in corpus("tests/properties/corpus/names") {
        every_type_judges(&seed.text()).unwrap_or_else(|failure| panic!("{}: {failure}", seed.file));
    }
    check(
        "tests/properties/proptest-regressions/names.txt",
        2_000,
        &hostile(),
        |text| every_type_judges(&text),
    );
}

/// The database compares bytes, and so must everything here, or two pods would not mean the same lease.
#[test]
fn names_are_equal_and_ordered_as_their_bytes() {
    let pairs = (hostile(), hostile(), any::<bool>());
    check(
        "tests/properties/proptest-regressions/order.txt",
        2_000,
        &pairs,
        |(one, two, same)| {
            let two = if same { one.clone() } else { two };
            if let (Ok(a), Ok(b)) = (LeaseName::new(&one), LeaseName::new(&two)) {
                prop_assert_eq!(a == b, one.as_bytes() == two.as_bytes());
                prop_assert_eq!(a.cmp(&b), one.as_bytes().cmp(two.as_bytes()));
                prop_assert_eq!(HashSet::from([a, b]).len() == 1, one == two);
            }
            Ok(())
        },
    );
}

#[test]
fn a_token_is_any_number_from_one_on() {
    let edges = prop::sample::select(vec![i64::MIN, -1, 0, 1, 1 << 53, i64::MAX]);
    let numbers = (prop_oneof![any::<i64>(), edges.clone()], edges);
    check(
        "tests/properties/proptest-regressions/tokens.txt",
        2_000,
        &numbers,
        |(one, two)| {
            match Token::new(one) {
                Ok(token) => prop_assert!(one >= 1 && token.get() == one && token.to_string() == one.to_string()),
                Err(error) => {
                    prop_assert_eq!(&error, &InvalidName::Token { value: one });
                    prop_assert!(one < 1 && error.to_string().ends_with(&one.to_string()), "{}", error);
                }
            }
            if let (Ok(a), Ok(b)) = (Token::new(one), Token::new(two)) {
                prop_assert_eq!(a.cmp(&b), one.cmp(&two));
            }
            Ok(())
        },
    );
}
