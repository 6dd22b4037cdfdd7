mock_provider "aws" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  name       = "zf-test"
  region     = "eu-central-1"
  account_id = "123456789012"
  images     = { cuda = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/zerofleet/worker-cuda:0.1.0", cpu = "registry.example.com/worker-cpu:0.1.0" }
  log_group  = { name = "/zf-test/workers", arn = "arn:aws:logs:eu-central-1:123456789012:log-group:/zf-test/workers" }
  redis      = { url_secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:zf-test/redis-url-AbCdEf" }

  pools = {
    large = {
      availability_zones = ["eu-central-1a"]
      machines = {
        a100 = { slots = 8, instance_types = ["p4d.24xlarge"], on_demand = { max = 4, price_per_hour = 32 } }
        h100 = {
          slots          = 8
          instance_types = ["p5.48xlarge"]
          spot           = { max = 4, price_per_hour = 30 }
          reserved       = { max = 2, price_per_hour = 1, capacity_reservation = "cr-0123456789abcdef0", capacity_block = true }
        }
        h200 = { slots = 8, instance_types = ["p5e.48xlarge"], reserved = { max = 2, capacity_reservation = "cr-0123456789abcdef1" } }
        h200-shared = {
          slots          = 8
          instance_types = ["p5en.48xlarge"]
          reserved       = { max = 2, capacity_reservation = "arn:aws:resource-groups:eu-central-1:123456789012:group/h200" }
        }
        slow = { slots = 8, instance_types = ["p5.48xlarge"], on_demand = { max = 1 }, efa = false }
      }
    }
    small = {
      machines = { l4 = { slots = 1, instance_types = ["g6.xlarge", "gr6.4xlarge"], spot = { max = 4 } } }
    }
  }

  network = {
    private_subnet_ids      = { "eu-central-1a" = "subnet-a", "eu-central-1b" = "subnet-b" }
    worker_security_group   = "sg-worker"
    pool_security_group_ids = { large = "sg-pool-large", small = "sg-pool-small" }
  }

  storage = {
    object_store_url = "s3://zf-test-bucket"
    bucket_arn       = "arn:aws:s3:::zf-test-bucket"
    objects_arn      = "arn:aws:s3:::zf-test-bucket/"
  }
}

run "each_network_card_has_an_efa_interface" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition = { for name, template in aws_launch_template.this : name => length(template.network_interfaces) } == {
      large-a100                 = 4
      large-h100                 = 32
      large-h100-reserved        = 32
      large-h200-reserved        = 32
      large-h200-shared-reserved = 16
      large-slow                 = 1
      small-l4                   = 1
    }
    error_message = "Not one interface on each network card."
  }

  assert {
    condition = alltrue(flatten([for name in ["large-a100", "large-h100", "large-h100-reserved", "large-h200-shared-reserved"] : [
      for index, interface in aws_launch_template.this[name].network_interfaces :
      interface.network_card_index == index && interface.device_index == (index == 0 ? 0 : 1) && interface.interface_type == (index == 0 ? "efa" : "efa-only") &&
      interface.security_groups == toset(["sg-worker", "sg-pool-large"])
    ]]))
    error_message = "The first card has no addresses, or another one has."
  }

  # EC2 refuses a word on public addresses beside several interfaces.
  assert {
    condition     = alltrue([for interface in aws_launch_template.this["large-h100"].network_interfaces : interface.associate_public_ip_address == null]) && aws_launch_template.this["small-l4"].network_interfaces[0].associate_public_ip_address == "false"
    error_message = "EC2 refuses the template, or gives a public address."
  }
}

run "efa_may_do_everything_inside_of_its_pool" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition = alltrue([for rules in [aws_vpc_security_group_ingress_rule.efa, aws_vpc_security_group_egress_rule.efa] :
      [for pool, rule in rules : "${pool} ${rule.security_group_id} ${rule.referenced_security_group_id} ${rule.ip_protocol}"] == ["large sg-pool-large sg-pool-large -1"]
    ])
    error_message = "EFA does not get through, or more than the pool does."
  }
}

run "machines_with_efa_are_close_together" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition     = keys(aws_placement_group.this) == ["large-a100", "large-h100", "large-h200-reserved", "large-h200-shared-reserved"] && alltrue([for group in values(aws_placement_group.this) : group.strategy == "cluster"])
    error_message = "Machines are far from each other, or a Capacity Block is in a placement group."
  }

  assert {
    condition     = aws_launch_template.this["large-a100"].placement[0].group_name == aws_placement_group.this["large-a100"].name && length(aws_launch_template.this["large-h100-reserved"].placement) == 0 && length(aws_launch_template.this["small-l4"].placement) == 0
    error_message = "The launch template does not name its placement group."
  }
}

