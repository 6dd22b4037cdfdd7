variable "name" {
  description = "Begins the names of everything that is made here."
  type        = string
}

variable "region" {
  description = "AWS region of the metrics."
  type        = string
}

variable "account_id" {
  description = "AWS account, for the policy of the topic."
  type        = string
}

variable "logs" {
  description = <<-EOT
    What the programs write, line by line as JSON.
      retention_days:  of the log groups.
      network:         make a group for refused connections as well (`vpc.flow_log` of the module `network`).
  EOT
  type = object({
    retention_days = optional(number, 30)
    network        = optional(bool, false)
  })
  default  = {}
  nullable = false

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.logs.retention_days)
    error_message = "logs.retention_days: one of CloudWatch's, such as 7, 14, 30, 90, 365."
  }
}

variable "alarms" {
  description = <<-EOT
    Recipients and thresholds of alarms.
      emails:               each gets a message to confirm first.
      stuck_minutes:        how long jobs may be short of ranks that they should have before the queue counts as stuck.
      dead_minutes:         how long a pool may owe ranks without a single worker before it counts as dead.
      strikes:              machines in succession that never had a worker.
      failed_saves:         saves that may fail in five minutes.
      monthly_budget_usd:   of everything with the tag of `cost_tag`; null watches no budget.
      cost_tag:             key and value of a cost allocation tag (it has to be activated in the billing console once).
  EOT
  type = object({
    emails             = optional(set(string), [])
    stuck_minutes      = optional(number, 20)
    dead_minutes       = optional(number, 15)
    strikes            = optional(number, 2)
    failed_saves       = optional(number, 3)
    monthly_budget_usd = optional(number)
    cost_tag           = optional(object({ key = string, value = string }))
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for email in var.alarms.emails : can(regex("^[^@[:space:]]+@[^@[:space:]]+$", email))])
    error_message = "alarms.emails: mail addresses."
  }

  validation {
    condition     = alltrue([for minutes in [var.alarms.stuck_minutes, var.alarms.dead_minutes] : minutes >= 5 && minutes % 5 == 0])
    error_message = "alarms: stuck_minutes and dead_minutes are multiples of 5, and at least 5."
  }

  validation {
    condition     = var.alarms.strikes >= 0
    error_message = "alarms.strikes: 0 or more."
  }

  validation {
    condition     = var.alarms.monthly_budget_usd == null || coalesce(var.alarms.monthly_budget_usd, 0) > 0
    error_message = "alarms.monthly_budget_usd: more than 0, or null."
  }
}

variable "kms_key_arn" {
  description = "Key for the logs and the topic of alarms, whose policy allows CloudWatch Logs, CloudWatch and Budgets (modules/key); null uses those of AWS for the logs, and none for the topic."
  type        = string
  default     = null
}

variable "pools" {
  description = "The pools by name, and how many machines each may have before an alarm rings."
  type        = map(object({ max_machines = number }))

  validation {
    condition     = alltrue([for pool in values(var.pools) : pool.max_machines >= 1])
    error_message = "pools: max_machines is at least 1."
  }
}

variable "metric_namespace" {
  description = "Namespace in which the autoscaler publishes its numbers."
  type        = string
}

variable "balancer" {
  description = "How the metrics of the API's load balancer are called: an output of the module `api`."
  type = object({
    arn_suffix              = string
    target_group_arn_suffix = string
  })
}

variable "services" {
  description = "ECS cluster and services of the API and the autoscaler."
  type = object({
    cluster    = string
    api        = string
    autoscaler = string
  })
}

variable "redis" {
  description = "Where CloudWatch keeps the metrics of Redis: the output `metrics` of the module `queue`."
  type = object({
    namespace  = string
    dimensions = map(string)
    memory     = string
  })
}

variable "tags" {
  description = "Tags of everything that is made here."
  type        = map(string)
  default     = {}
}
