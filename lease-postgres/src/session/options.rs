//! The options of a connection URL that the driver does not know: they are ours, and are cut out of it.

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::tls::{Mode, Roots, Tls};

/// Splits a URL, or a list of `key=value`, into what the driver reads and how to encrypt.
///
/// What is malformed stays in the driver's part, which then says so.
///
/// # Errors
/// Which of our options has no such value. Never a piece of the URL but that option's name.
pub(super) fn split(url: &str) -> Result<(String, Tls), String> {
    let mut tls = Tls::default();
    let rest = match ["postgres://", "postgresql://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme))
    {
        Some(rest) => split_url(url, rest, &mut tls)?,
        None => split_list(url, &mut tls)?,
    };
    Ok((rest, tls))
}

fn split_url(url: &str, rest: &str, tls: &mut Tls) -> Result<String, String> {
    // As the driver reads it: credentials go to the first `@`, options begin at the first `?` after them.
    let host = rest.find('@').map_or(0, |at| at + 1);
    let Some(query) = rest[host..].find('?') else {
        return Ok(url.to_owned());
    };
    let query = url.len() - rest.len() + host + query + 1;
    let mut others = Vec::new();
    for pair in url[query..].split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8();
        if !matches!(value, Ok(value) if take(tls, key, &value)?) {
            others.push(pair);
        }
    }
    let end = if others.is_empty() { query - 1 } else { query };
    Ok(format!("{}{}", &url[..end], others.join("&")))
}

fn split_list(list: &str, tls: &mut Tls) -> Result<String, String> {
    let mut rest = String::new();
    let mut kept = 0;
    for (key, value, at) in pairs(list) {
        if take(tls, key, &value)? {
            rest += &list[kept..at.start];
            kept = at.end;
        }
    }
    Ok(rest + &list[kept..])
}

/// The pairs of a list and where they stand, as libpq defines it ("Keyword/Value Connection Strings"). Ends at the
/// first that is malformed.
fn pairs(list: &str) -> Vec<(&str, Cow<'_, str>, Range<usize>)> {
    let mut pairs = Vec::new();
    let mut at = 0;
    loop {
        let begin = at + skip_space(&list[at..]);
        let Some(equals) = list[begin..].find('=') else {
            return pairs;
        };
        let key = list[begin..begin + equals].trim_end();
        let value_at = begin + equals + 1;
        let value_at = value_at + skip_space(&list[value_at..]);
        let Some((value, length)) = value(&list[value_at..]) else {
            return pairs;
        };
        at = value_at + length;
        pairs.push((key, value.into(), begin..at));
    }
}

fn skip_space(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// A value, and how long it is as it stands: in quotes or up to white space, with backslashes before what is meant as
/// it is. None if a quote is not closed.
fn value(text: &str) -> Option<(String, usize)> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(usize::from(quoted)) {
        match c {
            c if escaped => {
                value.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '\'' if quoted => return Some((value, at + 1)),
            c if c.is_whitespace() && !quoted => return Some((value, at)),
            c => value.push(c),
        }
    }
    (!quoted).then_some((value, text.len()))
}

/// Takes an option if it is one of ours. Answers whether it was. The last of several counts, as in libpq.
fn take(tls: &mut Tls, key: &str, value: &str) -> Result<bool, String> {
    match key {
        "sslmode" => tls.mode = mode(value)?,
        "sslrootcert" if value == "system" => tls.roots = Some(Roots::System),
        "sslrootcert" => tls.roots = Some(Roots::File(PathBuf::from(value))),
        "sslcert" => tls.certificate = Some(PathBuf::from(value)),
        "sslkey" => tls.key = Some(PathBuf::from(value)),
        _ => return Ok(false),
    }
    Ok(true)
}

fn mode(value: &str) -> Result<Mode, String> {
    Ok(match value {
        "disable" => Mode::Disable,
        "prefer" => Mode::Prefer,
        "require" => Mode::Require,
        "verify-ca" => Mode::VerifyCa,
        "verify-full" => Mode::VerifyFull,
        "allow" => return Err("`sslmode=allow` is not supported: `prefer` encrypts where it can".to_owned()),
        _ => {
            return Err("the connection URL has an invalid value for `sslmode`: \
                        it is disable, prefer, require, verify-ca or verify-full"
                .to_owned());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(path: &str) -> Tls {
        Tls {
            mode: Mode::VerifyFull,
            roots: Some(Roots::File(path.into())),
            ..Tls::default()
        }
    }

    #[test]
    fn our_options_are_cut_out_of_a_url_and_the_rest_stays_as_it_is() {
        for (url, rest, tls) in [
            ("postgres://u:p@h/db", "postgres://u:p@h/db", Tls::default()),
            (
                "postgres://u:p@h/db?connect_timeout=1",
                "postgres://u:p@h/db?connect_timeout=1",
                Tls::default(),
            ),
            (
                "postgres://u:a?sslmode=disable@h/db?sslmode=verify-full&options=-c%20x&sslrootcert=%2Fr%20t.pem",
                "postgres://u:a?sslmode=disable@h/db?options=-c%20x",
                full("/r t.pem"),
            ),
            (
                "postgresql://h1,h2/db?sslrootcert=r&sslmode=verify-full",
                "postgresql://h1,h2/db",
                full("r"),
            ),
        ] {
            assert_eq!(split(url), Ok((rest.to_owned(), tls)), "{url}");
        }
    }

    #[test]
    fn our_options_are_cut_out_of_a_list_and_the_rest_stays_as_it_is() {
        for (list, rest, tls) in [
            ("host=h user=u", "host=h user=u", Tls::default()),
            (
                r"host=h sslmode = 'verify-full' password='a\' sslmode=disable' sslrootcert=a\ b user=u",
                r"host=h  password='a\' sslmode=disable'  user=u",
                full("a b"),
            ),
            ("sslmode=disable sslmode=verify-full sslrootcert=r", "  ", full("r")),
            (
                "host=h password='open sslmode=require",
                "host=h password='open sslmode=require",
                Tls::default(),
            ),
        ] {
            assert_eq!(split(list), Ok((rest.to_owned(), tls)), "{list}");
        }
    }

    #[test]
    fn the_last_of_several_counts() {
        for text in [
            "postgres://h/?sslmode=require&sslmode=disable",
            "host=h sslmode=require sslmode=disable",
        ] {
            assert_eq!(split(text).unwrap().1.mode, Mode::Disable, "{text}");
        }
    }
}
