#!/usr/bin/env bash
# Builds zerofleet in a clone on Debian or Ubuntu with Node.js, as root, and puts what runs later into a directory:
#
#   infra/images/steps/build.sh DIRECTORY
#
#   DIRECTORY/app        programs, their npm packages, the native core: to be copied to /opt/zerofleet
#   DIRECTORY/packages   system packages that the native core and Python graders need to run
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
out=$1
app=$out/app
mkdir -p "$app/native/build"

# The machine that runs an image may have other instruction sets than the one that builds it.
ZF_ALL_ISAS=1 npm run setup

cp package.json package-lock.json LICENSE openapi.yaml infra/images/steps/make-bucket.mjs "$app"
mkdir -p "$app/clients/console" && cp -r clients/console/build "$app/clients/console/build"
cp --parents state/*/commands/*.lua graders/python/*.py native/third_party/xxhash/LICENSE "$app"
cp native/build/zerofleet.node "$app/native/build"
# Without source maps.
(cd dist && find . -name '*.js' -print0 | xargs -0 cp --parents -t "$(mkdir -p "$app/dist" && realpath "$app/dist")")
# Without the workspace whose packages build the programs.
(cd "$app" && npm ci --omit=dev --workspaces=false --ignore-scripts --no-audit --no-fund)

infra/images/steps/packages.sh "$app" native/build/zerofleet.node > "$out/packages"
echo python3 >> "$out/packages"
