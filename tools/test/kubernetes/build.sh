#!/bin/bash
# Builds the control plane of Kubernetes for tests, from Debian's source package `kubernetes` with the Go of Debian:
#
#   tools/test/kubernetes/build.sh       prints the directory of the programs: .build/kubernetes/VERSION
#
# Programs: kube-apiserver, kube-controller-manager, kube-scheduler (one binary), and etcd, kubectl from Debian's
# packages. All packages are unpacked below .build, so that the machine stays as it is; needs no root. About five
# minutes of processor time; 0.9 GB of memory, 3 GB of disk meanwhile, 0.2 GB afterwards.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
cache=$root/.build/kubernetes
work=$cache/work
for program in apt-get dpkg-deb dpkg-source; do
  command -v $program > /dev/null || { echo "needs $program (a Debian system with dpkg-dev)" >&2; exit 1; }
done
mkdir -p "$cache"
exec 9> "$cache/lock"
flock 9
rm -rf "$work"
mkdir -p "$work"/{apt/partial,cache/archives/partial,debs,go/src/k8s.io}

# Sources of packages come from the mirror of this machine's packages.
. /etc/os-release
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -1 || true)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] ${mirror:-http://deb.debian.org/debian} $VERSION_CODENAME main
deb-src [signed-by=$keys] ${mirror:-http://deb.debian.org/debian} $VERSION_CODENAME main" > "$work/sources.list"
apt=(-qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/apt"
  -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root -o Debug::NoLocking=1)
apt-get "${apt[@]}" update
version=$(apt-cache "${apt[@]}" showsrc --only-source kubernetes | sed -n 's/^Version: //p' | head -1)
[ -n "$version" ] || { echo "Debian $VERSION_CODENAME has no source package kubernetes" >&2; exit 1; }
out=$cache/$version
if [ -e "$out" ]; then rm -rf "$work"; echo "$out"; exit; fi

cd "$work/debs"
apt-get "${apt[@]}" download etcd-server kubernetes-client golang-1.19-go golang-1.19-src
for deb in *.deb; do dpkg-deb -x "$deb" "$work/system"; done
cd "$work/go/src/k8s.io"
apt-get "${apt[@]}" source kubernetes > /dev/null 2>&1
mv kubernetes-*/ kubernetes
cd kubernetes
mkdir cmd/control-plane
cp "$root/tools/test/kubernetes/main.go" cmd/control-plane/

export GOROOT="$work/system/usr/lib/go-1.19" GOPATH="$work/go" GOCACHE="${GOCACHE:-$work/gocache}" GO111MODULE=off CGO_ENABLED=0 GOFLAGS=
build() { nice -n 5 "$GOROOT/bin/go" build -p 2 -trimpath -tags providerless -ldflags='-s -w' -o "$@"; }
# The schema of all objects, which the source package does not contain.
build "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
packages=$(grep -Rl --include='*.go' '^// *+k8s:openapi-gen=' pkg $(ls -d vendor/k8s.io/*/) |
  grep -v -e /code-generator/ -e /sample-apiserver/ | xargs -n1 dirname | LC_ALL=C sort -u |
  sed 's#//#/#g; s#^#k8s.io/kubernetes/#' | paste -sd,)
PATH="$GOROOT/bin:$PATH" nice -n 5 "$work/openapi-gen" --logtostderr -i "$packages" -p k8s.io/kubernetes/pkg/generated/openapi \
  -O zz_generated.openapi -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt -r "$work/violations" > /dev/null
mkdir "$work/out"
build "$work/out/control-plane" ./cmd/control-plane
for program in kube-apiserver kube-controller-manager kube-scheduler; do ln -s control-plane "$work/out/$program"; done
cp "$work/system/usr/bin/etcd" "$work/system/usr/bin/kubectl" "$work/out/"
mv "$work/out" "$out"
chmod -R u+w "$work"
rm -rf "$work"
echo "$out"
