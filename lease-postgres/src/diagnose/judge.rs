//! From what a server says of itself to [`Finding`]s: no SQL, no waiting.

use lease_core::{Finding, RepoErrorKind};

use crate::error::not_found;
use crate::table::Table;
use crate::target::Target;

/// Oldest and newest major version that this was run on or is meant for.
const VERSIONS: std::ops::RangeInclusive<i64> = 14..=18;
/// The oldest that has all that is used.
const OLDEST_USABLE: i64 = 12;
/// A pod takes up to four connections, so fewer than this are soon none.
const FEW: i64 = 8;

pub(super) struct Server {
    pub(super) version: String,
    pub(super) number: i64,
    pub(super) database: String,
    pub(super) role: String,
    pub(super) zone: String,
    pub(super) isolation: String,
}

impl Server {
    pub(super) fn connection(&self) -> Finding {
        let Self { database, role, .. } = self;
        Finding::ok("connection", format!("database {database} as role {role}"))
    }

    pub(super) fn version(&self) -> Finding {
        const CHECK: &str = "version";
        let found = format!("PostgreSQL {}", self.version);
        let major = self.number / 10_000;
        let (oldest, newest) = (VERSIONS.start(), VERSIONS.end());
        if VERSIONS.contains(&major) {
            Finding::ok(CHECK, found)
        } else if major < OLDEST_USABLE {
            Finding::error(CHECK, RepoErrorKind::Config, found, format!("upgrade it to {newest}"))
        } else if major < *oldest {
            Finding::warning(CHECK, found, format!("upgrade it: nothing before {oldest} is tried"))
        } else {
            Finding::warning(
                CHECK,
                found,
                format!("look for a newer lease-postgres: this one knows up to {newest}"),
            )
        }
    }

    pub(super) fn time_zone(&self) -> Finding {
        let found = format!("{}; times are kept as instants, so no zone matters", self.zone);
        Finding::ok("time_zone", found)
    }

    pub(super) fn isolation(&self) -> Finding {
        let found = format!("{}; conflicts are retried inside, at any level", self.isolation);
        Finding::ok("isolation", found)
    }
}

/// What lies between us and the server.
pub(super) struct Way {
    pub(super) is_own: bool,
    pub(super) is_marked: bool,
    pub(super) statement_timeout: String,
    pub(super) enable_seqscan: String,
}

impl Way {
    pub(super) fn finding(&self) -> Finding {
        const CHECK: &str = "pooler";
        if self.is_own && self.is_marked {
            return Finding::ok(CHECK, "none: the session is ours alone");
        }
        let found = if self.is_own {
            "in transaction mode, and it keeps prepared statements apart; statement_timeout, lock_timeout and enable_seqscan \
             can't be set through it"
        } else if self.statement_timeout == "0" || self.enable_seqscan != "off" {
            "the pool is the application's, without statement_timeout or without enable_seqscan = off"
        } else {
            return Finding::ok(
                CHECK,
                "the pool is the application's; what it leads through is not looked at",
            );
        };
        let advice = if self.is_own {
            "connect to the server itself: a pod takes no more than four connections"
        } else {
            "set statement_timeout to 6 s and enable_seqscan to off in that pool"
        };
        Finding::warning(CHECK, found, advice)
    }
}

pub(super) struct Encryption {
    /// None if it is plain.
    pub(super) protocol: Option<String>,
    /// Whether it stays on this machine.
    pub(super) is_near: bool,
    pub(super) verifies: Option<bool>,
}

impl Encryption {
    pub(super) fn finding(&self) -> Finding {
        const CHECK: &str = "encryption";
        let (found, advice) = match (&self.protocol, self.verifies) {
            (Some(protocol), Some(false)) => (
                format!("{protocol}, but the server's certificate is not looked at"),
                "add sslmode=verify-full to the URL: else whoever is on the way may pass for the server",
            ),
            (Some(protocol), _) => return Finding::ok(CHECK, protocol.clone()),
            (None, _) => (
                "none".to_owned(),
                "add sslmode=verify-full to the URL: the password and each statement can be read on the way",
            ),
        };
        if self.is_near {
            return Finding::ok(CHECK, format!("{found}; it stays on this machine"));
        }
        Finding::warning(CHECK, found, advice)
    }
}

pub(super) struct Replication {
    pub(super) standby: bool,
    pub(super) read_only: bool,
    /// `synchronous_standby_names`.
    pub(super) waits_for: String,
    pub(super) followers: i64,
    pub(super) in_sync: i64,
    /// Followers of which the role may not know whether they are in sync.
    pub(super) unknown: i64,
}

