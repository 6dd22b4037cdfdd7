variable "name" {
  description = "Begins the names of everything that is made here."
  type        = string
}

variable "region" {
  description = "AWS region of the tasks."
  type        = string
}

variable "image" {
  description = "Image of the API, by digest: registry/name@sha256:…"
  type        = string

  validation {
    condition     = can(regex("@sha256:[0-9a-f]{64}$|:[A-Za-z0-9_][A-Za-z0-9_.-]*$", var.image)) && !endswith(var.image, ":latest")
    error_message = "image: with a digest (…@sha256:…) or a tag that is not \"latest\", so that a restart runs what ran before."
  }
}

variable "service" {
  description = <<-EOT
    The tasks behind the load balancer.
      cpu, memory_mib:    of a task, in Fargate's sizes.
      architecture:       "X86_64" or "ARM64", as the image was built.
      min_tasks, max_tasks: bounds of their number; one task serves some hundred requests in a second.
      target_cpu_percent: tasks are added above it.
      target_requests:    requests in a minute and task above which tasks are added.
      port:               of the container.
      drain_seconds:      how long a task that is ending still serves, so that the load balancer sees it first.
      settings:           further ZEROFLEET_* variables that are not secret (docs/configuration.md).
      secrets:            further ZEROFLEET_* variables that are: each the ARN of a secret in Secrets Manager, of which tasks get the value
                          when they start; "arn:…:secret:name-AbCdEf:key::" is one key of a JSON secret. They are encrypted with the key of
                          AWS, or with secrets.kms_key_arn.
  EOT
  type = object({
    cpu                = optional(number, 512)
    memory_mib         = optional(number, 1024)
    architecture       = optional(string, "X86_64")
    min_tasks          = optional(number, 2)
    max_tasks          = optional(number, 8)
    target_cpu_percent = optional(number, 60)
    target_requests    = optional(number, 6000)
    port               = optional(number, 8080)
    drain_seconds      = optional(number, 30)
    settings           = optional(map(string), {})
    secrets            = optional(map(string), {})
  })
  default  = {}
  nullable = false

  validation {
    condition     = var.service.min_tasks >= 1 && var.service.max_tasks >= var.service.min_tasks
    error_message = "service: min_tasks is at least 1 and max_tasks no less than that."
  }

  validation {
    condition     = contains(["X86_64", "ARM64"], var.service.architecture)
    error_message = "service.architecture: \"X86_64\" or \"ARM64\"."
  }

  validation {
    condition     = var.service.drain_seconds >= 15 && var.service.drain_seconds <= 90
    error_message = "service.drain_seconds: 15 to 90. The load balancer needs two health checks of 5 s to notice; Fargate kills a task after 120 s."
  }

  validation {
    condition     = alltrue([for name in keys(var.service.settings) : startswith(name, "ZEROFLEET_") && !can(regex("(SECRET|CREDENTIALS|API_KEY|REDIS_URL)$", name))])
    error_message = "service.settings: names begin with ZEROFLEET_. A name that ends with SECRET, CREDENTIALS, API_KEY or REDIS_URL belongs to service.secrets; the Redis URL and the first API key are there already."
  }

  validation {
    condition = alltrue([
      for name, arn in var.service.secrets :
      startswith(name, "ZEROFLEET_") && !contains(["ZEROFLEET_REDIS_URL", "ZEROFLEET_API_KEY"], name) && !contains(keys(var.service.settings), name) && can(regex("^arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[^:*]+(:[^:]*:[^:]*:[^:]*)?$", arn))
    ])
    error_message = "service.secrets: names begin with ZEROFLEET_ and are not among service.settings, each with the ARN of a secret of Secrets Manager. The Redis URL and the first API key come by themselves."
  }
}

variable "balancer" {
  description = <<-EOT
    The load balancer.
      certificate_arn:     of ACM, for the name under which clients reach the API.
      tls_policy:          what TLS it speaks; the default is 1.2 and 1.3.
      internal:            no address on the internet.
      idle_seconds:        after which a silent connection is cut. Streams say something every 15 s. The API keeps unused
                           connections longer, for 130 s.
      deletion_protection: refuse `terraform destroy` until it is switched off.
      access_log_bucket:   receives a line for each request; null writes none.
      web_acl:             a web ACL of AWS WAF in front; null has none.
  EOT
  type = object({
    certificate_arn     = string
    tls_policy          = optional(string, "ELBSecurityPolicy-TLS13-1-2-2021-06")
    internal            = optional(bool, false)
    idle_seconds        = optional(number, 120)
    deletion_protection = optional(bool, true)
    access_log_bucket   = optional(string)
    web_acl             = optional(object({ arn = string }))
  })
  nullable = false

  validation {
    condition     = can(regex("^ELBSecurityPolicy-(TLS13-1-[23]|FS-1-2|TLS-1-2)", var.balancer.tls_policy))
    error_message = "balancer.tls_policy: one that starts at TLS 1.2."
  }

  validation {
    condition     = var.balancer.idle_seconds >= 60 && var.balancer.idle_seconds <= 120
    error_message = "balancer.idle_seconds: 60 to 120. Streams are silent for up to 15 s, uploads may pause for longer. The API closes connections after 120 s of silence."
  }
}

variable "network" {
  description = "Where it runs: outputs of the module `network`."
  type = object({
    vpc_id             = string
    public_subnet_ids  = list(string)
    private_subnet_ids = list(string)
    security_group_ids = object({
      load_balancer = string
      api           = string
    })
  })
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

variable "dataset_buckets" {
  description = "Buckets, or folders of them, such as \"my-data\" or \"other/texts\", from which datasets may be registered by URI: the API may read them."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for bucket in var.dataset_buckets : can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._=/-]+)?$", bucket))])
    error_message = "dataset_buckets: names of buckets, perhaps with a folder: \"my-data\", \"other/texts\"."
  }
}

variable "redis_url_secret_arn" {
  description = "Secret with ZEROFLEET_REDIS_URL: an output of the module `queue`."
  type        = string
}

variable "secrets" {
  description = <<-EOT
    Secrets of the API.
      kms_key_arn:   encrypts them; null uses the key of AWS. Give it as well when the Redis secret is encrypted with it.
      recovery_days: how long deleted ones can be brought back; 0 deletes them at once.
      key_generation: raise it for a new first API key; then restart the tasks and revoke the old one (docs/access.md).
  EOT
  type = object({
    kms_key_arn    = optional(string)
    recovery_days  = optional(number, 7)
    key_generation = optional(number, 1)
  })
  default  = {}
  nullable = false
}

variable "log_group" {
  description = "CloudWatch log group for the tasks: an output of the module `observability`."
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
