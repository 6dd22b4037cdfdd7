variable "name" {
  description = "Name of this installation; begins the names of what is made."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,18}[a-z0-9]$", var.name)) && !strcontains(var.name, "--")
    error_message = "name: 2 to 20 lower-case letters, digits and single hyphens, a letter first."
  }
}

variable "region" {
  description = "AWS region: the one of the provider."
  type        = string

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "region: such as \"eu-central-1\"."
  }
}

variable "account_id" {
  description = "AWS account. Give it to the provider as allowed_account_ids as well, so that nothing is made in another one."
  type        = string

  validation {
    condition     = can(regex("^[0-9]{12}$", var.account_id))
    error_message = "account_id: 12 digits."
  }
}

variable "tags" {
  description = "Tags of everything, beside \"zerofleet:installation\"."
  type        = map(string)
  default     = {}
}

variable "images" {
  description = "Images, each with a digest (registry/name@sha256:…) or a tag that is not \"latest\". Of the workers', those that the pools need."
  type = object({
    api         = string
    autoscaler  = string
    worker_cuda = optional(string)
    worker_cpu  = optional(string)
  })

  validation {
    condition = length(coalesce(var.network.interface_endpoints, [])) == 0 || alltrue([
      for image in [var.images.autoscaler, var.images.worker_cuda, var.images.worker_cpu] : image == null || strcontains(coalesce(image, "-"), ".dkr.ecr.${var.region}.")
    ])
    error_message = "images: with network.interface_endpoints, autoscaler and workers reach no registry but ECR of their region."
  }
}

variable "machine_images" {
  description = "Machine images of the workers; what is left out is Amazon's (modules/workers)."
  type = object({
    cuda   = optional(string)
    cpu    = optional(string)
    driver = optional(string)
  })
  default  = {}
  nullable = false
}

variable "network" {
  description = "The private network: see `vpc` of modules/network."
  type = object({
    cidr                = optional(string)
    availability_zones  = optional(list(string))
    nat                 = optional(string)
    interface_endpoints = optional(set(string))
    existing = optional(object({
      id                 = string
      private_subnet_ids = map(string)
      public_subnet_ids  = optional(map(string))
      aws_cidrs          = optional(list(string))
      s3_prefix_list_id  = optional(string)
    }))
  })
}

variable "permissions_boundary" {
  description = "ARN of a policy that bounds what each role may do; null has none."
  type        = string
  default     = null

  validation {
    condition     = var.permissions_boundary == null || can(regex("^arn:[a-z-]+:iam::([0-9]{12}|aws):policy/.+$", var.permissions_boundary))
    error_message = "permissions_boundary: the ARN of an IAM policy, or null."
  }
}

variable "encryption_key" {
  description = <<-EOT
    Key for secrets, Redis' data on disk, alarms and logs (objects have `storage.encryption`): {} makes one, `arn` is one that is there, whose
    policy must allow what modules/key allows; null uses those of AWS, and none for alarms.
  EOT
  type        = object({ arn = optional(string) })
  default     = null
}

variable "storage" {
  description = "The object store: see `bucket` and `encryption` of modules/storage."
  type = object({
    bucket = object({
      name              = string
      prefix            = optional(string)
      versioning        = optional(bool)
      noncurrent_days   = optional(number)
      stale_upload_days = optional(number)
      force_destroy     = optional(bool)
      access_log_bucket = optional(string)
    })
    encryption = optional(object({
      mode = optional(string)
      key  = optional(object({ arn = string }))
    }), {})
  })
}

variable "queue" {
  description = "Redis: see `redis` of modules/queue."
  type = object({
    engine                  = optional(string)
    node_type               = optional(string)
    replicas                = optional(number)
    snapshot_retention_days = optional(number)
    maintenance_window      = optional(string)
    final_snapshot          = optional(bool)
  })
  default  = {}
  nullable = false
}

