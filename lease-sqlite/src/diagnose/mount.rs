//! Which file system a file is on. SQLite needs locks that all its processes see, and memory that they share.

use std::path::Path;

use lease_core::{Finding, RepoErrorKind};

const CHECK: &str = "file_system";

/// File systems that several machines share, by the names that Linux has for them.
const SHARED: [&str; 19] = [
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "davfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "smb3",
    "smbfs",
    "sshfs",
    "virtiofs",
];

/// What is known of the file system of a file.
pub(super) fn finding(file: &Path) -> Finding {
    let folder = file.parent().unwrap_or(file);
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    // See proc_pid_mountinfo(5).
    match std::fs::read_to_string("/proc/self/mountinfo") {
        Ok(mounts) => judged(kind(&mounts, &folder)),
        Err(_) => judged(None),
    }
}

/// The type of the file system that a folder is on, by a text such as that of `/proc/self/mountinfo`.
fn kind<'a>(mounts: &'a str, folder: &Path) -> Option<&'a str> {
    let mut found: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let (mount, source) = line.split_once(" - ")?;
        let at = unescaped(mount.split(' ').nth(4)?);
        let depth = at.len();
        // Of two at the same place, the later one hides the earlier.
        if folder.starts_with(&at) && found.is_none_or(|(deepest, _)| depth >= deepest) {
            found = Some((depth, source.split(' ').next()?));
        }
    }
    found.map(|(_, kind)| kind)
}

/// Space, tab, newline and backslash stand there as three octal digits.
fn unescaped(text: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes
        .iter()
        .fold(text.to_owned(), |text, (escape, meant)| text.replace(escape, meant))
}

fn judged(kind: Option<&str>) -> Finding {
    let Some(kind) = kind else {
        return Finding::ok(
            CHECK,
            "of a type that this system does not tell; it must be a local one",
        );
    };
    let (outer, inner) = kind.split_once('.').unwrap_or((kind, kind));
    if SHARED.contains(&inner) || SHARED.contains(&outer) {
        let advice = "move the file to a disk of this machine, or take PostgreSQL: machines that share a file may both be granted a \
                      lease, or ruin the file";
        let found = format!("{kind}, which machines share");
        return Finding::error(CHECK, RepoErrorKind::Config, found, advice);
    }
    match outer {
        "tmpfs" | "ramfs" => {
            let advice = "move the file to a disk where tokens are to grow across restarts: a fence may refuse the tokens of a new file";
            Finding::warning(CHECK, format!("{kind}, which is empty after a restart"), advice)
        }
        "fuse" | "fuseblk" => {
            let advice = "make sure that it is local and keeps POSIX locks, or move the file to a disk of this machine";
            Finding::warning(CHECK, format!("{kind}, of which nothing is known"), advice)
        }
        _ => Finding::ok(CHECK, kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 0:20 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /srv rw - nfs4 server:/srv rw
24 23 0:22 / /srv/a\\040b rw master:1 - tmpfs tmpfs rw
25 22 0:23 / /far rw - fuse.sshfs host: rw
26 22 0:24 / /mnt rw - fuse.mergerfs x rw
27 26 0:25 / /mnt rw - xfs /dev/sdb rw
";

    #[test]
    fn the_deepest_and_latest_mount_counts() {
        for (folder, name) in [
            ("/var/lib", "ext4"),
            ("/srvs", "ext4"),
            ("/srv", "nfs4"),
            ("/srv/x/y", "nfs4"),
            ("/srv/a b", "tmpfs"),
            ("/far/ann", "fuse.sshfs"),
            ("/mnt/x", "xfs"),
        ] {
            assert_eq!(kind(MOUNTS, Path::new(folder)), Some(name), "{folder}");
        }
        assert_eq!(kind("", Path::new("/")), None);
        assert_eq!(kind("no such line", Path::new("/")), None);
    }

    #[test]
    fn a_file_that_machines_share_is_an_error() {
        for (kind, level) in [
            ("ext4", "ok"),
            ("overlay", "ok"),
            ("nfs", "error"),
            ("nfs4", "error"),
            ("fuse.sshfs", "error"),
            ("fuse.glusterfs", "error"),
            ("fuse.mergerfs", "warning"),
            ("fuseblk", "warning"),
            ("tmpfs", "warning"),
        ] {
            assert_eq!(judged(Some(kind)).level.as_str(), level, "{kind}");
        }
        assert_eq!(judged(None).level.as_str(), "ok");
    }
}
