#!/bin/sh
# Runs a PostgreSQL server for tests in the current folder, until the process $1 has ended. Then deletes the folder. The
# programs are in the folder $2. $3: durable, or absent for tests that lose nothing in a crash.
set -eu
is_running() {
  if [ -d /proc/self ]; then [ -d "/proc/$1" ]; else ps -p "$1" >/dev/null; fi
}

watched=$1
programs=$2
folder=$PWD
"$programs/initdb" --pgdata=data --username=svc --auth=trust --encoding=UTF8 --locale=C --no-sync >output 2>&1
cat >>data/postgresql.conf <<END
listen_addresses = ''
unix_socket_directories = '$folder'
max_connections = 300
fsync = off
full_page_writes = off
shared_buffers = 32MB
autovacuum = off
jit = off
END
if [ "${3-}" = durable ]; then
  cat >>data/postgresql.conf <<END
fsync = on
full_page_writes = on
shared_buffers = 128MB
autovacuum = on
END
fi
"$programs/postgres" -D data >>output 2>&1 &
server=$!
trap 'kill -QUIT $server' TERM
# The server's user may not signal the watched process, and `ps` twice per second takes one percent of a run of all tests.
while is_running "$watched" && kill -0 "$server" 2>/dev/null; do
  sleep 1
done
kill -QUIT "$server" 2>/dev/null || true
wait "$server" || true
cd /
rm -rf "$folder"
