//! The options of a connection URL that the driver does not know: they are ours, and are cut out of it.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use super::tls::{Mode, Tls};

/// The driver's own options for what ours say.
const OTHER_NAMES: [&str; 4] = ["require_ssl", "verify_ca", "verify_identity", "built_in_roots"];

/// Splits a URL into what the driver reads and how to encrypt. `mariadb://` is read as `mysql://`.
///
/// What is malformed stays in the driver's part, which then says so.
///
/// # Errors
/// Which of our options has no such value. Never a piece of the URL but that option's name.
pub(super) fn split(url: &str) -> Result<(String, Tls), String> {
    let mut tls = Tls::default();
    let url = match url.strip_prefix("mariadb://") {
        Some(rest) => format!("mysql://{rest}"),
        None => url.to_owned(),
    };
    let Some((base, query)) = url.split_once('?') else {
        return Ok((url, tls));
    };
    let mut others = Vec::new();
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8();
        if !matches!(value, Ok(value) if take(&mut tls, key, &value)?) {
            others.push(pair);
        }
    }
    let rest = if others.is_empty() {
        base.to_owned()
    } else {
        format!("{base}?{}", others.join("&"))
    };
    Ok((rest, tls))
}

/// Takes an option if it is one of ours. Answers whether it was. The last of several counts.
fn take(tls: &mut Tls, key: &str, value: &str) -> Result<bool, String> {
    match key {
        "ssl-mode" => tls.mode = Some(mode(value)?),
        "ssl-ca" => tls.ca = Some(PathBuf::from(value)),
        "ssl-cert" => tls.certificate = Some(PathBuf::from(value)),
        "ssl-key" => tls.key = Some(PathBuf::from(value)),
        _ if OTHER_NAMES.contains(&key) => {
            return Err(format!("`{key}` is not supported: `ssl-mode` says how to encrypt"));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn mode(value: &str) -> Result<Mode, String> {
    Ok(match value.to_ascii_uppercase().replace('-', "_").as_str() {
        "DISABLED" => Mode::Disabled,
        "PREFERRED" => Mode::Preferred,
        "REQUIRED" => Mode::Required,
        "VERIFY_IDENTITY" => Mode::VerifyIdentity,
        "VERIFY_CA" => {
            return Err(
                "`ssl-mode=VERIFY_CA` is not supported: VERIFY_IDENTITY looks at the host's name too".to_owned(),
            );
        }
        _ => {
            return Err("the connection URL has an invalid value for `ssl-mode`: \
                        it is DISABLED, PREFERRED, REQUIRED or VERIFY_IDENTITY"
                .to_owned());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_options_are_cut_out_of_a_url_and_the_rest_stays_as_it_is() {
        for (url, rest, tls) in [
            ("mysql://u:p@h/db", "mysql://u:p@h/db", Tls::default()),
            ("mariadb://u:p@h/db", "mysql://u:p@h/db", Tls::default()),
            (
                "mysql://h/db?tcp_nodelay=true",
                "mysql://h/db?tcp_nodelay=true",
                Tls::default(),
            ),
            (
                "mysql://u:a%3Fssl-mode=x@h/db?ssl-mode=verify_identity&compression=fast&ssl-ca=%2Fr%20t.pem",
                "mysql://u:a%3Fssl-mode=x@h/db?compression=fast",
                Tls {
                    mode: Some(Mode::VerifyIdentity),
                    ca: Some("/r t.pem".into()),
                    ..Tls::default()
                },
            ),
            (
                "mysql://h/db?ssl-mode=REQUIRED&ssl-mode=DISABLED",
                "mysql://h/db",
                Tls {
                    mode: Some(Mode::Disabled),
                    ..Tls::default()
                },
            ),
        ] {
            assert_eq!(split(url), Ok((rest.to_owned(), tls)), "{url}");
        }
    }
}