impl Replication {
    pub(super) fn finding(&self) -> Finding {
        const CHECK: &str = "replication";
        const FENCE: &str = "after a failover a lease may be given twice, and then only the fencing token keeps the first \
                             holder's writes out: send it along with each, or name the standbys in synchronous_standby_names";
        let read_only = |found: &str, advice: &str| Finding::error(CHECK, RepoErrorKind::ReadOnly, found, advice);
        let Self { followers, in_sync, .. } = self;
        if self.standby {
            let advice = "name the primary in the URL, or all servers with target_session_attrs=read-write";
            return read_only("this server is a standby, which takes no writes", advice);
        }
        if self.read_only {
            let advice = "set default_transaction_read_only to off, for the server, the database or the role";
            return read_only("sessions are read-only", advice);
        }
        if self.waits_for.is_empty() && *followers > 0 {
            return Finding::warning(CHECK, format!("{followers} standbys, none of them synchronous"), FENCE);
        }
        if self.waits_for.is_empty() {
            return Finding::ok(CHECK, "no standby follows this server");
        }
        if self.unknown > 0 {
            let found = format!("{followers} standbys; the role may not see which are synchronous");
            return Finding::warning(CHECK, found, "grant pg_monitor to the role, and look again");
        }
        if *in_sync == 0 {
            let found = "commits wait for a synchronous standby, and none follows this server";
            let advice = "bring one of synchronous_standby_names back: until then no lease is granted or renewed";
            return Finding::error(CHECK, RepoErrorKind::Unavailable, found, advice);
        }
        let found = format!("{in_sync} of {followers} standbys are synchronous");
        if in_sync < followers {
            let advice = format!("promote only one that is synchronous: {FENCE}");
            return Finding::warning(CHECK, found, advice);
        }
        Finding::ok(CHECK, found)
    }
}

pub(super) struct Durability {
    pub(super) fsync: String,
    pub(super) full_page_writes: String,
    pub(super) synchronous_commit: String,
}

impl Durability {
    pub(super) fn finding(&self) -> Finding {
        const CHECK: &str = "durability";
        let commit = &self.synchronous_commit;
        let mut weak = Vec::new();
        for (setting, value) in [("fsync", &self.fsync), ("full_page_writes", &self.full_page_writes)] {
            if value == "off" {
                weak.push(format!("{setting} = off"));
            }
        }
        if matches!(commit.as_str(), "off" | "local" | "remote_write") {
            weak.push(format!("synchronous_commit = {commit}"));
        }
        if weak.is_empty() {
            return Finding::ok(
                CHECK,
                format!("what was granted is on the disk (synchronous_commit = {commit})"),
            );
        }
        let advice = "set them to on: a crash may forget a grant, and give the lease again while its holder runs";
        Finding::warning(CHECK, weak.join(", "), advice)
    }
}

pub(super) struct Connections {
    pub(super) most: i64,
    pub(super) left: i64,
}

impl Connections {
    pub(super) fn finding(&self) -> Finding {
        const CHECK: &str = "connections";
        let (left, most) = (self.left.max(0), self.most);
        let found = format!("{left} more are free for this role, of max_connections = {most}");
        if left >= FEW {
            return Finding::ok(CHECK, found);
        }
        let advice = "raise max_connections or the limit of the database or role: each pod takes up to four";
        Finding::warning(CHECK, found, advice)
    }
}

pub(super) fn no_table(target: &Target, out_of_reach: bool) -> Finding {
    let reason = not_found(target, out_of_reach);
    let advice = if out_of_reach {
        "grant USAGE on that schema to the role"
    } else {
        "run migrate, or the statement that it prints"
    };
    Finding::error("schema", reason.kind, reason.text, advice)
}

/// One line for what is wrong or that nothing is, and one for each thing that costs speed.
pub(super) fn schema(table: &Table) -> Vec<Finding> {
    const CHECK: &str = "schema";
    let problems = table.problems();
    let mut findings = vec![if problems.is_empty() {
        Finding::ok(CHECK, "the table is as it must be")
    } else {
        let advice = "run migrate, which adds missing columns; change the rest by hand";
        Finding::error(CHECK, RepoErrorKind::SchemaMismatch, problems.join("; "), advice)
    }];
    // Each says, after a colon, what to do.
    findings.extend(table.slow().iter().map(|slow| {
        let (found, advice) = slow.split_once(": ").unwrap_or((slow, "change the table"));
        Finding::warning("speed", found, advice)
    }));
    findings
}

