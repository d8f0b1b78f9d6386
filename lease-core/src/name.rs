//! The words that identify: [`LeaseName`], [`Label`], [`Holder`], [`Token`]; and [`Note`], an operator's reason.
//!
//! Each is parsed once and can then only hold a legal value. Nothing is ever cut or folded to fit. They share one file, long as it
//! is, since they are of one kind, and its tests hold for all of them.

use std::fmt;
use std::sync::Arc;

/// The longest name, and the longest holder, in bytes. It is the width of the columns.
pub const MAX_NAME_BYTES: usize = 128;
/// The longest label in bytes: a holder is the label, a slash, and [`SUFFIX_BYTES`] of randomness.
pub const MAX_LABEL_BYTES: usize = 96;
/// The random end of a holder in bytes: 96 random bits as lower-case hexadecimal digits.
pub const SUFFIX_BYTES: usize = 24;

/// The longest note in bytes.
pub const MAX_NOTE_BYTES: usize = 255;

/// Why a text is no [`LeaseName`], [`Label`], [`Holder`] or [`Token`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// There is nothing in it.
    #[error("{what} must not be empty")]
    Empty {
        /// Which kind of text it was meant to be.
        what: &'static str,
    },
    /// It has more bytes than the column holds.
    #[error("{what} has {bytes} bytes, at most {max} are allowed")]
    TooLong {
        /// Which kind of text it was meant to be.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The longest allowed, in bytes.
        max: usize,
    },
    /// It has a control character: Unicode category Cc, so also U+0080 to U+009F.
    #[error("{what} has a control character at byte {at}")]
    Control {
        /// Which kind of text it was meant to be.
        what: &'static str,
        /// Where, in bytes from its start.
        at: usize,
    },
    /// It starts or ends with white space, which some databases ignore in comparisons.
    #[error("{what} starts or ends with white space")]
    Space {
        /// Which kind of text it was meant to be.
        what: &'static str,
    },
    /// A label has a slash, which separates it from the random end of a holder.
    #[error("a label must not have a slash, this one has one at byte {at}")]
    Slash {
        /// Where, in bytes from its start.
        at: usize,
    },
    /// A label is one of the words that stand for an operator's action in the holder column.
    #[error("`{label}` is reserved: it marks leases that an operator took")]
    Reserved {
        /// The reserved word.
        label: &'static str,
    },
    /// A token is below 1.
    #[error("a fencing token is at least 1, this one is {value}")]
    Token {
        /// The number given.
        value: i64,
    },
}

/// The name of a lease: 1 to 128 bytes, no control characters, no white space at the ends.
///
/// Names are compared byte for byte on every backend: `job`, `Job` and `jób` are three leases.
///
/// ```
/// use lease_core::LeaseName;
/// const NIGHTLY: LeaseName = LeaseName::from_static("nightly-report");
/// assert_eq!(NIGHTLY, LeaseName::new("nightly-report")?);
/// assert!(LeaseName::new(" padded ").is_err());
/// # Ok::<(), lease_core::InvalidName>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseName(Text);

impl LeaseName {
    /// Parses a name.
    ///
    /// # Errors
    /// [`InvalidName`] says which rule the text breaks.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        check("a lease name", text, MAX_NAME_BYTES)?;
        Ok(Self(Text::shared(text)))
    }

    /// A name known when the program is written, checked at compile time when used in a `const`.
    ///
    /// # Panics
    /// When the text is no legal name.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        match check("a lease name", text, MAX_NAME_BYTES) {
            Ok(()) => Self(Text::Static(text)),
            Err(_) => {
                panic!("not a legal lease name: 1 to 128 bytes, no control characters, no white space at the ends")
            }
        }
    }

    /// The text as it stands in the column `name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Who we are: the part of a [`Holder`] that people read. At most 96 bytes, without `/`, and neither `evict` nor `pause`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(Text);

