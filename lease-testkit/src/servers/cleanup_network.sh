# Removes the network named $1, once the containers in it are gone, which have watchdogs of their own.
for pause in 0 0.2 0.5 1 1 2 4 8 16; do
    sleep "$pause"
    docker network rm "$1" && exit
done
