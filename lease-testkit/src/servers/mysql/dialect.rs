use crate::servers::image::Image;

/// Which of the two servers that speak MySQL's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// MySQL, in a container only: Debian's releases have no programs of it.
    Mysql,
    /// MariaDB.
    MariaDb,
}

impl Dialect {
    /// The name, as its makers write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.image().engine
    }

    /// The variable that names a server to use.
    pub(super) fn url_variable(self) -> &'static str {
        match self {
            Self::Mysql => super::MYSQL_URL,
            Self::MariaDb => super::MARIADB_URL,
        }
    }

    pub(super) fn version_variable(self) -> &'static str {
        match self {
            Self::Mysql => super::MYSQL_VERSION,
            Self::MariaDb => super::MARIADB_VERSION,
        }
    }

    /// The server's program, and what the official image wants as its first argument.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Mysql => "mysqld",
            Self::MariaDb => "mariadbd",
        }
    }

    pub(super) fn image(self) -> &'static Image {
        match self {
            Self::Mysql => &Image {
                engine: "MySQL",
                official: "mysql",
                ours: "lease-test-mysql",
                version: "9",
            },
            Self::MariaDb => &Image {
                engine: "MariaDB",
                official: "mariadb",
                ours: "lease-test-mariadb",
                version: "11.8",
            },
        }
    }
}
