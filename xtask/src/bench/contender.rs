//! [`Contender`]: who does the same work.

use std::process::Command;

use super::built::{Built, Package};
use super::engine::{Kind, Place};

/// What is left of a lease after the death of whoever took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    /// This project: a row with a fencing token.
    Us,
    /// The statements alone.
    Floor,
    /// A row, as durable as ours.
    Row,
    /// Nothing: it ends with the session.
    Session,
}

impl Keeps {
    pub(super) const fn shown(self) -> &'static str {
        match self {
            Self::Us => "row and token",
            Self::Floor => "the statements alone",
            Self::Row => "row",
            Self::Session => "session",
        }
    }
}

/// One way to have a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contender {
    pub(super) label: &'static str,
    pub(super) package: Package,
    pub(super) who: &'static str,
    pub(super) keeps: Keeps,
    more: &'static [&'static str],
}

const fn contender(label: &'static str, package: Package, who: &'static str, keeps: Keeps) -> Contender {
    Contender {
        label,
        package,
        who,
        keeps,
        more: &[],
    }
}

/// `pgbench`, which is no program of ours.
pub(super) const PGBENCH: &str = "pgbench -M prepared";

const OURS: Package = Package::Ours;

/// Who takes part on an engine: the floor, this project, then the others.
pub(super) fn contenders(kind: Kind) -> Vec<Contender> {
    let mysql = [
        contender("bare mysql_async", OURS, "mysql-bare", Keeps::Floor),
        contender("lease", OURS, "mysql", Keeps::Us),
        contender("distributed-lock-mysql", Package::Sessions, "mysql", Keeps::Session),
    ];
    match kind {
        Kind::Postgres => vec![
            contender("bare tokio-postgres", OURS, "postgres-bare", Keeps::Floor),
            contender("lease", OURS, "postgres", Keeps::Us),
            contender("distributed", Package::Distributed, "postgres", Keeps::Row),
            contender("autumn-web LeaseLock", Package::Autumn, "postgres", Keeps::Row),
            contender(
                "distributed-lock-postgres",
                Package::Sessions,
                "postgres",
                Keeps::Session,
            ),
            contender(
                "sqlx PgAdvisoryLock",
                Package::Distributed,
                "sqlx-advisory",
                Keeps::Session,
            ),
        ],
        Kind::Mariadb | Kind::Mysql => mysql.to_vec(),
        Kind::Sqlite => vec![
            contender("bare rusqlite", OURS, "sqlite-bare", Keeps::Floor),
            contender("lease", OURS, "sqlite", Keeps::Us),
            contender("distributed", Package::Distributed, "sqlite", Keeps::Row),
        ],
    }
}

impl Contender {
    /// This project on an engine.
    pub(super) fn us(kind: Kind) -> Self {
        contender("lease", OURS, kind.word(), Keeps::Us)
    }

    /// The backend alone, whose renewals can be called.
    pub(super) fn repo(kind: Kind) -> Self {
        let who = match kind {
            Kind::Postgres => "postgres-repo",
            Kind::Mariadb | Kind::Mysql => "mysql-repo",
            Kind::Sqlite => "sqlite-repo",
        };
        contender("lease, its Repo", OURS, who, Keeps::Us)
    }

    /// The backend behind a thread of its own, as the keeper has it behind its own.
    pub(super) fn hop(kind: Kind) -> Self {
        let who = match kind {
            Kind::Postgres => "postgres-hop",
            Kind::Mariadb | Kind::Mysql => "mysql-hop",
            Kind::Sqlite => "sqlite-hop",
        };
        contender("lease, its Repo behind a thread", OURS, who, Keeps::Us)
    }

    /// The statements alone.
    pub(super) fn floor(kind: Kind) -> Self {
        let all = contenders(kind);
        let floor = all.into_iter().find(|one| one.keeps == Keeps::Floor);
        floor.expect("each engine has a floor")
    }

    /// With another label and more arguments.
    pub(super) const fn with(mut self, label: &'static str, more: &'static [&'static str]) -> Self {
        self.label = label;
        self.more = more;
        self
    }

    /// The command that does such a work at such a place.
    pub(super) fn command(&self, built: &Built, place: &Place, work: &[String]) -> anyhow::Result<Command> {
        let mut command = Command::new(built.program(self.package)?);
        command.env("BENCH_URL", place.url());
        command.arg(self.who).args(self.more).args(work);
        Ok(command)
    }
}

/// A command line's words.
macro_rules! words {
    ($($word:expr),* $(,)?) => { [$($word.to_string()),*] };
}
pub(super) use words;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_has_a_floor_and_this_project() {
        for kind in Kind::ALL {
            let all = contenders(kind);
            assert!(all.contains(&Contender::us(kind)), "{kind:?}");
            assert_eq!(all[0], Contender::floor(kind));
        }
    }
}
