mock_provider "aws" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  name       = "zf-test"
  region     = "eu-central-1"
  account_id = "123456789012"
  images     = { api = "registry.example.com/api:0.1.0", autoscaler = "registry.example.com/autoscaler:0.1.0", worker_cuda = "registry.example.com/worker-cuda:0.1.0" }
  network    = { availability_zones = ["eu-central-1a", "eu-central-1b"] }
  storage    = { bucket = { name = "zf-test-bucket" } }

  api = {
    client_cidrs = ["203.0.113.0/24"]
    balancer     = { certificate_arn = "arn:aws:acm:eu-central-1:123456789012:certificate/0f0e0d0c-1111-2222-3333-444455556666" }
  }

  pools = {
    default = {
      machines = { l4 = { slots = 1, instance_types = ["g6.xlarge", "g6.2xlarge"], spot = { max = 8, price_per_hour = 0.5 }, on_demand = { max = 2, price_per_hour = 1 } } }
      scaling  = { budget_per_day = 50 }
    }
  }
}

run "defaults_are_those_of_production" {
  command = plan

  assert {
    condition     = output.groups["default-l4-spot"].name == "zf-test-default-l4-spot" && length(output.groups) == 2
    error_message = "The groups are not those of the pools."
  }

  assert {
    condition     = startswith(output.redis.host, "clustercfg.") && output.object_store_url == "s3://zf-test-bucket"
    error_message = "Redis is not MemoryDB, or the object store is somewhere else."
  }
}

run "all_programs_use_the_same_object_store_and_the_autoscaler_the_groups_of_the_workers" {
  command = plan

  assert {
    condition     = output.environment.api.ZEROFLEET_OBJECT_STORE == output.object_store_url && alltrue([for worker in values(output.environment.workers) : worker.ZEROFLEET_OBJECT_STORE == output.object_store_url])
    error_message = "The programs look for objects in different places."
  }

  assert {
    condition     = toset(flatten([for pool in jsondecode(output.environment.autoscaler.ZEROFLEET_AUTOSCALE_POOLS) : [for type in pool.types : type.group]])) == toset([for group in values(output.groups) : group.name])
    error_message = "The autoscaler scales other groups than there are."
  }

  assert {
    condition     = jsondecode(output.environment.autoscaler.ZEROFLEET_AUTOSCALE_POOLS)[0].budget_per_day == 50
    error_message = "The budget of a pool is not configured."
  }
}

run "one_key_for_secrets_redis_alarms_and_logs_where_it_is_asked_for" {
  command = plan

  variables {
    encryption_key = {}
  }

  assert {
    condition     = length(module.key) == 1 && local.key_arn == module.key[0].arn && local.redis.kms_key_arn == local.key_arn
    error_message = "No key is made, or it is not used."
  }
}

run "a_key_that_is_there_is_used" {
  command = plan

  variables {
    encryption_key = { arn = "arn:aws:kms:eu-central-1:123456789012:key/own" }
  }

  assert {
    condition     = length(module.key) == 0 && local.key_arn == "arn:aws:kms:eu-central-1:123456789012:key/own"
    error_message = "Another key is made."
  }
}

run "an_alarm_rings_above_what_the_groups_may_have_together" {
  command = plan

  assert {
    condition     = local.max_machines == { default = 10 }
    error_message = "The limit is another one."
  }
}

run "an_existing_vpc_is_enough" {
  command = plan

  variables {
    permissions_boundary = "arn:aws:iam::123456789012:policy/boundary"
    network = {
      existing = {
        id                 = "vpc-own"
        private_subnet_ids = { "eu-central-1a" = "subnet-own-a", "eu-central-1b" = "subnet-own-b" }
        public_subnet_ids  = { "eu-central-1a" = "subnet-public-a", "eu-central-1b" = "subnet-public-b" }
      }
    }
  }

  assert {
    condition     = output.network.vpc_id == "vpc-own" && output.network.private_subnet_ids == tomap({ "eu-central-1a" = "subnet-own-a", "eu-central-1b" = "subnet-own-b" })
    error_message = "The programs are in another network."
  }
}

run "images_that_can_not_be_reached_by_endpoints_are_refused" {
  command = plan

  variables {
    network = { availability_zones = ["eu-central-1a", "eu-central-1b"], interface_endpoints = ["autoscaling", "ecr.api", "ecr.dkr", "kms", "logs", "monitoring", "secretsmanager", "sts"] }
  }

  expect_failures = [var.images]
}

run "bad_boundaries_and_unknown_pools_are_refused" {
  command = plan

  variables {
    permissions_boundary = "boundary"
    observability        = { alarms = { max_machines = { unknown = 3 } } }
  }

  expect_failures = [var.permissions_boundary, var.observability]
}

run "bad_names_and_accounts_are_refused" {
  command = plan

  variables {
    name       = "Zero Fleet"
    account_id = "12"
    region     = "frankfurt"
  }

  expect_failures = [var.name, var.account_id, var.region]
}