variable "secrets" {
  description = <<-EOT
    Secrets Manager.
      recovery_days:             how long deleted secrets can be brought back; 0 deletes them at once.
      api_key_generation:        raise it for a new first API key.
      redis_password_generation: raise it for a new password of Redis.
  EOT
  type = object({
    recovery_days             = optional(number, 7)
    api_key_generation        = optional(number, 1)
    redis_password_generation = optional(number, 1)
  })
  default  = {}
  nullable = false
}

variable "api" {
  description = "The API: `client_cidrs` may reach it; the rest is as in modules/api."
  type = object({
    client_cidrs    = list(string)
    dataset_buckets = optional(list(string), [])
    balancer = object({
      certificate_arn     = string
      tls_policy          = optional(string)
      internal            = optional(bool)
      idle_seconds        = optional(number)
      deletion_protection = optional(bool)
      access_log_bucket   = optional(string)
      web_acl             = optional(object({ arn = string }))
    })
    service = optional(object({
      cpu                = optional(number)
      memory_mib         = optional(number)
      architecture       = optional(string)
      min_tasks          = optional(number)
      max_tasks          = optional(number)
      target_cpu_percent = optional(number)
      target_requests    = optional(number)
      port               = optional(number)
      drain_seconds      = optional(number)
      settings           = optional(map(string))
      secrets            = optional(map(string))
    }), {})
  })
}

variable "pools" {
  description = "The pools of workers: see `pools` of modules/workers; `scaling` is as `pools` of modules/autoscaler."
  type = map(object({
    machines = map(object({
      slots          = number
      instance_types = list(string)
      spot           = optional(object({ max = number, price_per_hour = optional(number) }))
      on_demand      = optional(object({ max = number, price_per_hour = optional(number) }))
      reserved = optional(object({
        max                  = number
        price_per_hour       = optional(number)
        capacity_reservation = string
        capacity_block       = optional(bool)
      }))
      accelerator      = optional(string)
      disk_gib         = optional(number)
      threads_per_rank = optional(number)
      placement_group  = optional(string)
      efa              = optional(bool)
    }))
    availability_zones = optional(list(string))
    drain_seconds      = optional(number)
    settings           = optional(map(string))
    scaling = optional(object({
      min_ranks              = optional(number)
      max_ranks              = optional(number)
      idle_seconds           = optional(number)
      move_seconds           = optional(number)
      boot_grace_seconds     = optional(number)
      launch_timeout_seconds = optional(number)
      gang_seconds           = optional(number)
      on_budget              = optional(string)
      budget_per_day         = optional(number)
    }), {})
  }))

  validation {
    condition     = length(var.pools) > 0
    error_message = "pools: at least one."
  }
}

variable "autoscaler" {
  description = "The autoscaler: see `service` of modules/autoscaler."
  type = object({
    tasks            = optional(number)
    cpu              = optional(number)
    memory_mib       = optional(number)
    architecture     = optional(string)
    interval_seconds = optional(number)
    metric_namespace = optional(string)
    settings         = optional(map(string))
  })
  default  = {}
  nullable = false
}

variable "observability" {
  description = "Logs, alarms and the budget: see modules/observability. `flow_log` keeps refused connections; `max_machines` is by pool, and without it what the pool's groups may have together."
  type = object({
    flow_log = optional(bool, false)
    logs = optional(object({
      retention_days = optional(number)
    }), {})
    alarms = optional(object({
      emails             = optional(set(string))
      stuck_minutes      = optional(number)
      dead_minutes       = optional(number)
      strikes            = optional(number)
      max_machines       = optional(map(number), {})
      failed_saves       = optional(number)
      monthly_budget_usd = optional(number)
    }), {})
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for pool in keys(var.observability.alarms.max_machines) : contains(keys(var.pools), pool)])
    error_message = "observability.alarms.max_machines: names a pool that there is not."
  }
}

variable "shell_access" {
  description = "Let people who may use AWS Systems Manager open a shell on the workers. No port is opened by it."
  type        = bool
  default     = false
}
