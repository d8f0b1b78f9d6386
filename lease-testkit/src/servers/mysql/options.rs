use super::Dialect;
use crate::servers::Settings;

/// All server options but addresses, in the order in which they are to be applied.
pub(super) fn options(dialect: Dialect, settings: &Settings) -> Vec<(String, String)> {
    let mut list = vec![
        ("max_connections", settings.max_connections.to_string()),
        // A client is not looked up by its address: the machine's names are not to decide who may log in.
        ("skip_name_resolve", "ON".into()),
        ("performance_schema", "OFF".into()),
        ("innodb_buffer_pool_size", "64M".into()),
        // The kernel's queues are few, and there are many servers.
        ("innodb_use_native_aio", "OFF".into()),
        log_size(dialect),
    ];
    if dialect == Dialect::Mysql {
        // Another port of its own.
        list.push(("mysqlx", "OFF".into()));
    }
    if settings.durable {
        list.push(("innodb_flush_log_at_trx_commit", "1".into()));
        list.push(("sync_binlog", "1".into()));
    } else {
        // Written at each commit, or the death of the server would lose them, but never flushed to the disk.
        list.push(("innodb_flush_log_at_trx_commit", "2".into()));
        list.push(("innodb_flush_method", "nosync".into()));
        list.push(("innodb_doublewrite", "OFF".into()));
        list.push(("skip_log_bin", "ON".into()));
    }
    let list = list.into_iter().map(|(setting, value)| (setting.to_owned(), value));
    list.chain(settings.more.iter().cloned()).collect()
}

/// A redo log that is quick to make.
pub(super) fn log_size(dialect: Dialect) -> (&'static str, String) {
    match dialect {
        Dialect::Mysql => ("innodb_redo_log_capacity", "32M".into()),
        Dialect::MariaDb => ("innodb_log_file_size", "32M".into()),
    }
}

/// As an argument of the server.
pub(super) fn argument((option, value): (String, String)) -> String {
    format!("--{option}={value}")
}
