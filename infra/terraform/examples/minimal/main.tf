# The least that works: one pool of CPU machines on Spot, a single small Redis, one API task, one NAT gateway. For
# trying it out, and for a team that can live with some minutes of absence; no job is lost in them.
module "zerofleet" {
  source = "../.."

  name       = "zf-minimal"
  region     = var.region
  account_id = var.account_id

  images = {
    api        = "${var.registry}/api:${var.release}"
    autoscaler = "${var.registry}/autoscaler:${var.release}"
    worker_cpu = "${var.registry}/worker-cpu:${var.release}"
  }

  network = {
    availability_zones = ["${var.region}a", "${var.region}b"]
  }

  storage = {
    bucket = {
      name          = "zf-minimal-${var.account_id}-${var.region}"
      force_destroy = true
    }
    encryption = { mode = "s3" }
  }

  # Lost with its machine, and rebuilt from the bucket by `zerofleet recover`.
  queue = {
    engine         = "elasticache"
    node_type      = "cache.t4g.micro"
    replicas       = 0
    final_snapshot = false
  }

  secrets = { recovery_days = 0 }

  api = {
    client_cidrs = var.client_cidrs
    balancer     = { certificate_arn = var.certificate_arn, deletion_protection = false }
    service      = { cpu = 256, memory_mib = 512, min_tasks = 1, max_tasks = 2 }
  }

  pools = {
    default = {
      machines = {
        cpu = {
          accelerator = "cpu"
          slots       = 4
          # All with AVX-512 BF16: they compute the same bits.
          instance_types = ["c7i.2xlarge", "m7i.2xlarge", "r7i.2xlarge", "c7i-flex.2xlarge"]
          disk_gib       = 50
          spot           = { max = 4, price_per_hour = 0.2 }
        }
      }
    }
  }
}
