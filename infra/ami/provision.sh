#!/bin/bash
# Makes a worker's machine of an ECS-optimized one, as root: ACCELERATOR, DRIVER, EFA_INSTALLER, IMAGE and REGISTRY are
# those of worker.pkr.hcl.
set -euo pipefail
source /tmp/retry.sh

# The agent of ECS has no business here.
systemctl mask --now ecs.service

retry dnf install --assumeyes --quiet awscli-2 mdadm xfsprogs

if [[ $ACCELERATOR == cuda ]]; then
  driver=$(retry nvidia-smi --query-gpu=driver_version --format=csv,noheader | sort --unique)
  if [[ $driver != "$DRIVER" ]]; then
    echo "the driver of the source image is $driver, not $DRIVER" >&2
    exit 1
  fi
fi

if [[ -n $EFA_INSTALLER ]]; then
  archive=/tmp/efa.tar.gz
  retry curl -fsS --output "$archive" "https://efa-installer.amazonaws.com/aws-efa-installer-$EFA_INSTALLER.tar.gz"
  tar --extract --file "$archive" --directory /tmp
  # The driver alone: libraries are in the worker's image.
  (cd /tmp/aws-efa-installer && ./efa_installer.sh --yes --minimal)
  rm -rf "$archive" /tmp/aws-efa-installer
fi

export DOCKER_CONFIG=/run/zerofleet-docker
log_in() {
  aws ecr get-login-password --region "$(cut -d . -f 4 <<< "$REGISTRY")" | docker login --username AWS --password-stdin "$REGISTRY"
}
if [[ $REGISTRY == *.dkr.ecr.* ]]; then retry log_in; fi
retry docker pull --quiet "$IMAGE"

# Nothing of this machine stays in its image.
rm -rf "$DOCKER_CONFIG" /tmp/retry.sh /home/ec2-user/.ssh/authorized_keys
dnf clean all --quiet
cloud-init clean --logs
