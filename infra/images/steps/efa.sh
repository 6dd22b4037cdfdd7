#!/usr/bin/env bash
# Builds what NCCL uses AWS's Elastic Fabric Adapter by, on Debian 12 or Ubuntu 24.04 with CUDA's headers, as root:
#
#   infra/images/steps/efa.sh DIRECTORY
#
#   DIRECTORY/efa        libfabric with the provider efa, NCCL's plugin aws-ofi-nccl and the licenses: to be copied to
#                        /opt/efa
#   DIRECTORY/packages   system packages that these need to run
#
# Both distributions have libfabric 1.17, and the plugin needs 1.22. Sources are fetched by commit, so git checks every
# byte of them.
set -euo pipefail

steps=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
out=$1
prefix=/opt/efa
cuda=${CUDA_HOME:-/usr/local/cuda}

apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  ca-certificates git autoconf automake libtool make g++ pkg-config libibverbs-dev libhwloc-dev

# source REPOSITORY COMMIT: fetches into a folder of its own and enters it.
source_of() {
  cd "$(mktemp -d)"
  git init -q
  git fetch -q --depth 1 "https://github.com/$1" "$2"
  git checkout -q FETCH_HEAD
}
license_of() { install -D -m 0644 -t "$prefix/share/licenses/$1" "${@:2}"; }

# v2.6.0. No other provider: on a machine without EFA the plugin finds none, and NCCL uses its own transports.
source_of ofiwg/libfabric 5de2d6a2df83595bcc38531cb91bf59495559495
./autogen.sh
./configure --prefix="$prefix" --disable-static --enable-only --enable-efa --with-cuda="$cuda" --enable-cuda-dlopen
make -j"$(nproc)" install
license_of libfabric COPYING

# v1.21.1
source_of aws/aws-ofi-nccl 2475c4c736907e68ebeadb3848f31231ee4a44d0
./autogen.sh
./configure --prefix="$prefix" --disable-static --disable-tests --enable-platform-aws --with-libfabric="$prefix" --with-cuda="$cuda"
make -j"$(nproc)" install
license_of aws-ofi-nccl LICENSE NOTICE
license_of aws-ofi-nccl/boost 3rd-party/boost/LICENSE_1_0.txt
license_of aws-ofi-nccl/nccl 3rd-party/nccl/LICENSE.txt
license_of aws-ofi-nccl/efa-gda 3rd-party/efa-gda/LICENSE 3rd-party/efa-gda/NOTICE

find "$prefix/lib" -type f -name 'lib*.so*' -exec strip --strip-unneeded {} +
rm -rf "$prefix"/include "$prefix"/share/man "$prefix"/lib/*.la "$prefix"/lib/pkgconfig
mkdir -p "$out"
cp -a "$prefix" "$out/efa"
"$steps/packages.sh" "$prefix" "$prefix"/lib/lib*.so > "$out/packages"
