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

variable "pools" {
  description = <<-EOT
    The pools of workers, by name (the `resources.pool` of jobs). Each has one or several kinds of machines:
      slots:             ranks that a machine of this kind runs at once: its GPUs, or what its cores are divided into.
      instance_types:    types of EC2 that have room for as many; the more there are, the more often Spot has one of them. A pool whose
                         jobs must end in the same bits needs GPUs of one generation (docs/exactness.md).
      spot, on_demand:   each is an Auto Scaling group of its own: `max` machines, and what one costs in an hour. The autoscaler takes
                         the cheapest ranks first, and another group when one does not deliver: so on-demand is the fall-back of Spot
                         when both are there.
      accelerator:       "cuda" or "cpu": which image, and which machine image.
      disk_gib:          of the volume with the image and the cache of datasets.
      threads_per_rank:  null divides the cores by the ranks.
      placement_group:   "cluster" puts machines of the group close together, for jobs that run on several; they must share a zone.
    And for the pool:
      availability_zones: of those of the network; null uses all.
      drain_seconds:      how long a machine that is to end may take to save and hand back its jobs.
      settings:           further ZEROFLEET_* variables of its workers.
  EOT
  type = map(object({
    machines = map(object({
      slots            = number
      instance_types   = list(string)
      spot             = optional(object({ max = number, price_per_hour = optional(number, 0) }))
      on_demand        = optional(object({ max = number, price_per_hour = optional(number, 0) }))
      accelerator      = optional(string, "cuda")
      disk_gib         = optional(number, 200)
      threads_per_rank = optional(number)
      placement_group  = optional(string)
    }))
    availability_zones = optional(list(string))
    drain_seconds      = optional(number, 900)
    settings           = optional(map(string), {})
  }))
  nullable = false

  validation {
    condition     = alltrue([for name in keys(var.pools) : can(regex("^[a-z0-9][a-z0-9_-]{0,30}$", name))])
    error_message = "pools: names of lower-case letters, digits, - and _, up to 31."
  }

  validation {
    condition     = alltrue(flatten([for pool in values(var.pools) : [for kind in keys(pool.machines) : can(regex("^[a-z0-9][a-z0-9-]{0,20}$", kind))]]))
    error_message = "pools: names of kinds of machines are of lower-case letters, digits and hyphens, up to 21."
  }

  validation {
    condition     = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) : kind.spot != null || kind.on_demand != null]]))
    error_message = "pools: each kind of machines needs `spot`, `on_demand` or both."
  }

  validation {
    condition     = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) : kind.slots >= 1 && kind.slots <= 1024 && floor(kind.slots) == kind.slots]]))
    error_message = "pools: slots is a whole number from 1 to 1024."
  }

  validation {
    condition     = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) : length(kind.instance_types) > 0 && length(distinct(kind.instance_types)) == length(kind.instance_types)]]))
    error_message = "pools: instance_types names at least one type, and none twice."
  }

  validation {
    condition     = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) : contains(["cuda", "cpu"], kind.accelerator)]]))
    error_message = "pools: accelerator is \"cuda\" or \"cpu\"."
  }

  validation {
    condition     = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) : kind.placement_group == null || (kind.placement_group == "cluster" && length(coalesce(pool.availability_zones, ["a", "b"])) == 1)]]))
    error_message = "pools: placement_group is null or \"cluster\", and that needs exactly one zone in availability_zones."
  }

  validation {
    condition     = alltrue([for pool in values(var.pools) : pool.drain_seconds >= 60 && pool.drain_seconds <= 7200])
    error_message = "pools: drain_seconds is 60 to 7200. AWS leaves two minutes after a Spot notice, whatever stands here."
  }

  validation {
    condition     = alltrue(flatten([for pool in values(var.pools) : [for setting in keys(pool.settings) : startswith(setting, "ZEROFLEET_") && setting != "ZEROFLEET_REDIS_URL"]]))
    error_message = "pools: settings begin with ZEROFLEET_; the Redis URL is a secret and comes from Secrets Manager."
  }
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
  description = "Machine images with Docker, and for \"cuda\" NVIDIA's driver and container toolkit. The defaults are Amazon's ECS-optimized ones (x86-64), the newest at each launch."
  type = object({
    cuda = optional(string, "resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id")
    cpu  = optional(string, "resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id")
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for image in values(var.machine_images) : can(regex("^(ami-[0-9a-f]+|resolve:ssm:.+)$", image))])
    error_message = "machine_images: \"ami-…\", or \"resolve:ssm:\" with the name of a parameter."
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
