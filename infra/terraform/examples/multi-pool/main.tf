# Three pools. Small jobs get CPU machines that always run; others get single GPUs on Spot. Jobs that must not wait get
# whole machines with eight GPUs, on demand, close together in one zone. Only the named team knows the name of that pool
# (see docs/access.md for the limits of that).
module "zerofleet" {
  source = "../.."

  name       = "zf-pools"
  region     = var.region
  account_id = var.account_id

  images = {
    api         = "${var.registry}/api:${var.release}"
    autoscaler  = "${var.registry}/autoscaler:${var.release}"
    worker_cuda = "${var.registry}/worker-cuda:${var.release}"
    worker_cpu  = "${var.registry}/worker-cpu:${var.release}"
  }

  machine_images = var.machine_images

  network = {
    cidr               = "10.60.0.0/16"
    availability_zones = ["${var.region}a", "${var.region}b", "${var.region}c"]
    nat                = "none"
    # Without a NAT gateway there are no webhooks either.
    interface_endpoints = ["autoscaling", "ecr.api", "ecr.dkr", "kms", "logs", "monitoring", "secretsmanager", "sts"]
  }

  storage = {
    bucket = { name = "zf-pools-${var.account_id}-${var.region}" }
  }

  queue = {
    engine   = "elasticache"
    replicas = 1
  }

  api = {
    client_cidrs    = var.client_cidrs
    dataset_buckets = ["corpora-of-example", "team-data/texts"]
    balancer        = { certificate_arn = var.certificate_arn, internal = true }
  }

  pools = {
    cpu = {
      machines = {
        general = {
          accelerator      = "cpu"
          slots            = 2
          threads_per_rank = 4
          instance_types   = ["m7i.4xlarge", "m6i.4xlarge"]
          on_demand        = { max = 10, price_per_hour = 0.97 }
        }
      }
      # The newer machines could do more (AVX-512 BF16), but then they would compute other bits than the older ones.
      settings = { ZEROFLEET_CPU_ISA = "avx512" }
      scaling  = { min_ranks = 2 }
    }

    spot = {
      machines = {
        # A job runs on GPUs of one of these models at a time. Where it goes on on another one, its event says so.
        l4   = { slots = 1, instance_types = ["g6.xlarge", "g6.2xlarge"], spot = { max = 64, price_per_hour = 0.4 } }
        a10g = { slots = 1, instance_types = ["g5.xlarge", "g5.2xlarge"], spot = { max = 64, price_per_hour = 0.5 } }
        l40s = { slots = 1, instance_types = ["g6e.xlarge", "g6e.2xlarge"], spot = { max = 32, price_per_hour = 0.9 } }
      }
      drain_seconds = 300
    }

    large = {
      availability_zones = ["${var.region}a"]
      machines = {
        # An EFA interface on each of 32 network cards, close together, data on NVMe. A reservation, or a Capacity Block
        # of some days, would be `reserved = { max = 4, capacity_reservation = "cr-…", capacity_block = true }`.
        h100 = {
          slots          = 8
          instance_types = ["p5.48xlarge"]
          on_demand      = { max = 4, price_per_hour = 63 }
          disk_gib       = 200
        }
      }
      drain_seconds = 1800
      # Prepared data lies on the machines' own disks, which have room for it.
      settings = { ZEROFLEET_CACHE_BYTES = "10000000000000" }
      scaling  = { idle_seconds = 900, boot_grace_seconds = 900, budget_per_day = 3000 }
    }
  }
}
