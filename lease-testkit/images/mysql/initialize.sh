#!/bin/sh
# Makes a data folder with a superuser that has no password yet.
set -eu
# A redo log of this size is quick to copy, and the servers of tests ask for the same.
if command -v mariadb-install-db; then
    cat > /tmp/one-root.sql <<SQL
DELETE FROM mysql.global_priv WHERE User = 'root' AND Host <> 'localhost';
DELETE FROM mysql.proxies_priv;
SQL
    mariadb-install-db --no-defaults --datadir=/var/lib/mysql --innodb-log-file-size=32M --extra-file=/tmp/one-root.sql \
        --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve
    rm /tmp/one-root.sql
else
    mysqld --no-defaults --initialize-insecure --datadir=/var/lib/mysql --innodb-redo-log-capacity=32M
fi
touch /var/lib/mysql/without-password
