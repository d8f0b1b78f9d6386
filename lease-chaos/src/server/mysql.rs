//! MySQL, MariaDB and nodes of Galera: from the programs of this machine, or from the files of an image.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{CONNECTIONS, Server};
use crate::admin::{PASSWORD, database};
use crate::engine::Engine;
use crate::net::done;

impl Server {
    pub(super) fn make_mysql(&self) -> anyhow::Result<()> {
        let app = database(self.engine);
        let users = self.folder.join("users.sql");
        // `service` is no superuser: those write to a server that is read-only.
        fs::write(
            &users,
            format!(
                "FLUSH PRIVILEGES;\n\
                 CREATE DATABASE IF NOT EXISTS {app};\n\
                 CREATE USER IF NOT EXISTS root@'%' IDENTIFIED BY '{PASSWORD}';\n\
                 GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;\n\
                 CREATE USER IF NOT EXISTS service@'%' IDENTIFIED BY '{PASSWORD}';\n\
                 GRANT ALL ON {app}.* TO service@'%';\n"
            ),
        )?;
        self.give(&users)?;
        let mut install = if self.engine == Engine::Mysql {
            let mut install = self.program(Path::new("mysqld"));
            install.args([
                "--no-defaults",
                "--initialize-insecure",
                "--innodb_redo_log_capacity=32M",
            ]);
            install
        } else {
            let mut install = self.program(Path::new("mariadb-install-db"));
            install.args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ]);
            install.args(["--skip-name-resolve", "--innodb_log_file_size=32M", "--force"]);
            install.arg(self.at("extra-file", "users.sql"));
            install
        };
        install.arg(format!("--datadir={}", self.inside(&self.data()).display()));
        done(install.arg(self.at("tmpdir", "")))
    }

    /// An option whose value is a path on its disk.
    fn at(&self, option: &str, name: &str) -> String {
        format!("--{option}={}", self.inside(&self.folder.join(name)).display())
    }

    pub(super) fn mysql(&self) -> Command {
        let program = if self.engine == Engine::Mysql {
            "mysqld"
        } else {
            "mariadbd"
        };
        let mut command = self.program_with_clock(Path::new(program));
        command
            .arg("--no-defaults")
            .args([
                self.at("datadir", "data"),
                self.at("tmpdir", ""),
                self.at("socket", "socket"),
            ])
            .args([self.at("pid-file", "pid")])
            .args([
                "--port=3306",
                "--bind-address=0.0.0.0",
                "--skip-name-resolve=ON",
                "--performance-schema=OFF",
            ])
            .arg(format!("--max-connections={CONNECTIONS}"))
            .args(["--innodb-buffer-pool-size=64M", "--innodb-use-native-aio=OFF"])
            // Written at each commit, but not flushed: the machine does not die here, only the server does.
            .args(["--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=OFF"]);
        match self.engine {
            Engine::Mysql => {
                command.arg(self.at("init-file", "users.sql"));
                command.args(["--mysqlx=OFF", "--innodb-redo-log-capacity=32M", "--skip-log-bin"])
            }
            Engine::Galera => command.arg("--innodb-log-file-size=32M").args(self.cluster()),
            _ => command.args(["--innodb-log-file-size=32M", "--skip-log-bin"]),
        };
        command
    }

    /// A node that is silent for a second and a half is suspected, and the others go on without it.
    fn cluster(&self) -> Vec<String> {
        let provider = "gcache.size=16M;evs.suspect_timeout=PT1.5S;evs.inactive_timeout=PT3S;\
                        evs.inactive_check_period=PT0.1S;evs.keepalive_period=PT0.15S;gmcast.peer_timeout=PT0.75S";
        let mut options = vec![
            "--wsrep-on=ON".to_owned(),
            "--wsrep-provider=/usr/lib/galera/libgalera_smm.so".to_owned(),
            "--loose-plugin-wsrep-provider=OFF".to_owned(),
            format!("--wsrep-provider-options={provider}"),
            format!("--wsrep-cluster-address=gcomm://{}", self.peers.join(",")),
            format!("--wsrep-node-address={}", self.node.address),
            "--wsrep-sst-method=rsync".to_owned(),
            "--binlog-format=ROW".to_owned(),
            "--innodb-autoinc-lock-mode=2".to_owned(),
        ];
        if self.is_first {
            options.push("--wsrep-new-cluster".to_owned());
        }
        options
    }
}