run "reserved_machines_come_from_their_reservation" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition     = aws_launch_template.this["large-h100-reserved"].instance_market_options[0].market_type == "capacity-block" && aws_launch_template.this["large-h100-reserved"].capacity_reservation_specification[0].capacity_reservation_target[0].capacity_reservation_id == "cr-0123456789abcdef0"
    error_message = "The Capacity Block is not used."
  }

  assert {
    condition     = length(aws_launch_template.this["large-h200-reserved"].instance_market_options) == 0 && aws_launch_template.this["large-h200-reserved"].capacity_reservation_specification[0].capacity_reservation_target[0].capacity_reservation_id == "cr-0123456789abcdef1" && aws_launch_template.this["large-h200-shared-reserved"].capacity_reservation_specification[0].capacity_reservation_target[0].capacity_reservation_resource_group_arn == "arn:aws:resource-groups:eu-central-1:123456789012:group/h200"
    error_message = "The On-Demand Capacity Reservation is not used."
  }

  # Auto Scaling has no Capacity Blocks in groups of several types.
  assert {
    condition     = length(aws_autoscaling_group.this["large-h100-reserved"].mixed_instances_policy) == 0 && aws_autoscaling_group.this["large-h100-reserved"].launch_template[0].id == aws_launch_template.this["large-h100-reserved"].id && aws_autoscaling_group.this["large-h100-reserved"].max_size == 2 && !aws_autoscaling_group.this["large-h100-reserved"].capacity_rebalance
    error_message = "The group can't use a Capacity Block."
  }

  assert {
    condition     = length(aws_launch_template.this["large-h100"].capacity_reservation_specification) == 0 && length(aws_autoscaling_group.this["large-h100-spot"].mixed_instances_policy) == 1
    error_message = "Spot machines use up the reservation."
  }

  assert {
    condition     = output.groups["large-h100-reserved"].price_per_hour == 1 && output.groups["large-h100-spot"].price_per_hour == 30 && output.environment["large-h100-reserved"].ZEROFLEET_PRICE_PER_RANK_HOUR == "3.75"
    error_message = "The autoscaler does not take the reserved machines first, or a job's price depends on the machine."
  }
}

run "a_worker_starts_with_the_pinned_driver_only" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    machine_images = { cuda = "ami-0123456789abcdef0", driver = "580.95.05" }
  }

  assert {
    condition     = aws_launch_template.this["small-l4"].image_id == "ami-0123456789abcdef0" && strcontains(base64decode(aws_launch_template.this["small-l4"].user_data), "$driver != '580.95.05'")
    error_message = "Machines have any driver."
  }
}

run "logs_block_no_worker" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition     = alltrue([for template in values(aws_launch_template.this) : strcontains(base64decode(template.user_data), "--log-opt mode=non-blocking --log-opt max-buffer-size=")])
    error_message = "A worker waits for CloudWatch."
  }
}

run "roles_have_the_permissions_boundary" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    permissions_boundary = "arn:aws:iam::123456789012:policy/boundary"
  }

  assert {
    condition     = aws_iam_role.worker.permissions_boundary == var.permissions_boundary && aws_iam_role.attempt.permissions_boundary == var.permissions_boundary
    error_message = "A role without the boundary."
  }
}

run "gpus_without_code_are_refused" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    pools = { small = { machines = { t4 = { slots = 1, instance_types = ["g4dn.xlarge"], spot = { max = 4 } } } } }
  }

  expect_failures = [var.pools]
}

run "different_gpus_in_a_group_are_refused" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    pools = { small = { machines = { any = { slots = 1, instance_types = ["g6.xlarge", "g5.xlarge"], spot = { max = 4 } } } } }
  }

  expect_failures = [var.pools]
}

run "different_instruction_sets_in_a_group_are_refused" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    pools = { small = { machines = { any = { slots = 4, accelerator = "cpu", instance_types = ["c7i.2xlarge", "c6i.2xlarge"], spot = { max = 4 } } } } }
  }

  expect_failures = [var.pools]
}

run "an_unknown_family_beside_a_known_one_is_refused" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    pools = { small = { machines = { any = { slots = 4, accelerator = "cpu", instance_types = ["c7i.2xlarge", "c99z.2xlarge"], spot = { max = 4 } } } } }
  }

  expect_failures = [var.pools]
}

run "a_pinned_instruction_set_that_a_machine_lacks_is_refused" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    pools = {
      small = {
        machines = { any = { slots = 4, accelerator = "cpu", instance_types = ["c7i.2xlarge", "c6i.2xlarge"], spot = { max = 4 } } }
        settings = { ZEROFLEET_CPU_ISA = "avx512bf16" }
      }
    }
  }

  expect_failures = [var.pools]
}

run "different_machines_with_a_pinned_instruction_set_are_alike" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    pools = {
      small = {
        machines = {
          any   = { slots = 4, accelerator = "cpu", instance_types = ["c7i.2xlarge", "c6i.2xlarge", "c7a.2xlarge", "c5.2xlarge", "c99z.2xlarge"], spot = { max = 4 } }
          newer = { slots = 4, accelerator = "cpu", instance_types = ["c7i.2xlarge", "m7a.2xlarge"], on_demand = { max = 4 } }
        }
        settings = { ZEROFLEET_CPU_ISA = "avx512" }
      }
    }
  }

  assert {
    condition     = output.environment["small-any"].ZEROFLEET_CPU_ISA == "avx512" && length(aws_autoscaling_group.this["small-any-spot"].mixed_instances_policy[0].launch_template[0].override) == 5
    error_message = "The path is not pinned."
  }
}

run "efa_over_several_zones_is_refused" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    pools = { large = { machines = { h100 = { slots = 8, instance_types = ["p5.48xlarge"], on_demand = { max = 4 } } } } }
  }

  expect_failures = [var.pools]
}

run "a_reservation_without_its_zone_or_with_several_types_is_refused" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    pools = {
      small = {
        machines = { l4 = { slots = 1, instance_types = ["g6.xlarge", "g6.2xlarge"], reserved = { max = 2, capacity_reservation = "cr-0123456789abcdef0" } } }
      }
    }
  }

  expect_failures = [var.pools]
}

run "a_capacity_block_has_no_resource_group" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    pools = {
      large = {
        availability_zones = ["eu-central-1a"]
        machines = {
          h100 = {
            slots          = 8
            instance_types = ["p5.48xlarge"]
            reserved       = { max = 2, capacity_reservation = "arn:aws:resource-groups:eu-central-1:123456789012:group/h100", capacity_block = true }
          }
        }
      }
    }
  }

  expect_failures = [var.pools]
}

run "a_driver_that_is_no_version_is_refused" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    machine_images = { driver = "newest" }
  }

  expect_failures = [var.machine_images]
}
