//! What the server's error numbers mean for us. Texts may be in any language; the numbers are the same everywhere.

use lease_core::RepoErrorKind;

/// What a number says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Other transactions were in the way, and everything was rolled back: again.
    Conflict,
    /// Nothing changes by trying again.
    Kind(RepoErrorKind),
    /// The table is not as it must be, and looking at it tells more.
    Table,
    /// None that we know of.
    Unknown,
}

/// What the number of a failed statement means (MySQL manual, "Server Error Message Reference"; MariaDB, "Error Codes").
pub(crate) fn of_statement(code: i64) -> Meaning {
    use RepoErrorKind::{Denied, ReadOnly, SchemaMissing, Unavailable};
    match code {
        // Changed since it was read, lock wait timeout, deadlock (on Galera: a certification that failed), the error of a
        // commit, a table altered meanwhile, a deadlock of metadata locks, time limits, lock not available, and the
        // certification of group replication.
        1020 | 1205 | 1213 | 1180 | 1412 | 1479 | 1613 | 1614 | 1637 | 1969 | 3024 | 3058 | 3101 | 3572 => {
            Meaning::Conflict
        }
        // A node of Galera that is not synced, and servers that are going away.
        1047 | 1053 | 1077 | 1079 | 3100 | 3169 | 3796 => Meaning::Kind(Unavailable),
        1046 => Meaning::Kind(RepoErrorKind::Config),
        1290 | 1792 | 1836 => Meaning::Kind(ReadOnly),
        1044 | 1045 | 1142 | 1143 | 1227 | 1370 | 1820 => Meaning::Kind(Denied),
        1049 | 1146 => Meaning::Kind(SchemaMissing),
        // Unknown column, null where there must be none, no default, a value that is cut or out of range, no base table.
        1048 | 1054 | 1136 | 1264 | 1265 | 1288 | 1292 | 1347 | 1364 | 1366 | 1406 | 1471 | 1690 => Meaning::Table,
        _ => Meaning::Unknown,
    }
}

/// What the number of a connection that was refused means.
pub(crate) fn of_connecting(code: u16) -> RepoErrorKind {
    match code {
        // No such database or right to it, password, host, plugin, expired password, locked account, and their twins.
        1044 | 1045 | 1049 | 1130 | 1131 | 1133 | 1227 | 1251 | 1524 | 1698 | 1820 | 1862 | 3118 | 3879 | 3955
        | 4151 | 4161 => RepoErrorKind::Denied,
        // TLS is required, or a variable of ours is unknown.
        1193 | 1231 | 3159 => RepoErrorKind::Config,
        // Too many connections, a server that starts or ends, a node that is not synced, and all else.
        _ => RepoErrorKind::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_connection_is_worth_a_retry_unless_somebody_must_change_something() {
        for code in [1040, 1047, 1053, 1129, 1203] {
            assert_eq!(of_connecting(code), RepoErrorKind::Unavailable, "{code}");
        }
        for code in [1044, 1045, 1049, 1698] {
            assert_eq!(of_connecting(code), RepoErrorKind::Denied, "{code}");
        }
    }
}