impl Label {
    /// Parses a label.
    ///
    /// # Errors
    /// [`InvalidName`] says which rule the text breaks.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        check("a label", text, MAX_LABEL_BYTES)?;
        if let Some(at) = text.find('/') {
            return Err(InvalidName::Slash { at });
        }
        if let Some(label) = ["evict", "pause"].into_iter().find(|word| *word == text) {
            return Err(InvalidName::Reserved { label });
        }
        Ok(Self(Text::shared(text)))
    }

    /// `{hostname}-{pid}` of this process.
    ///
    /// Never fails: characters that a label can't have become `-`, and a hostname that is too long is cut
    /// and ends with a hash of the whole, so that two long hostnames with the same start stay apart.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::of_host(&gethostname::gethostname().to_string_lossy(), std::process::id())
    }

    fn of_host(hostname: &str, pid: u32) -> Self {
        let clean: String = hostname
            .chars()
            .map(|c| {
                if c.is_control() || c.is_whitespace() || c == '/' {
                    '-'
                } else {
                    c
                }
            })
            .collect();
        let pid = format!("-{pid}");
        let room = MAX_LABEL_BYTES - pid.len();
        let host = if clean.len() <= room {
            clean
        } else {
            let hash = format!("~{:016x}", fnv1a(hostname.as_bytes()));
            let mut cut = room - hash.len();
            while !clean.is_char_boundary(cut) {
                cut -= 1;
            }
            format!("{}{hash}", &clean[..cut])
        };
        Self(Text::shared(&format!("{host}{pid}")))
    }

    /// A holder for one tenure: this label, a slash, and 96 random bits.
    #[must_use]
    pub fn new_holder(&self) -> Holder {
        // Digit by digit: to format them would take a tenth of all instructions of a tenure.
        let random = rand::random::<u128>().to_le_bytes().into_iter().take(96 / 8);
        let digits = random.flat_map(|byte| [byte >> 4, byte & 0xF]);
        let mut text = String::with_capacity(self.as_str().len() + 1 + 96 / 4);
        text.push_str(self.as_str());
        text.push('/');
        text.extend(digits.filter_map(|digit| char::from_digit(digit.into(), 16)));
        Holder(Text::shared(&text))
    }

    /// The text of the label.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// What stands in the column `holder`: `{label}/{random}`, one per tenure.
///
/// "The same holder" means the same *try*: it makes a retried acquire idempotent, and nothing else.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder(Text);

impl Holder {
    /// Parses any text that fits the column, as for a holder read back from a log.
    ///
    /// For a new tenure use [`Label::new_holder`].
    ///
    /// # Errors
    /// [`InvalidName`] says which rule the text breaks.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        check("a holder", text, MAX_NAME_BYTES)?;
        Ok(Self(Text::shared(text)))
    }

    /// The text as it stands in the column `holder`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// Why an operator took a lease, as it stands in the column `note`: 1 to 255 bytes, under the rules of a name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Note(Text);

impl Note {
    /// Parses a note.
    ///
    /// # Errors
    /// [`InvalidName`] says which rule the text breaks.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
        let text = text.as_ref();
        check("a note", text, MAX_NOTE_BYTES)?;
        Ok(Self(Text::shared(text)))
    }

    /// The text as it stands in the column `note`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// A fencing token: a number that strictly grows with every grant of a lease.
///
/// Send it along with each write; what is written to must refuse a smaller one than it has seen.
/// It is at least 1, and starts from the database's clock in microseconds, so it stays below 2^53.
/// See Kleppmann, "How to do distributed locking" (2016).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(i64);

impl Token {
    /// A token from its number.
    ///
    /// # Errors
    /// [`InvalidName::Token`] below 1.
    pub const fn new(value: i64) -> Result<Self, InvalidName> {
        if value < 1 {
            Err(InvalidName::Token { value })
        } else {
            Ok(Self(value))
        }
    }

    /// The number, as it stands in the column `token`.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! as_text {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), self.as_str())
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }
        impl std::str::FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::new(text)
            }
        }
    )*};
}
as_text!(LeaseName Label Holder Note);

