#!/bin/sh
# Becomes a node of a Galera cluster of MariaDB: `galera-node.sh first|next OPTIONS`, where the first one makes the cluster.
set -eu
place=$1
shift
if [ -e /var/lib/mysql/without-password ]; then
    if [ "$place" = first ]; then
        set -- "$@" --wsrep-new-cluster
    else
        # The superuser comes with everything else from another node.
        rm /var/lib/mysql/without-password
    fi
else
    # After a kill only the tables know how far it got.
    mariadbd --no-defaults --datadir=/var/lib/mysql "$@" --wsrep-recover 2> /tmp/recovered || cat /tmp/recovered >&2
    set -- "$@" --wsrep-start-position="$(sed -n 's/.*Recovered position: *//p' /tmp/recovered | tail -n 1)"
fi
exec docker-entrypoint.sh mariadbd "$@"
