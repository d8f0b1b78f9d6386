//! The folder: how it is locked, and how a row is read and written.

use std::error::Error;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use lease_core::{BootClock, Clock, LeaseName, Moment, RepoErrorKind, Row};

use crate::row;

/// How long to wait before the lock is tried again.
const PAUSE: Duration = Duration::from_millis(1);

/// A row on its way to its place. One at a time, under the lock.
const NEW: &str = "new";

/// What went wrong, and whether a row may have changed by then.
pub(crate) struct Failure {
    pub(crate) kind: RepoErrorKind,
    pub(crate) cause: Box<dyn Error + Send + Sync>,
    pub(crate) may_have_changed: bool,
}

impl Failure {
    pub(crate) fn new(kind: RepoErrorKind, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let (cause, may_have_changed) = (cause.into(), false);
        Self {
            kind,
            cause,
            may_have_changed,
        }
    }

    fn late(error: io::Error) -> Self {
        Self {
            may_have_changed: true,
            ..Self::from(error)
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => RepoErrorKind::Config,
            ErrorKind::PermissionDenied => RepoErrorKind::Denied,
            ErrorKind::ReadOnlyFilesystem => RepoErrorKind::ReadOnly,
            _ => RepoErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Where the leases are.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    /// Waits until nobody else changes the folder. Dropping the answer, or dying, ends the lock.
    pub(crate) fn lock(&self, deadline: Moment) -> Result<Locked<'_>, Failure> {
        while BootClock.now() < deadline {
            let handle = File::open(&self.path)?;
            match handle.try_lock() {
                Ok(()) if self.is_still(&handle)? => return Ok(Locked { folder: self, handle }),
                // The folder was replaced: the lock is that of the old one.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Err(Failure::new(RepoErrorKind::Conflict, "others had the folder locked"))
    }

    fn is_still(&self, handle: &File) -> io::Result<bool> {
        let (locked, there) = (handle.metadata()?, fs::metadata(&self.path)?);
        Ok((locked.dev(), locked.ino()) == (there.dev(), there.ino()))
    }

    /// A row, whole: a rename puts all of it there at once, so no lock is needed.
    pub(crate) fn read(&self, name: &LeaseName) -> Result<Option<Row>, Failure> {
        let found = self.read_file(&row::file_name(name))?;
        let Some((written, row)) = found else {
            return Ok(None);
        };
        if written == *name {
            Ok(Some(row))
        } else {
            let text = format!("the file of {name:?} is that of {written:?}");
            Err(Failure::new(RepoErrorKind::Other, text))
        }
    }

    /// All rows, by name.
    pub(crate) fn list(&self) -> Result<Vec<(LeaseName, Row)>, Failure> {
        let mut rows = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let path = PathBuf::from(entry?.file_name());
            if path.extension().is_some_and(|ending| ending == row::ENDING) {
                // One that a purge has deleted meanwhile is no row.
                rows.extend(self.read_file(&path.to_string_lossy())?);
            }
        }
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(rows)
    }

    fn read_file(&self, file: &str) -> Result<Option<(LeaseName, Row)>, Failure> {
        let path = self.path.join(file);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound && self.path.is_dir() => return Ok(None),
            bytes => bytes?,
        };
        let damaged = |text| Failure::new(RepoErrorKind::Other, format!("{}: {text}", path.display()));
        row::read(&bytes).map(Some).map_err(damaged)
    }
}

/// The folder while nobody else changes it.
pub(crate) struct Locked<'a> {
    folder: &'a Folder,
    handle: File,
}

impl Locked<'_> {
    /// Makes a row what it is to be, or deletes it. It is on the disk when this returns.
    pub(crate) fn write(&self, name: &LeaseName, row: Option<&Row>) -> Result<(), Failure> {
        let place = self.folder.path.join(row::file_name(name));
        if let Some(row) = row {
            let new = self.folder.path.join(NEW);
            let bytes = row::write(name, row).map_err(|error| Failure::new(RepoErrorKind::Other, error))?;
            // One that a crash has left behind may be another user's, and not be ours to write to.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
            let mut file = File::create_new(&new)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&new, &place).map_err(Failure::late)?;
        } else {
            fs::remove_file(&place).map_err(Failure::late)?;
        }
        self.handle.sync_all().map_err(Failure::late)
    }
}
