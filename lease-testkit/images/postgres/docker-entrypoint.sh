#!/bin/sh
# Makes the database cluster at the first start, then becomes the command.
#
# POSTGRES_PASSWORD: of the superuser `postgres`; required.
# POSTGRES_HOST_AUTH_METHOD: how clients log in; `scram-sha-256` if not given.
set -eu

if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
    umask 077
    printf '%s' "${POSTGRES_PASSWORD:?is required}" > /tmp/password
    initdb --username=postgres --pwfile=/tmp/password --encoding=UTF8 --no-locale --no-sync
    rm /tmp/password
    echo "host all all all ${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >> "$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >> "$PGDATA/postgresql.conf"
fi
unset POSTGRES_PASSWORD
exec "$@"
