#!/bin/sh
# Becomes the server, which gives its superuser a password at the first start.
#
# MYSQL_ROOT_PASSWORD: of the superuser `root`, who may come from anywhere; required.
set -eu

case "$1" in mysqld | mariadbd)
    program=$1
    shift
    set -- "$program" --no-defaults --datadir=/var/lib/mysql "$@"
    if [ -e /var/lib/mysql/without-password ]; then
        : "${MYSQL_ROOT_PASSWORD:?is required}"
        umask 077
        password=$(printf '%s' "$MYSQL_ROOT_PASSWORD" | sed "s/[\\\\']/\\\\&/g")
        cat > /tmp/superuser.sql <<SQL
CREATE USER root@'%' IDENTIFIED BY '$password';
GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;
DROP USER root@localhost;
SQL
        set -- "$@" --init-file=/tmp/superuser.sql
        rm /var/lib/mysql/without-password
    fi
    ;;
esac
unset MYSQL_ROOT_PASSWORD
exec "$@"
