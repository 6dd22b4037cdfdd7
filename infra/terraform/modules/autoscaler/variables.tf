variable "name" {
  description = "Begins the names of everything that is made here."
  type        = string
}

variable "region" {
  description = "AWS region of the task and of the machines."
  type        = string
}

variable "image" {
  description = "Image of the autoscaler, by digest: registry/name@sha256:…"
  type        = string

  validation {
    condition     = can(regex("@sha256:[0-9a-f]{64}$|:[A-Za-z0-9_][A-Za-z0-9_.-]*$", var.image)) && !endswith(var.image, ":latest")
    error_message = "image: with a digest (…@sha256:…) or a tag that is not \"latest\"."
  }
}

variable "groups" {
  description = "Auto Scaling groups by any name: the output `groups` of the module `workers`."
  type = map(object({
    name           = string
    pool           = string
    slots          = number
    max            = number
    price_per_hour = number
  }))
}

variable "group_arns" {
  description = "ARNs of these groups: the output `group_arns` of the module `workers`."
  type        = list(string)
}

variable "pools" {
  description = <<-EOT
    What each pool may have, by its name; pools of `groups` that are missing here have the defaults.
      min_ranks:              ranks for which the autoscaler keeps machines without any job.
      max_ranks:              ranks that there may be machines for at once; null is what the groups add up to.
      idle_seconds:           how long a machine may do nothing before it goes.
      move_seconds:           training time that a job loses when it moves to empty a machine, the price of a move; with a large number jobs never move.
      boot_grace_seconds:     how long a machine may take until its worker is known; one that is late twice is replaced.
      launch_timeout_seconds: how long a group may owe a machine before another group is tried.
      gang_seconds:           how long a job that needs several machines keeps those that have come, after the last one.
      on_budget:              pause: running jobs save when the budget is spent and go on the next day; finish: they run to their end.
      budget_per_day:         what the pool's machines may cost in a day (UTC), in the currency of price_per_hour; null is no limit.
  EOT
  type = map(object({
    min_ranks              = optional(number, 0)
    max_ranks              = optional(number)
    idle_seconds           = optional(number, 120)
    move_seconds           = optional(number, 120)
    boot_grace_seconds     = optional(number, 300)
    launch_timeout_seconds = optional(number, 180)
    gang_seconds           = optional(number, 900)
    on_budget              = optional(string, "pause")
    budget_per_day         = optional(number)
  }))
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for pool in keys(var.pools) : contains([for group in values(var.groups) : group.pool], pool)])
    error_message = "pools: names a pool that has no machines."
  }

  validation {
    condition     = alltrue([for pool in values(var.pools) : pool.min_ranks >= 0 && pool.idle_seconds >= 0 && pool.move_seconds >= 0 && pool.boot_grace_seconds > 0 && pool.launch_timeout_seconds > 0 && pool.gang_seconds > 0])
    error_message = "pools: min_ranks, idle_seconds and move_seconds are not negative, the times of the launch and of gangs positive."
  }

  validation {
    condition     = alltrue([for pool in values(var.pools) : contains(["pause", "finish"], pool.on_budget)])
    error_message = "pools: on_budget is pause or finish."
  }

  validation {
    condition     = alltrue([for name, pool in var.pools : alltrue([for group in values(var.groups) : coalesce(pool.budget_per_day, group.price_per_hour) >= group.price_per_hour if group.pool == name])])
    error_message = "pools: budget_per_day is at least what one machine of each of the pool's groups costs in an hour; with less it would never get one."
  }

  validation {
    condition     = alltrue([for name, pool in var.pools : pool.budget_per_day == null || alltrue([for group in values(var.groups) : group.price_per_hour > 0 if group.pool == name])])
    error_message = "pools: a pool with budget_per_day needs a price_per_hour for each of its groups; without one its machines would count as free."
  }
}

variable "service" {
  description = <<-EOT
    Its tasks.
      tasks:            how many run; one decides, the others take over when it is gone. A single one is replaced within a minute or two.
      cpu, memory_mib:  in Fargate's sizes.
      architecture:     "X86_64" or "ARM64", as the image was built.
      interval_seconds: how often it looks.
      metric_namespace: of CloudWatch, for its numbers. It may write to no other.
      settings:         further ZEROFLEET_* variables that are not secret.
  EOT
  type = object({
    tasks            = optional(number, 1)
    cpu              = optional(number, 256)
    memory_mib       = optional(number, 512)
    architecture     = optional(string, "X86_64")
    interval_seconds = optional(number, 5)
    metric_namespace = optional(string, "Zerofleet")
    settings         = optional(map(string), {})
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.service.tasks >= 1 && var.service.tasks <= 3
    error_message = "service.tasks: 1 to 3."
  }

  validation {
    condition     = var.service.interval_seconds >= 1 && var.service.interval_seconds <= 20
    error_message = "service.interval_seconds: 1 to 20."
  }

  validation {
    condition     = !startswith(var.service.metric_namespace, "AWS/") && can(regex("^[A-Za-z0-9._/#-]+$", var.service.metric_namespace))
    error_message = "service.metric_namespace: letters, digits and ._/#-, not beginning with AWS/."
  }

  validation {
    condition     = alltrue([for name in keys(var.service.settings) : startswith(name, "ZEROFLEET_") && !can(regex("(SECRET|CREDENTIALS|API_KEY|REDIS_URL)$", name))])
    error_message = "service.settings: names begin with ZEROFLEET_, and none is of a secret. The Redis URL comes from Secrets Manager; an autoscaler needs no other."
  }
}

variable "cluster_arn" {
  description = "ECS cluster: an output of the module `api`."
  type        = string
}

variable "network" {
  description = "Where it runs: outputs of the module `network`."
  type = object({
    private_subnet_ids = list(string)
    security_group_id  = string
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
  description = "CloudWatch log group for the task: an output of the module `observability`."
  type = object({
    name = string
    arn  = string
  })
}

variable "permissions_boundary" {
  description = "ARN of a policy that bounds what each role made here may do; null has none."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of everything that is made here."
  type        = map(string)
  default     = {}
}
