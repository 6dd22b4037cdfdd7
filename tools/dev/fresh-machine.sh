#!/usr/bin/env bash
# Runs a command in a clean clone of this repository on a bare Debian 12 with only Node.js and npm:
# proves that set-up needs nothing more than documented. The clone is of the last commit, not of the working tree.
#
#   tools/dev/fresh-machine.sh [--keep] [--suite bookworm] [-- COMMAND ...]     (default: npm run quickstart)
#
# Needs root and debootstrap. The base system is created once, under .build/fresh-machine/, and copied for each run.
# Mirrors, registries and certificates are those of this host; they are read at run time and never written to the
# repository.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
repository=$PWD
suite=bookworm
keep=false
while (($#)); do
  case $1 in
    --keep) keep=true ;;
    --suite) suite=$2; shift ;;
    --) shift; break ;;
    *) echo "unknown option: $1" >&2; exit 2 ;;
  esac
  shift
done
(($#)) || set -- npm run quickstart

((EUID == 0)) || { echo "fresh-machine.sh needs root (chroot, mount)" >&2; exit 1; }
command -v debootstrap > /dev/null || { echo "debootstrap is missing: apt-get install -y debootstrap" >&2; exit 1; }

work=$repository/.build/fresh-machine
base=$work/$suite
machine=$work/run-$$
mkdir -p "$work"

# The first Debian mirror that the host's apt is configured with (one-line or deb822 sources).
host_mirror() {
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2> /dev/null | awk '$1 == "deb" { print ($2 ~ /^\[/) ? $0 : $2 }'
    awk '$1 == "URIs:" { print $2 }' /etc/apt/sources.list.d/*.sources 2> /dev/null
  } | grep -E '^[a-z]+://.*/debian/?$' | head -n 1
}

make_base() {
  rm -rf "$base.partial"
  debootstrap --variant=minbase "$suite" "$base.partial" "$(host_mirror)" > "$work/debootstrap.log" 2>&1 ||
    { tail -n 20 "$work/debootstrap.log" >&2; exit 1; }
  mv "$base.partial" "$base"
}

# Node.js with npm, copied from the host: the only prerequisite.
add_node() {
  local npm
  npm=$(dirname "$(dirname "$(realpath "$(command -v npm)")")")
  mkdir -p "$machine/usr/local/bin" "$machine/usr/local/lib/node_modules"
  cp "$(node -p process.execPath)" "$machine/usr/local/bin/node"
  cp -r "$npm" "$machine/usr/local/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$machine/usr/local/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$machine/usr/local/bin/npx"
}

copy_npm_config() {
  local source
  source=$(npm config get "$1")
  [[ -e $source ]] || return 0
  mkdir -p "$(dirname "$2")"
  cp "$source" "$2"
}

# The host's settings for mirrors and registries.
add_host_network_settings() {
  local path
  rm -f "$machine/etc/apt/sources.list"
  for path in /etc/resolv.conf /etc/hosts /etc/apt /etc/ssl/certs/ca-certificates.crt; do
    [[ -e $path ]] || continue
    mkdir -p "$machine$(dirname "$path")"
    cp -rL --remove-destination "$path" "$machine$(dirname "$path")/"
  done
  copy_npm_config userconfig "$machine/root/.npmrc"
  copy_npm_config globalconfig "$machine/usr/local/etc/npmrc"
}

[[ -d $base ]] || make_base
$keep || trap 'rm -rf --one-file-system "$machine"' EXIT
cp -a "$base" "$machine"
add_node
add_host_network_settings
git clone --quiet --no-hardlinks "$repository" "$machine/srv/zerofleet"

# A private mount and process namespace: leftovers of the command end with it.
inside='mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; mount -t tmpfs tmpfs "$1/tmp"
  root=$1; shift; exec chroot "$root" /bin/bash -c '\''cd /srv/zerofleet && exec "$@"'\'' machine "$@"'
env -i HOME=/root USER=root LANG=C.UTF-8 TERM="${TERM:-dumb}" CI="${CI:-}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  ${NODE_EXTRA_CA_CERTS:+NODE_EXTRA_CA_CERTS="$NODE_EXTRA_CA_CERTS"} \
  unshare --mount --pid --fork --kill-child bash -c "$inside" namespace "$machine" "$@"