/// Text that clones without copying and can be made in a `const`.
#[derive(Clone)]
enum Text {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Text {
    fn shared(text: &str) -> Self {
        Self::Shared(Arc::from(text))
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Static(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl std::hash::Hash for Text {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

/// The rules that names, labels and holders share. `const`, so that a static name is checked by the compiler.
const fn check(what: &'static str, text: &str, max: usize) -> Result<(), InvalidName> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return Err(InvalidName::Empty { what });
    }
    if bytes.len() > max {
        return Err(InvalidName::TooLong {
            what,
            bytes: bytes.len(),
            max,
        });
    }
    let mut at = 0;
    let mut last = at;
    while at < bytes.len() {
        // In UTF-8 the control characters above ASCII, U+0080 to U+009F, are C2 followed by 80 to 9F.
        if bytes[at] < 0x20 || bytes[at] == 0x7f || (bytes[at] == 0xc2 && bytes[at + 1] <= 0x9f) {
            return Err(InvalidName::Control { what, at });
        }
        last = at;
        at += char_len(bytes[at]);
    }
    if char_at(bytes, 0).is_whitespace() || char_at(bytes, last).is_whitespace() {
        return Err(InvalidName::Space { what });
    }
    Ok(())
}

const fn char_len(first: u8) -> usize {
    match first {
        0..=0x7f => 1,
        0x80..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xff => 4,
    }
}

/// The character that starts at `at`, which must be a boundary of valid UTF-8.
const fn char_at(bytes: &[u8], at: usize) -> char {
    let len = char_len(bytes[at]);
    let mut code = if len == 1 {
        bytes[at] as u32
    } else {
        (bytes[at] as u32) & (0x7f >> len)
    };
    let mut i = 1;
    while i < len {
        code = code << 6 | (bytes[at + i] & 0x3f) as u32;
        i += 1;
    }
    match char::from_u32(code) {
        Some(c) => c,
        None => panic!("a str is valid UTF-8"),
    }
}

/// FNV-1a, 64 bits: stable over releases, so a host keeps its label. It need not resist an attacker.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_with_the_rule_they_break() {
        let what = "a lease name";
        assert_eq!(LeaseName::new(""), Err(InvalidName::Empty { what }));
        assert_eq!(
            LeaseName::new("a".repeat(129)),
            Err(InvalidName::TooLong {
                what,
                bytes: 129,
                max: 128
            })
        );
        assert_eq!(LeaseName::new("a\nb"), Err(InvalidName::Control { what, at: 1 }));
        assert_eq!(LeaseName::new("a\u{7f}"), Err(InvalidName::Control { what, at: 1 }));
        assert_eq!(LeaseName::new("é\u{85}"), Err(InvalidName::Control { what, at: 2 }));
        for padded in [" a", "a ", "\u{3000}a", "a\u{2003}", "\u{a0}a"] {
            assert_eq!(LeaseName::new(padded), Err(InvalidName::Space { what }), "{padded:?}");
        }
    }

    #[test]
    fn names_of_the_full_length_are_fine_whatever_the_script() {
        for text in [
            "a".repeat(128),
            "é".repeat(64),
            "🦀".repeat(32),
            "a b".into(),
            "'; DROP TABLE x --".into(),
            "¡%_/".into(),
        ] {
            assert_eq!(LeaseName::new(&text).map(|name| name.to_string()), Ok(text));
        }
        const NAME: LeaseName = LeaseName::from_static("nightly");
        assert_eq!(NAME, LeaseName::new("nightly").unwrap());
    }

    #[test]
    fn every_character_is_judged_as_the_standard_library_judges_it() {
        for c in (0..=0x0010_ffff).filter_map(char::from_u32) {
            let legal = !c.is_control() && !c.is_whitespace();
            assert_eq!(LeaseName::new(c.to_string()).is_ok(), legal, "{c:?}");
            assert_eq!(LeaseName::new(format!("a{c}b")).is_ok(), !c.is_control(), "{c:?}");
        }
    }

    #[test]
    fn labels_leave_room_for_the_random_end() {
        let longest = Label::new("x".repeat(96)).unwrap();
        let holder = longest.new_holder();
        assert!(holder.as_str().len() <= MAX_NAME_BYTES);
        assert!(Holder::new(holder.as_str()).is_ok());
        assert_ne!(holder, longest.new_holder(), "every tenure has its own holder");
        assert!(matches!(
            Label::new("x".repeat(97)),
            Err(InvalidName::TooLong { max: 96, .. })
        ));
        assert_eq!(Label::new("a/b"), Err(InvalidName::Slash { at: 1 }));
        assert_eq!(Label::new("evict"), Err(InvalidName::Reserved { label: "evict" }));
        assert_eq!(Label::new("pause"), Err(InvalidName::Reserved { label: "pause" }));
    }

    #[test]
    fn any_hostname_gives_a_legal_label() {
        for host in ["pod-7f9", "", "a/b c\td", &"h".repeat(300), &"ü".repeat(100)] {
            let label = Label::of_host(host, u32::MAX);
            assert_eq!(Label::new(label.as_str()), Ok(label.clone()), "{host:?}");
        }
        assert_eq!(Label::of_host("web-1", 42).as_str(), "web-1-42");
        let (one, two) = (format!("{}1", "h".repeat(200)), format!("{}2", "h".repeat(200)));
        assert_ne!(
            Label::of_host(&one, 1),
            Label::of_host(&two, 1),
            "long hostnames stay apart"
        );
    }
}
