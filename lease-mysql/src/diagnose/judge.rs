//! From what a server says of itself to [`Finding`]s: no SQL, no waiting.

use std::collections::HashMap;

use lease_core::{Finding, RepoErrorKind};

use crate::table::Table;
use crate::target::Target;

/// A pod takes up to four connections, so fewer than this are soon none.
const FEW: i64 = 8;
/// What an abandoned statement may at most wait for a row, in seconds, before it is worth a word.
const LONG_WAIT: i64 = 10;

/// Settings and counts by their names. What the server does not have is empty.
pub(super) struct Server(pub(super) HashMap<String, String>);

impl Server {
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn is_on(&self, name: &str) -> bool {
        !matches!(self.get(name).to_ascii_uppercase().as_str(), "" | "OFF" | "0")
    }

    fn number(&self, name: &str) -> i64 {
        self.get(name).parse().unwrap_or(0)
    }

    pub(super) fn version(&self) -> Finding {
        const CHECK: &str = "version";
        let version = self.get("version");
        let is_mariadb = version.contains("MariaDB") || self.get("version_comment").contains("MariaDB");
        let name = if is_mariadb { "MariaDB" } else { "MySQL" };
        let found = format!("{name} {version}");
        let mut parts = version.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
        let number = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        let (oldest, tried, newest): ((u32, u32), (u32, u32), (u32, u32)) = if is_mariadb {
            ((10, 6), (10, 6), (12, 99))
        } else {
            ((8, 0), (8, 4), (9, 99))
        };
        if number < oldest {
            let advice = format!("upgrade it to {}.{}", tried.0, tried.1);
            return Finding::error(CHECK, RepoErrorKind::Config, found, advice);
        }
        if number < tried {
            let advice = format!("upgrade it: nothing before {}.{} is meant for", tried.0, tried.1);
            return Finding::warning(CHECK, found, advice);
        }
        if number > newest {
            let advice = format!("look for a newer lease-mysql: this one knows up to {}", newest.0);
            return Finding::warning(CHECK, found, advice);
        }
        Finding::ok(CHECK, found)
    }

    /// What the session is set to.
    pub(super) fn session(&self, is_own: bool) -> Finding {
        const CHECK: &str = "session";
        if is_own {
            let first = match self.get("init_connect") {
                "" => String::new(),
                text => format!("; init_connect runs before that, {text}"),
            };
            let found = format!("ours alone; autocommit, time zone, sql_mode and time limits are set in it{first}");
            return Finding::ok(CHECK, found);
        }
        let wait = self.number("innodb_lock_wait_timeout");
        let commits = if self.is_on("autocommit") {
            ""
        } else {
            "; autocommit is off, so each statement is committed on its own"
        };
        let found = format!(
            "the pool is the application's, with innodb_lock_wait_timeout = {wait} s and the rest as it is{commits}"
        );
        if wait <= LONG_WAIT {
            return Finding::ok(CHECK, found);
        }
        let advice =
            "set innodb_lock_wait_timeout to 5 in that pool: statements whose client has given up wait for as long";
        Finding::warning(CHECK, found, advice)
    }

    pub(super) fn clock_source(&self) -> Finding {
        const CHECK: &str = "sysdate";
        if !self.is_on("sysdate_is_now") {
            return Finding::ok(CHECK, "SYSDATE is read when a row is there, also after a wait for it");
        }
        let advice = "take --sysdate-is-now away: after a wait for a row, an expiry counts from before the wait";
        Finding::warning(CHECK, "--sysdate-is-now", advice)
    }

    pub(super) fn time_zone(&self) -> Finding {
        let found = format!(
            "{}; all times are kept in UTC, so no zone matters",
            self.get("time_zone")
        );
        Finding::ok("time_zone", found)
    }

    pub(super) fn isolation(&self) -> Finding {
        let level = match self.get("transaction_isolation") {
            "" => self.get("tx_isolation"),
            level => level,
        };
        Finding::ok(
            "isolation",
            format!("{level}; conflicts are retried inside, at any level"),
        )
    }

    /// Whether the server takes writes.
    pub(super) fn writes(&self) -> Finding {
        const CHECK: &str = "writes";
        let names = [
            "super_read_only",
            "read_only",
            "innodb_read_only",
            "transaction_read_only",
            "tx_read_only",
        ];
        match names.into_iter().find(|name| self.is_on(name)) {
            None => Finding::ok(CHECK, "the server takes writes"),
            Some(name) => {
                let advice = "name the primary in the URL, or set it off: no lease is granted or renewed here, but by administrators";
                Finding::error(CHECK, RepoErrorKind::ReadOnly, format!("{name} is on"), advice)
            }
        }
    }

