#!/bin/bash
# instance-store.sh DIRECTORY: mounts the NVMe disks of this machine there as one file system, striped if they are
# several. Does nothing on a machine without such disks. Their content ends with the machine, and so does everything in
# the worker's directory.
set -euo pipefail
source /usr/local/lib/zerofleet/retry.sh

directory=$1
label=zerofleet

mountpoint --quiet "$directory" && exit 0
# After a reboot the file system is there already.
device=$(blkid --label "$label" || true)
if [[ -z $device ]]; then
  mapfile -t disks < <(lsblk --nodeps --noheadings --output PATH,MODEL | awk '/Amazon EC2 NVMe Instance Storage/ { print $1 }')
  ((${#disks[@]} > 0)) || exit 0
  device=${disks[0]}
  if ((${#disks[@]} > 1)); then
    command -v mdadm > /dev/null || retry dnf install --assumeyes --quiet mdadm
    device=/dev/md/$label
    mdadm --create "$device" --run --homehost=any --name="$label" --level=0 --raid-devices="${#disks[@]}" "${disks[@]}"
  fi
  mkfs.xfs -f -q -L "$label" "$device"
fi
mount -o noatime,nodev,nosuid "$device" "$directory"
