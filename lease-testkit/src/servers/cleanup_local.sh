# Ends the local server in the folder $1 and removes the folder. All of a server's processes, and no others, work in
# its data folder.
data=$1/data

alive() {
    for process in /proc/[0-9]*; do
        [ "$process/cwd" -ef "$data" ] && echo "${process#/proc/}"
    done
}

# Immediate shutdown first: the server gives its shared memory back. Frozen processes get the signal before they go on.
kill -QUIT $(alive)
kill -CONT $(alive)
tries=0
while [ -n "$(alive)" ] && [ "$tries" -lt 10 ]; do
    sleep 0.05
    tries=$((tries + 1))
done

end_all() {
    while [ -n "$(alive)" ]; do
        kill -KILL $(alive)
        sleep 0.05
    done
}
end_all

# A server that was killed leaves this file, which names its shared memory.
if [ -f "$data/postmaster.pid" ]; then
    set -- "$1" $(sed -n 7p "$data/postmaster.pid")
    [ -n "$3" ] && ipcrm -m "$3"
fi

# A program that its owner started in its last moment may show only now.
for pause in 0 0.1 0.2 0.5 1 2 5; do
    sleep "$pause"
    end_all
    rm -rf "$1" && exit
done
