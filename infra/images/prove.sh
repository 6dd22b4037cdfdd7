#!/usr/bin/env bash
# Runs the steps of the Dockerfile without a container engine. It builds in a bare Debian 12, and copies the result into
# a second bare root file system that has only Node.js. API, autoscaler and worker run there as user 10001, without
# capabilities, on a read-only root file system. A job has to succeed, and the health checks have to answer.
#
#   infra/images/prove.sh          (root, debootstrap; the last commit, as tools/dev/fresh-machine.sh)
#
# Node.js is the one on PATH; to prove the images with theirs, put a Node.js of the Dockerfile's version there.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$PWD/.build/fresh-machine
run=$work/images-$$
redis_pid=
cleanup() {
  [[ -z $redis_pid ]] || kill "$redis_pid" 2> /dev/null || true
  rm -rf --one-file-system "$run" "$run-data" ${machine:+"$machine"}
}
trap cleanup EXIT

before=$(ls -d "$work"/run-* 2> /dev/null || true)
tools/dev/fresh-machine.sh --keep -- bash -c 'cp -r . /src && /src/infra/images/steps/build.sh /out'
machine=$(comm -13 <(echo "$before" | sort) <(ls -d "$work"/run-* | sort) | head -n 1)

echo "second root file system: the base, Node.js, and what was built"
cp -a "$work/bookworm" "$run"
cp -a "$machine/usr/local/." "$run/usr/local/"
for path in etc/resolv.conf etc/hosts etc/apt etc/ssl/certs; do
  [[ -e $machine/$path ]] || continue
  mkdir -p "$run/$(dirname $path)"
  cp -aL --remove-destination "$machine/$path" "$run/$(dirname $path)/"
done
rm -f "$run/etc/apt/sources.list"
[[ -e $machine/etc/apt/sources.list ]] && cp "$machine/etc/apt/sources.list" "$run/etc/apt/"
cp -a "$machine/out/app" "$run/opt/zerofleet"
cp infra/images/steps/runtime.sh infra/images/steps/health.mjs infra/images/steps/smoke.mjs "$run/opt/"
du -sh "$run/opt/zerofleet"
xargs chroot "$run" /opt/runtime.sh < "$machine/out/packages"

# Redis is another container in production: here the one that the build installed, of the first root file system.
chroot "$machine" bash -c 'exec -a redis-server /usr/bin/redis-check-rdb --port 0 --unixsocket /tmp/redis.sock --unixsocketperm 777 --dir /tmp --save "" --loglevel warning' &
redis_pid=$!
mkdir -p "$run-data/data"
chown -R 10001:10001 "$run-data"
for _ in $(seq 100); do [[ -S $machine/tmp/redis.sock ]] && break; sleep 0.1; done
export run machine
unshare --mount --pid --fork --kill-child bash -euo pipefail -c '
  mount --bind "$run" "$run"
  mount -o remount,bind,ro "$run"
  mount -t proc proc "$run/proc"
  mount --rbind /dev "$run/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$run/tmp"
  mount --bind "$run-data/data" "$run/var/lib/zerofleet"
  touch "$run/tmp/redis.sock"
  mount --bind "$machine/tmp/redis.sock" "$run/tmp/redis.sock"
  exec chroot "$run" setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
    /usr/local/bin/node /opt/smoke.mjs'