/// Of the column `name`; empty if it has none.
pub(super) fn collation(name: &str) -> Finding {
    const CHECK: &str = "collation";
    if matches!(name, "C" | "POSIX" | "ucs_basic" | "pg_c_utf8" | "") {
        return Finding::ok(CHECK, "names are compared and sorted byte for byte");
    }
    let found =
        format!("names are compared byte for byte, but sorted by {name}, which an upgrade of the system may change");
    let advice = "REINDEX TABLE task_leases after such an upgrade, or change the column to COLLATE \"C\": a key that is out of \
                  order may let a lease have two rows";
    Finding::warning(CHECK, found, advice)
}

/// What may change or hide rows behind our back.
pub(super) fn hooks(policies: bool, triggers: bool, rules: bool) -> Finding {
    const CHECK: &str = "hooks";
    let found: Vec<&str> = [
        (policies, "row-level security applies to this role"),
        (triggers, "it has triggers"),
        (rules, "it has rules"),
    ]
    .into_iter()
    .filter_map(|(is_there, text)| is_there.then_some(text))
    .collect();
    if found.is_empty() {
        return Finding::ok(CHECK, "no policy, trigger or rule is on the table");
    }
    let advice = "make sure that none hides a row from a pod or changes one, or drop them";
    Finding::warning(CHECK, found.join(", "), advice)
}

pub(super) struct Access {
    /// Which of SELECT, INSERT, UPDATE and DELETE the role lacks.
    pub(super) missing: String,
    pub(super) delete_on_release: bool,
}

impl Access {
    pub(super) fn finding(&self, target: &Target) -> Finding {
        const CHECK: &str = "privileges";
        let missing = &self.missing;
        if missing.is_empty() {
            return Finding::ok(CHECK, "the role may select, insert, update and delete");
        }
        let found = format!("the role lacks {missing} on the table {target}");
        let advice = format!("GRANT {missing} ON {target} to the role");
        if missing == "DELETE" && !self.delete_on_release {
            return Finding::warning(CHECK, found, format!("{advice}: purge needs it, and nothing else does"));
        }
        Finding::error(CHECK, RepoErrorKind::Denied, found, advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_was_not_tried_is_told() {
        let level = |number| {
            let text = String::new;
            let server = Server {
                version: text(),
                number,
                database: text(),
                role: text(),
                zone: text(),
                isolation: text(),
            };
            server.version().level.as_str()
        };
        let levels = [110_022, 120_001, 139_999, 140_000, 180_004, 190_000].map(level);
        assert_eq!(levels, ["error", "warning", "warning", "ok", "ok", "warning"]);
    }

    #[test]
    fn only_what_leaves_the_machine_must_be_encrypted() {
        let level = |protocol: Option<&str>, is_near, verifies| {
            let protocol = protocol.map(str::to_owned);
            let encryption = Encryption {
                protocol,
                is_near,
                verifies,
            };
            encryption.finding().level.as_str()
        };
        assert_eq!(level(None, true, Some(false)), "ok");
        assert_eq!(level(None, false, Some(false)), "warning");
        assert_eq!(level(Some("TLSv1.3"), false, Some(false)), "warning");
        assert_eq!(level(Some("TLSv1.3"), false, Some(true)), "ok");
        assert_eq!(level(Some("TLSv1.3"), false, None), "ok");
    }

    #[test]
    fn what_a_failover_keeps_depends_on_the_standbys() {
        let level = |waits_for: &str, followers, in_sync, unknown| {
            let replication = Replication {
                standby: false,
                read_only: false,
                waits_for: waits_for.to_owned(),
                followers,
                in_sync,
                unknown,
            };
            replication.finding().level.as_str()
        };
        assert_eq!(level("", 0, 0, 0), "ok");
        assert_eq!(level("", 1, 0, 1), "warning");
        assert_eq!(level("*", 2, 2, 0), "ok");
        assert_eq!(level("*", 2, 1, 0), "warning");
        assert_eq!(level("*", 2, 0, 2), "warning");
        assert_eq!(level("*", 0, 0, 0), "error");
    }

    #[test]
    fn a_pool_of_the_application_needs_its_settings() {
        let level = |is_own, is_marked, timeout: &str, seqscan: &str| {
            let way = Way {
                is_own,
                is_marked,
                statement_timeout: timeout.to_owned(),
                enable_seqscan: seqscan.to_owned(),
            };
            way.finding().level.as_str()
        };
        assert_eq!(level(true, true, "6s", "off"), "ok");
        assert_eq!(level(true, false, "0", "on"), "warning");
        assert_eq!(level(false, false, "6s", "off"), "ok");
        assert_eq!(level(false, false, "0", "off"), "warning");
        assert_eq!(level(false, false, "6s", "on"), "warning");
    }
}
