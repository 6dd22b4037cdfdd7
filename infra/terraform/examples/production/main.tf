# For a team that trains every day. Redis loses no acknowledged write, the API runs in three zones, and GPU machines are
# on Spot with on-demand as the fall-back. The team's own keys encrypt everything, alarms arrive by mail, and a day and
# a month have a budget each.
module "zerofleet" {
  source = "../.."

  name       = "zf-production"
  region     = var.region
  account_id = var.account_id
  tags       = { environment = "production" }

  images = {
    api         = "${var.registry}/api:${var.release}"
    autoscaler  = "${var.registry}/autoscaler:${var.release}"
    worker_cuda = "${var.registry}/worker-cuda:${var.release}"
  }

  # Made by infra/ami: the driver, and thereby every machine, is the same until this changes.
  machine_images = var.machine_images

  # A key of one's own for secrets, Redis, alarms and logs; objects have another one.
  encryption_key = {}

  # Workers reach AWS by endpoints only; the NAT gateways are for the API's webhooks.
  network = {
    availability_zones  = ["${var.region}a", "${var.region}b", "${var.region}c"]
    nat                 = "per_zone"
    interface_endpoints = ["autoscaling", "ecr.api", "ecr.dkr", "kms", "logs", "monitoring", "secretsmanager", "sts"]
  }

  storage = {
    bucket = {
      name       = "zf-production-${var.account_id}-${var.region}"
      prefix     = "zerofleet"
      versioning = true
    }
  }

  queue = {
    engine    = "memorydb"
    replicas  = 1
    node_type = "db.r7g.large"
  }

  api = {
    client_cidrs = var.client_cidrs
    balancer     = { certificate_arn = var.certificate_arn }
    service      = { cpu = 1024, memory_mib = 2048, min_tasks = 3, max_tasks = 12 }
  }

  pools = {
    default = {
      machines = {
        # GPUs of one generation: a job ends in the same bits wherever it went on.
        l4 = {
          slots          = 1
          instance_types = ["g6.xlarge", "g6.2xlarge", "g6.4xlarge", "g6.8xlarge"]
          spot           = { max = 16, price_per_hour = 0.5 }
          on_demand      = { max = 4, price_per_hour = 1.1 }
        }
        l4-by-four = {
          slots          = 4
          instance_types = ["g6.12xlarge", "g6.24xlarge"]
          spot           = { max = 8, price_per_hour = 2.9 }
          on_demand      = { max = 2, price_per_hour = 6.0 }
          disk_gib       = 400
        }
      }
      scaling = {
        idle_seconds   = 600
        budget_per_day = 800
      }
    }
  }

  autoscaler = { tasks = 2 }

  observability = {
    flow_log = true
    logs     = { retention_days = 90 }
    alarms   = { emails = ["training-oncall@example.com"], monthly_budget_usd = 15000 }
  }
}
