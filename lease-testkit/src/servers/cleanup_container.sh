# Removes the container named $1. Its owner may have died between asking for it and seeing it, so a container that is
# not there is looked for again until the engine has surely answered.
for pause in 0 0.5 1 2 4 8; do
    sleep "$pause"
    docker container inspect "$1" && docker container rm --force --volumes "$1" && exit
done