    pub(super) fn replication(&self) -> Finding {
        const CHECK: &str = "replication";
        let format = self.get("binlog_format").to_ascii_uppercase();
        if !self.is_on("log_bin") {
            return Finding::ok(CHECK, "there is no binary log, so no replica follows by it");
        }
        if format == "STATEMENT" {
            let advice = "set binlog_format to ROW or MIXED: else a replica works out tokens and times of its own";
            return Finding::warning(CHECK, "the binary log is in the format STATEMENT", advice);
        }
        let found = format!(
            "the binary log is in the format {format}; whether a replica that may take over has the last commits is not looked at"
        );
        Finding::ok(CHECK, found)
    }

    pub(super) fn durability(&self) -> Finding {
        const CHECK: &str = "durability";
        let flush = self.get("innodb_flush_log_at_trx_commit");
        let mut weak = Vec::new();
        if flush != "1" && flush != "3" {
            weak.push(format!("innodb_flush_log_at_trx_commit = {flush}"));
        }
        if self.is_on("log_bin") && self.number("sync_binlog") != 1 {
            weak.push(format!("sync_binlog = {}", self.get("sync_binlog")));
        }
        if self.get("innodb_doublewrite").eq_ignore_ascii_case("OFF") {
            weak.push("innodb_doublewrite = OFF".to_owned());
        }
        if weak.is_empty() {
            let found = format!("what was granted is on the disk (innodb_flush_log_at_trx_commit = {flush})");
            return Finding::ok(CHECK, found);
        }
        let advice = "set innodb_flush_log_at_trx_commit and sync_binlog to 1, innodb_doublewrite to ON: a crash may forget a grant, \
                      and give the lease again while its holder runs";
        Finding::warning(CHECK, weak.join(", "), advice)
    }

    pub(super) fn connections(&self) -> Finding {
        const CHECK: &str = "connections";
        let most = self.number("max_connections");
        let left = (most - self.number("Threads_connected")).max(0);
        let found = format!("{left} more are free, of max_connections = {most}");
        if left >= FEW {
            return Finding::ok(CHECK, found);
        }
        Finding::warning(CHECK, found, "raise max_connections: each pod takes up to four")
    }

    /// The state of a node of a cluster. `None` for any other server.
    pub(super) fn galera(&self, is_own: bool) -> Option<Finding> {
        const CHECK: &str = "galera";
        if !self.is_on("wsrep_on") {
            return None;
        }
        let (size, status) = (self.number("wsrep_cluster_size"), self.get("wsrep_cluster_status"));
        let found = format!(
            "a node of {size}, {}, its part of the cluster is {status}",
            self.get("wsrep_local_state_comment")
        );
        if !self.is_on("wsrep_ready") || status != "Primary" {
            let advice = "bring the cluster together again, or name another node: this one grants and renews nothing";
            return Some(Finding::error(CHECK, RepoErrorKind::Unavailable, found, advice));
        }
        // Reads wait by 1, updates and deletes by 2.
        if !is_own && self.number("wsrep_sync_wait") & 3 != 3 {
            let found = format!("{found}; wsrep_sync_wait = {}", self.get("wsrep_sync_wait"));
            let advice =
                "set wsrep_sync_wait to 3 in that pool: else a renewal may not find a grant that another node gave";
            return Some(Finding::warning(CHECK, found, advice));
        }
        if size < 3 {
            let advice = "run three nodes or more, one may be an arbitrator: of fewer, none goes on alone";
            return Some(Finding::warning(CHECK, found, advice));
        }
        Some(Finding::ok(CHECK, found))
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
                "add ssl-mode=VERIFY_IDENTITY to the URL: else whoever is on the way may pass for the server",
            ),
            (Some(protocol), _) => return Finding::ok(CHECK, protocol.clone()),
            (None, _) => (
                "none".to_owned(),
                "add ssl-mode=VERIFY_IDENTITY to the URL: each statement can be read on the way",
            ),
        };
        if self.is_near {
            return Finding::ok(CHECK, format!("{found}; it stays on this machine"));
        }
        Finding::warning(CHECK, found, advice)
    }
}

pub(super) fn no_table(target: &Target) -> Finding {
    let found = format!("there is no table {target}, or no right to see it");
    let advice = "run migrate, or the statement that it prints, in the database that the URL must name; or grant SELECT, INSERT, UPDATE on it to the user";
    Finding::error("schema", RepoErrorKind::SchemaMissing, found, advice)
}

