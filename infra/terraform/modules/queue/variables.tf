variable "name" {
  description = "Begins the names of everything that is made here."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,24}[a-z0-9]$", var.name))
    error_message = "name: 2 to 26 lower-case letters, digits and hyphens, a letter first."
  }
}

variable "redis" {
  description = <<-EOT
    The server that keeps jobs, queues and streams.
      engine:                  "memorydb" acknowledges a write when a log in several zones has it: no acknowledged job is lost with a
                               machine. "elasticache" keeps it in memory, and costs less. With two replicas a write is acknowledged once
                               one of them has it; with one, a failover loses the writes of its last moments (README.md says which).
                               Jobs and checkpoints can be made again from the object store (docs/faults.md).
      node_type:               with the prefix "db." for MemoryDB, "cache." for ElastiCache.
      replicas:                nodes in other zones of which one takes over, within seconds with MemoryDB; 1 by default. Without them a
                               new node has to be made, which takes minutes in which the API answers 503 and training goes on.
      snapshot_retention_days: daily snapshots, 0 for none.
      maintenance_window:      UTC.
      final_snapshot:          take one when the server is destroyed.
  EOT
  type = object({
    engine                  = optional(string, "memorydb")
    node_type               = optional(string)
    replicas                = optional(number, 1)
    snapshot_retention_days = optional(number, 7)
    maintenance_window      = optional(string, "sun:03:00-sun:04:00")
    final_snapshot          = optional(bool, true)
  })
  default  = {}
  nullable = false

  validation {
    condition     = contains(["memorydb", "elasticache"], var.redis.engine)
    error_message = "redis.engine: \"memorydb\" or \"elasticache\"."
  }

  validation {
    condition     = var.redis.node_type == null || startswith(coalesce(var.redis.node_type, "-"), var.redis.engine == "memorydb" ? "db." : "cache.")
    error_message = "redis.node_type begins with \"db.\" for MemoryDB and with \"cache.\" for ElastiCache."
  }

  validation {
    condition     = contains(range(6), var.redis.replicas)
    error_message = "redis.replicas: a whole number from 0 to 5."
  }

  validation {
    condition     = var.redis.snapshot_retention_days >= 0 && var.redis.snapshot_retention_days <= 35
    error_message = "redis.snapshot_retention_days: 0 to 35."
  }
}

variable "password_generation" {
  description = "Raise it by one to give Redis a new password; then restart API, autoscaler and workers, which read it at their start. The one before is accepted until it is raised again."
  type        = number
  default     = 1

  validation {
    condition     = var.password_generation >= 1 && floor(var.password_generation) == var.password_generation
    error_message = "password_generation: a whole number from 1 on."
  }
}

variable "secret_recovery_days" {
  description = "How long deleted secrets can be brought back; 0 deletes them at once, so that their names are free for another installation."
  type        = number
  default     = 7

  validation {
    condition     = var.secret_recovery_days == 0 || (var.secret_recovery_days >= 7 && var.secret_recovery_days <= 30)
    error_message = "secret_recovery_days: 0, or 7 to 30."
  }
}

variable "subnet_ids" {
  description = "Private subnets, in two zones at least."
  type        = list(string)
}

variable "security_group_id" {
  description = "Security group that lets the programs in."
  type        = string
}

variable "kms_key_arn" {
  description = "Key for data on disk and for the secret; null uses the keys of AWS."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of everything that is made here."
  type        = map(string)
  default     = {}
}

locals {
  memorydb  = var.redis.engine == "memorydb"
  node_type = coalesce(var.redis.node_type, local.memorydb ? "db.t4g.small" : "cache.t4g.small")
  replicas  = var.redis.replicas
}
