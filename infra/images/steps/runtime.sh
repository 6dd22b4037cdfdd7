#!/bin/sh
# Makes a root file system ready to run /opt/zerofleet: the user, the directories that it may write to, and the system
# packages that are named.
#
#   runtime.sh [PACKAGE ...]
set -eu

if [ $# -gt 0 ]; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
  rm -rf /var/lib/apt/lists/*
fi

# Libraries that NCCL opens by their names.
if [ -d /opt/efa/lib ]; then
  echo /opt/efa/lib > /etc/ld.so.conf.d/efa.conf
  ldconfig
fi

# Terraform and compose.yaml name the same number.
groupadd --gid 10001 zerofleet
useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/zerofleet --shell /usr/sbin/nologin zerofleet
install -d -m 0700 -o zerofleet -g zerofleet /var/lib/zerofleet
