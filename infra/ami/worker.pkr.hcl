# Machine image of the workers: Amazon's ECS-optimized image with the command line of AWS, what the machines' own disks
# need, and the worker's image inside, so that a machine starts its worker without downloading it, always with the same
# driver.

variable "region" {
  description = "AWS region of the image."
  type        = string
}

variable "accelerator" {
  description = "\"cuda\" or \"cpu\": as in `pools` of infra/terraform/modules/workers."
  type        = string

  validation {
    condition     = contains(["cuda", "cpu"], var.accelerator)
    error_message = "Accelerator: \"cuda\" or \"cpu\"."
  }
}

variable "source_ami" {
  description = "Id of the ECS-optimized image of Amazon Linux 2023 (x86-64) to begin with, for \"cuda\" the one for GPUs. It brings the driver."
  type        = string

  validation {
    condition     = regex_replace(var.source_ami, "^ami-[0-9a-f]+$", "") == ""
    error_message = "Source_ami: the id of an image."
  }
}

variable "nvidia_driver" {
  description = "Version of NVIDIA's driver that source_ami has; with another one nothing is made. Terraform's `machine_images.driver` is the same. \"\" for \"cpu\"."
  type        = string

  validation {
    condition     = regex_replace(var.nvidia_driver, "^([0-9]+([.][0-9]+)+)?$", "") == ""
    error_message = "Nvidia_driver: a version, or \"\"."
  }
}

variable "efa_installer" {
  description = "Version of AWS' installer of EFA's driver, for p4d, p5 and the like; \"\" leaves what the kernel has."
  type        = string
  default     = ""
}

variable "worker_image" {
  description = "Image of the worker, by digest or tag: what Terraform's `images` has."
  type        = string

  validation {
    condition     = regex_replace(var.worker_image, "^.+(@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9_.-]*)$", "") == ""
    error_message = "Worker_image: with a digest or a tag."
  }
}

variable "instance_type" {
  description = "Machine on which the image is made; for \"cuda\" it has a GPU, which answers for the driver."
  type        = string
  default     = "g6.xlarge"
}

variable "subnet_id" {
  description = "Private subnet of that machine, with a way to AWS."
  type        = string
}

variable "instance_profile" {
  description = "Its instance profile: Systems Manager, through which Packer reaches it, and reading the worker's image."
  type        = string
}

variable "kms_key_id" {
  description = "Key of the disk; \"\" is the account's key for EBS."
  type        = string
  default     = ""
}

locals {
  registry = split("/", var.worker_image)[0]
  tags = {
    Name                     = "zerofleet-worker-${var.accelerator}"
    "zerofleet:worker-image" = var.worker_image
    "zerofleet:source-ami"   = var.source_ami
    "zerofleet:driver"       = var.nvidia_driver
  }
}

source "amazon-ebs" "worker" {
  region               = var.region
  source_ami           = var.source_ami
  instance_type        = var.instance_type
  subnet_id            = var.subnet_id
  iam_instance_profile = var.instance_profile
  ami_name             = "zerofleet-worker-${var.accelerator}-{{timestamp}}"
  ami_description      = "Workers of zerofleet: ${var.worker_image}"
  encrypt_boot         = true
  kms_key_id           = var.kms_key_id
  tags                 = local.tags
  run_tags             = local.tags

  # By Systems Manager: no port is open. Amazon Linux 2023 asks for version 2 of the metadata service by itself.
  communicator                          = "ssh"
  ssh_interface                         = "session_manager"
  ssh_username                          = "ec2-user"
  associate_public_ip_address           = false
  temporary_security_group_source_cidrs = ["127.0.0.1/32"]
}

build {
  sources = ["source.amazon-ebs.worker"]

  provisioner "file" {
    source      = "${path.root}/../terraform/modules/workers/scripts/retry.sh"
    destination = "/tmp/retry.sh"
  }

  provisioner "shell" {
    script          = "${path.root}/provision.sh"
    execute_command = "sudo env {{ .Vars }} bash {{ .Path }}"
    environment_vars = [
      "ACCELERATOR=${var.accelerator}",
      "DRIVER=${var.nvidia_driver}",
      "EFA_INSTALLER=${var.efa_installer}",
      "IMAGE=${var.worker_image}",
      "REGISTRY=${local.registry}",
    ]
  }
}
