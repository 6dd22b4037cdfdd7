variable "pools" {
  description = <<-EOT
    The pools of workers, by name (the `resources.pool` of jobs). Each has one or several kinds of machines:
      slots:             ranks that a machine of this kind runs at once: its GPUs, or what its cores are divided into.
      instance_types:    types of EC2 that have room for as many; the more there are, the more often Spot has one of them. All of a
                         kind compute the same bits: GPUs of one model, processors of one instruction set, or `settings` pins a path
                         that all of them have (ZEROFLEET_CPU_ISA; docs/exactness.md).
      spot, on_demand, reserved: each is an Auto Scaling group of its own: `max` machines, and what one costs in an hour. The autoscaler
                         takes the cheapest ranks first, and another group when one does not deliver: so on-demand is the fall-back
                         of Spot when both are there, and reserved machines come first.
      reserved:          capacity that is paid for already: `capacity_reservation` is its id (cr-…) or the ARN of a resource group of
                         several; `capacity_block` if it is a Capacity Block.
      accelerator:       "cuda" or "cpu": which image, and which machine image.
      disk_gib:          of the volume with the image and the cache of datasets.
      threads_per_rank:  null divides the cores by the ranks.
      placement_group:   "cluster" puts machines of the group close together, for jobs that run on several; they must share a zone.
                         With EFA they are so anyway.
      efa:               an EFA interface on each network card of types with several (p4d, p5, …).
    And for the pool:
      availability_zones: of those of the network; null uses all.
      drain_seconds:      how long a machine that is to end may take to save and hand back its jobs.
      settings:           further ZEROFLEET_* variables of its workers that are not secret.
  EOT
  type = map(object({
    machines = map(object({
      slots          = number
      instance_types = list(string)
      spot           = optional(object({ max = number, price_per_hour = optional(number, 0) }))
      on_demand      = optional(object({ max = number, price_per_hour = optional(number, 0) }))
      reserved = optional(object({
        max                  = number
        price_per_hour       = optional(number, 0)
        capacity_reservation = string
        capacity_block       = optional(bool, false)
      }))
      accelerator      = optional(string, "cuda")
      disk_gib         = optional(number, 200)
      threads_per_rank = optional(number)
      placement_group  = optional(string)
      efa              = optional(bool, true)
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
    condition     = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) : kind.spot != null || kind.on_demand != null || kind.reserved != null]]))
    error_message = "pools: each kind of machines needs one of `spot`, `on_demand` and `reserved`."
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
    condition     = alltrue(flatten([for pool in values(var.pools) : [for setting in keys(pool.settings) : startswith(setting, "ZEROFLEET_") && !can(regex("(SECRET|CREDENTIALS|API_KEY|REDIS_URL)$", setting))]]))
    error_message = "pools: settings begin with ZEROFLEET_, and none is of a secret. The Redis URL comes from Secrets Manager; a worker needs no other."
  }

  validation {
    condition = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) :
      kind.accelerator != "cuda" || length(setintersection(local.gpus_without_code, [for type in kind.instance_types : split(".", type)[0]])) == 0
    ]]))
    error_message = "pools: there is no code for these GPUs or machines: ${join(", ", local.gpus_without_code)}."
  }

  validation {
    condition = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) :
      kind.accelerator != "cuda" || length(distinct([for type in kind.instance_types : lookup(local.gpu, split(".", type)[0], split(".", type)[0])])) <= 1
    ]]))
    error_message = "pools: the instance_types of a kind have GPUs of one model: others compute other bits. Make it several kinds of the pool."
  }

  validation {
    condition = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) :
      kind.accelerator != "cpu" || lookup(pool.settings, "ZEROFLEET_CPU_ISA", "auto") != "auto" ||
      length(distinct([for type in kind.instance_types : lookup(local.cpu_path, split(".", type)[0], split(".", type)[0])])) <= 1
    ]]))
    error_message = "pools: the instance_types of a kind have processors of one instruction set: others compute other bits (docs/exactness.md). Make it several kinds of the pool, or pin a path that all have: settings = { ZEROFLEET_CPU_ISA = \"avx512\" }."
  }

  validation {
    condition = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) : [for type in kind.instance_types :
      kind.accelerator != "cpu" || lookup(pool.settings, "ZEROFLEET_CPU_ISA", "auto") == "auto" ||
      try(index(local.cpu_paths, local.cpu_path[split(".", type)[0]]) >= index(local.cpu_paths, pool.settings.ZEROFLEET_CPU_ISA), !contains(keys(local.cpu_path), split(".", type)[0]))
    ]]]))
    error_message = "pools: ZEROFLEET_CPU_ISA is one of ${join(", ", local.cpu_paths)}, and one that all instance_types of the pool have."
  }

  validation {
    condition = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) :
      !kind.efa || length(distinct([for type in kind.instance_types : lookup(local.network_cards, type, 0)])) <= 1
    ]]))
    error_message = "pools: the instance_types of a kind have the same number of network cards, or efa = false."
  }

  validation {
    condition = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) :
      !kind.efa || alltrue([for type in kind.instance_types : !contains(keys(local.network_cards), type)]) || length(coalesce(pool.availability_zones, ["a", "b"])) == 1
    ]]))
    error_message = "pools: machines with EFA need exactly one zone in availability_zones, since EFA does not leave it; or efa = false."
  }

  validation {
    condition = alltrue(flatten([for pool in values(var.pools) : [for kind in values(pool.machines) : kind.reserved == null || (
      can(regex("^(cr-[0-9a-f]+|arn:[a-z-]+:resource-groups:[^:]+:[0-9]{12}:group/.+)$", try(kind.reserved.capacity_reservation, ""))) &&
      length(kind.instance_types) == 1 &&
      (startswith(try(kind.reserved.capacity_reservation, ""), "arn:") ? !try(kind.reserved.capacity_block, false) : length(coalesce(pool.availability_zones, ["a", "b"])) == 1)
    )]]))
    error_message = "pools: reserved names a capacity reservation (cr-…, or for On-Demand Capacity Reservations the ARN of a resource group), and the kind has one instance type; a single reservation lies in one zone, which is the only one in availability_zones."
  }
}
