#!/usr/bin/env bash
# Prints the system packages that have the shared libraries of some files, sorted. Libraries of no package are among the
# files' own if they lie below PREFIX; others are an error.
#
#   packages.sh PREFIX FILE ...
set -euo pipefail
prefix=$1
shift

# Some are registered by the name that /lib had before it became a link to /usr/lib.
package_of() {
  dpkg-query -S "$1" 2> /dev/null || dpkg-query -S "${1#/usr}" 2> /dev/null || { echo "no package has $1" >&2; exit 1; }
}
for file in "$@"; do ldd "$file"; done | awk '$3 ~ /^\// { print $3 }' | sort -u | while read -r library; do
  [[ $(realpath "$library") == "$prefix"/* ]] || package_of "$(realpath "$library")" | cut -d: -f1
done | sort -u
