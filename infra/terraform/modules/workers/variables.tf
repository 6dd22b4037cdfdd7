variable "name" {
  description = "Begins the names of everything that is made here."
  type        = string
}

variable "region" {
  description = "AWS region of the machines."
  type        = string
}

variable "account_id" {
  description = "AWS account of the machines."
  type        = string
}

variable "images" {
  description = "Images of the worker, with a digest or a tag that is not \"latest\", for the accelerators that the pools have."
  type = object({
    cuda = optional(string)
    cpu  = optional(string)
  })
  nullable = false

  validation {
    condition     = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) : var.images[kind.accelerator] != null]]))
    error_message = "images: one for each accelerator of the pools."
  }

  validation {
    condition     = alltrue([for image in values(var.images) : can(regex("(@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9_.-]*)$", image)) && !endswith(image, ":latest") if image != null])
    error_message = "images: with a digest (…@sha256:…) or a tag that is not \"latest\"."
  }
}

variable "machine_images" {
  description = <<-EOT
    Machine images (x86-64) with Docker, and for "cuda" NVIDIA's driver and container toolkit: an id of infra/ami, or of another image.
      cuda, cpu: the defaults are Amazon's ECS-optimized ones, the newest at each launch: for trying it out.
      driver:    version of NVIDIA's driver that machines with GPUs must have, such as "580.95.05"; a machine with another one starts no
                 worker, and is replaced. null takes any.
  EOT
  type = object({
    cuda   = optional(string, "resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id")
    cpu    = optional(string, "resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id")
    driver = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for image in [var.machine_images.cuda, var.machine_images.cpu] : can(regex("^(ami-[0-9a-f]+|resolve:ssm:.+)$", image))])
    error_message = "machine_images: \"ami-…\", or \"resolve:ssm:\" with the name of a parameter."
  }

  validation {
    condition     = var.machine_images.driver == null || can(regex("^[0-9]+(\\.[0-9]+)+$", var.machine_images.driver))
    error_message = "machine_images.driver: a version such as \"580.95.05\"."
  }
}

variable "network" {
  description = "Where they run: outputs of the module `network`."
  type = object({
    private_subnet_ids      = map(string)
    worker_security_group   = string
    pool_security_group_ids = map(string)
  })

  validation {
    condition     = alltrue(flatten([for pool in values(var.pools) : [for zone in coalesce(pool.availability_zones, []) : contains(keys(var.network.private_subnet_ids), zone)]]))
    error_message = "pools: availability_zones names a zone that the network does not have."
  }
}

variable "storage" {
  description = "The object store: outputs of the module `storage`."
  type = object({
    object_store_url = string
    bucket_arn       = string
    objects_arn      = string
    kms_key_arn      = optional(string)
  })
}

variable "redis" {
  description = "Secret with ZEROFLEET_REDIS_URL (an output of the module `queue`), and the key that it is encrypted with, if not that of AWS."
  type = object({
    url_secret_arn = string
    kms_key_arn    = optional(string)
  })
}

variable "log_group" {
  description = "CloudWatch log group for the workers: an output of the module `observability`."
  type = object({
    name = string
    arn  = string
  })
}

variable "shell_access" {
  description = "Let people who may use AWS Systems Manager open a shell on the machines. No port is opened by it."
  type        = bool
  default     = false
}

variable "permissions_boundary" {
  description = "ARN of a policy that bounds what each role made here may do; null has none."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of everything that is made here, machines and volumes included."
  type        = map(string)
  default     = {}
}