/// One line for what is wrong or that nothing is, and one for each thing that costs speed or goes wrong beside Go pods.
pub(super) fn schema(table: &Table) -> Vec<Finding> {
    const CHECK: &str = "schema";
    let problems = table.problems();
    let mut findings = vec![if problems.is_empty() {
        Finding::ok(CHECK, "the table is as it must be")
    } else {
        let advice = "run migrate, which adds missing columns; change the rest by hand";
        Finding::error(CHECK, RepoErrorKind::SchemaMismatch, problems.join("; "), advice)
    }];
    // Each says, after a colon and a space, what to do.
    findings.extend(table.warnings().iter().map(|warning| {
        let (found, advice) = warning.split_once(": ").unwrap_or((warning, "change the table"));
        Finding::warning("go_pods", found, advice)
    }));
    findings
}

/// What may change rows behind our back.
pub(super) fn hooks(triggers: i64) -> Finding {
    const CHECK: &str = "hooks";
    if triggers == 0 {
        return Finding::ok(CHECK, "the user sees no trigger on the table");
    }
    let advice = "make sure that none changes a row of the table, or drop them";
    Finding::warning(CHECK, format!("{triggers} triggers are on the table"), advice)
}

pub(super) fn privileges(missing: &[&str], delete_on_release: bool, target: &Target) -> Finding {
    const CHECK: &str = "privileges";
    if missing.is_empty() {
        return Finding::ok(CHECK, "the user may select, insert, update and delete");
    }
    let rights = missing.join(", ");
    let found = format!("the user lacks {rights} on the table {target}");
    let advice = format!("GRANT {rights} ON {target} to the user");
    if missing == ["DELETE"] && !delete_on_release {
        return Finding::warning(CHECK, found, format!("{advice}: purge needs it, and nothing else does"));
    }
    Finding::error(CHECK, RepoErrorKind::Denied, found, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(settings: &[(&str, &str)]) -> Server {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        Server(settings.iter().map(owned).collect())
    }

    #[test]
    fn a_server_that_was_not_tried_is_told() {
        for (version, level) in [
            ("5.7.44", "error"),
            ("8.0.36", "warning"),
            ("8.4.3", "ok"),
            ("9.7.4-2", "ok"),
            ("10.0.1", "warning"),
            ("10.2.44-MariaDB", "error"),
            ("10.5.9-MariaDB-log", "error"),
            ("10.11.19-MariaDB", "ok"),
            ("11.8.9-MariaDB-0+deb13u1", "ok"),
            ("13.0.1-MariaDB", "warning"),
        ] {
            assert_eq!(
                server(&[("version", version)]).version().level.as_str(),
                level,
                "{version}"
            );
        }
    }

    #[test]
    fn a_node_of_a_cluster_is_judged_by_whether_it_can_go_on() {
        let level = |ready, status, size, wait, is_own| {
            let node = server(&[
                ("wsrep_on", "ON"),
                ("wsrep_ready", ready),
                ("wsrep_cluster_status", status),
                ("wsrep_cluster_size", size),
                ("wsrep_sync_wait", wait),
            ]);
            node.galera(is_own).unwrap().level.as_str()
        };
        assert_eq!(level("ON", "Primary", "3", "3", true), "ok");
        assert_eq!(level("ON", "Primary", "2", "3", true), "warning");
        assert_eq!(level("OFF", "Primary", "3", "3", true), "error");
        assert_eq!(level("ON", "non-Primary", "3", "3", true), "error");
        assert_eq!(level("ON", "Primary", "3", "1", false), "warning");
        assert_eq!(level("ON", "Primary", "3", "7", false), "ok");
        assert_eq!(server(&[("wsrep_on", "OFF")]).galera(true), None);
    }

    #[test]
    fn what_a_crash_may_forget_is_told() {
        let found = |flush, log, sync| {
            let server = server(&[
                ("innodb_flush_log_at_trx_commit", flush),
                ("log_bin", log),
                ("sync_binlog", sync),
            ]);
            server.durability()
        };
        assert_eq!(found("1", "OFF", "0").level.as_str(), "ok");
        assert_eq!(found("1", "ON", "1").level.as_str(), "ok");
        assert_eq!(found("1", "ON", "0").found, "sync_binlog = 0");
        assert_eq!(found("2", "OFF", "0").found, "innodb_flush_log_at_trx_commit = 2");
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
    fn a_pool_of_the_applications_is_told_of_long_waits() {
        let waits = |seconds, is_own| {
            server(&[("innodb_lock_wait_timeout", seconds), ("autocommit", "OFF")])
                .session(is_own)
                .level
                .as_str()
        };
        assert_eq!(waits("50", false), "warning");
        assert_eq!(waits("5", false), "ok");
        assert_eq!(waits("50", true), "ok");
    }
}
