//! [`Place`]: which file, and what may be wrong with it before SQLite looks.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lease_core::RepoErrorKind;

/// Where the leases are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this process alone, and only as long as the repo and its clones live.
    Memory,
    /// By its absolute path, so that a change of the working folder changes nothing.
    File(PathBuf),
}

/// A file on its file system. Another one may stand under the same path later.
pub(crate) type Identity = (u64, u64);

impl Place {
    /// Reads `sqlite:` and a path, `sqlite::memory:`, or a path alone.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let path = url.strip_prefix("sqlite:").unwrap_or(url);
        // As in `sqlite:///var/lib/x.db`, whose host is empty.
        let path = path.strip_prefix("//").unwrap_or(path);
        match path {
            "" => Err("the URL names no file: it is `sqlite:` and a path, or `sqlite::memory:`".to_owned()),
            ":memory:" => Ok(Self::Memory),
            path => Self::file(Path::new(path)),
        }
    }

    /// A file by its path.
    pub(crate) fn file(path: &Path) -> Result<Self, String> {
        let absolute = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
        if absolute.to_str().is_none() {
            return Err(format!("{} is no UTF-8", absolute.display()));
        }
        Ok(Self::File(absolute))
    }

    /// As SQLite is told.
    pub(crate) fn for_driver(&self) -> &str {
        match self {
            Self::Memory => ":memory:",
            Self::File(path) => path.to_str().unwrap_or_default(),
        }
    }

    /// Which file stands under the path now; `None` where there is none, or no such thing as an identity.
    pub(crate) fn identity(&self) -> Option<Identity> {
        #[cfg(unix)]
        if let Self::File(path) = self {
            use std::os::unix::fs::MetadataExt;
            let found = std::fs::metadata(path).ok()?;
            return Some((found.dev(), found.ino()));
        }
        None
    }

    /// Why it can't be opened, in better words than SQLite has.
    ///
    /// It only asks, and opens nothing: closing a file takes away all locks that this process has on it, those of SQLite's
    /// connections too ("How To Corrupt An SQLite Database File" in SQLite's documentation).
    pub(crate) fn obstacle(&self) -> Option<(RepoErrorKind, String)> {
        let Self::File(path) = self else { return None };
        let config = |text: String| Some((RepoErrorKind::Config, text));
        let found = std::fs::metadata(path);
        if found.as_ref().is_ok_and(|found| !found.is_file()) {
            return config(format!("{self} is no file"));
        }
        let folder = path.parent()?;
        if std::fs::metadata(folder).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return config(format!("there is no folder {} for the file", folder.display()));
        }
        let missing = found.is_err_and(|error| error.kind() == ErrorKind::NotFound);
        let (kind, error) = missing_right(if missing { folder } else { path })?;
        Some((kind, format!("{self}: {error}")))
    }
}

/// Which right this process lacks on a file or folder.
#[cfg(unix)]
fn missing_right(path: &Path) -> Option<(RepoErrorKind, std::io::Error)> {
    use rustix::fs::{Access, access};
    use rustix::io::Errno;
    let error = access(path, Access::READ_OK | Access::WRITE_OK).err()?;
    let kind = match error {
        Errno::ROFS => RepoErrorKind::ReadOnly,
        Errno::ACCESS if access(path, Access::READ_OK).is_ok() => RepoErrorKind::ReadOnly,
        Errno::ACCESS => RepoErrorKind::Denied,
        _ => RepoErrorKind::Unavailable,
    };
    Some((kind, error.into()))
}

/// SQLite says it, in its own words.
#[cfg(not(unix))]
fn missing_right(_: &Path) -> Option<(RepoErrorKind, std::io::Error)> {
    None
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str(":memory:"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_path_with_or_without_its_scheme() {
        for (url, path) in [
            ("sqlite:/a/b.db", "/a/b.db"),
            ("sqlite:///a/b.db", "/a/b.db"),
            ("/a/b?c.db", "/a/b?c.db"),
        ] {
            assert_eq!(Place::parse(url), Ok(Place::File(path.into())), "{url}");
        }
        for url in ["sqlite::memory:", ":memory:"] {
            assert_eq!(Place::parse(url), Ok(Place::Memory), "{url}");
        }
        let relative = Place::parse("sqlite:x.db").unwrap();
        assert!(matches!(relative, Place::File(path) if path.is_absolute() && path.ends_with("x.db")));
        assert!(Place::parse("sqlite:").is_err());
    }

    #[test]
    fn a_missing_folder_and_a_folder_instead_of_a_file_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Place::file(&folder.path().join("no/x.db")).unwrap();
        assert!(missing.obstacle().unwrap().1.contains("there is no folder"));
        let instead = Place::file(folder.path()).unwrap();
        assert!(instead.obstacle().unwrap().1.contains("is no file"));
        let fine = Place::file(&folder.path().join("x.db")).unwrap();
        assert_eq!(fine.obstacle(), None);
    }
}
