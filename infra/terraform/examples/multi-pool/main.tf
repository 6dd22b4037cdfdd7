# Pools for different work: CPU machines that are always there for small jobs, single GPUs on Spot, and whole machines with eight
# GPUs, close together in one zone, on demand, for jobs that must not wait. Only the named team knows the name of the last pool
# (docs/access.md says what that is worth).
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
      scaling = { min_ranks = 2 }
    }

    spot = {
      machines = {
        # Machines of different generations, for jobs that need no equal bits.
        one-gpu = {
          slots          = 1
          instance_types = ["g6.xlarge", "g5.xlarge", "g6e.xlarge", "g4dn.xlarge"]
          spot           = { max = 64, price_per_hour = 0.5 }
        }
      }
      drain_seconds = 300
    }

    large = {
      availability_zones = ["${var.region}a"]
      machines = {
        h100 = {
          slots           = 8
          instance_types  = ["p5.48xlarge"]
          on_demand       = { max = 4, price_per_hour = 63 }
          disk_gib        = 1000
          placement_group = "cluster"
        }
      }
      drain_seconds = 1800
      scaling       = { idle_seconds = 900, boot_grace_seconds = 900, budget_per_day = 3000 }
    }
  }
}
