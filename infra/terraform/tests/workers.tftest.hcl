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
    gpu = {
      machines = {
        l4 = {
          slots          = 1
          instance_types = ["g6.xlarge", "g6.2xlarge", "g6.4xlarge"]
          spot           = { max = 16, price_per_hour = 0.5 }
          on_demand      = { max = 4, price_per_hour = 1.25 }
        }
      }
      drain_seconds = 600
    }
    cpu = {
      machines = {
        general = { slots = 4, accelerator = "cpu", instance_types = ["m7i.2xlarge"], on_demand = { max = 3 } }
      }
      availability_zones = ["eu-central-1b"]
      settings           = { ZEROFLEET_LOG_LEVEL = "debug" }
    }
  }

  network = {
    private_subnet_ids      = { "eu-central-1a" = "subnet-a", "eu-central-1b" = "subnet-b" }
    worker_security_group   = "sg-worker"
    pool_security_group_ids = { gpu = "sg-pool-gpu", cpu = "sg-pool-cpu" }
  }

  storage = {
    object_store_url = "s3://zf-test-bucket/fleet"
    bucket_arn       = "arn:aws:s3:::zf-test-bucket"
    objects_arn      = "arn:aws:s3:::zf-test-bucket/fleet/"
    kms_key_arn      = "arn:aws:kms:eu-central-1:123456789012:key/objects"
  }
}

run "machines_speak_imdsv2_with_hop_limit_1" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition     = length(aws_launch_template.this) == 2 && alltrue([for template in values(aws_launch_template.this) : template.metadata_options[0].http_tokens == "required" && template.metadata_options[0].http_put_response_hop_limit == 1])
    error_message = "The metadata service answers version 1, or a process behind another hop."
  }
}

run "machines_have_encrypted_disks_and_no_public_address" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition     = alltrue([for template in values(aws_launch_template.this) : template.block_device_mappings[0].ebs[0].encrypted == "true"])
    error_message = "A disk is not encrypted."
  }

  assert {
    condition     = alltrue([for template in values(aws_launch_template.this) : template.network_interfaces[0].associate_public_ip_address == "false"])
    error_message = "A machine has a public address."
  }

  assert {
    condition     = aws_launch_template.this["gpu-l4"].network_interfaces[0].security_groups == toset(["sg-worker", "sg-pool-gpu"]) && aws_launch_template.this["cpu-general"].network_interfaces[0].security_groups == toset(["sg-worker", "sg-pool-cpu"])
    error_message = "A machine is in the world of another pool."
  }
}

run "pools_start_and_end_at_zero_machines" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition     = alltrue([for group in values(aws_autoscaling_group.this) : group.min_size == 0 && group.desired_capacity == 0])
    error_message = "A pool keeps machines that no configuration requests."
  }

  assert {
    condition     = aws_autoscaling_group.this["gpu-l4-spot"].max_size == 16 && aws_autoscaling_group.this["gpu-l4-on-demand"].max_size == 4
    error_message = "A pool grows beyond what it may."
  }
}

run "no_machine_with_a_job_is_ended_by_aws" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition     = alltrue([for group in values(aws_autoscaling_group.this) : group.protect_from_scale_in && contains(group.suspended_processes, "AZRebalance") && coalesce(group.max_instance_lifetime, 0) == 0])
    error_message = "AWS may end a machine without being asked."
  }
}

run "machines_that_end_wait_until_their_jobs_are_handed_back" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition = alltrue([
      for name in keys(aws_autoscaling_group.this) :
      aws_autoscaling_lifecycle_hook.drain[name].lifecycle_transition == "autoscaling:EC2_INSTANCE_TERMINATING" &&
      aws_autoscaling_lifecycle_hook.drain[name].default_result == "CONTINUE"
    ]) && aws_autoscaling_lifecycle_hook.drain["gpu-l4-spot"].heartbeat_timeout == 600
    error_message = "A machine is gone before its jobs are saved."
  }

  assert {
    condition     = output.environment["gpu-l4"].ZEROFLEET_PREEMPTION_SOURCE == "aws" && output.environment["gpu-l4"].ZEROFLEET_MACHINE_ID == "aws"
    error_message = "The worker does not look for notices, or the autoscaler can't know its machine."
  }

  assert {
    condition     = output.environment["gpu-l4"].ZEROFLEET_SAVE_SECONDS == "570"
    error_message = "The worker gives up a save that it has the time for, or goes on with one for which it has none."
  }

  assert {
    condition     = strcontains(base64decode(aws_launch_template.this["gpu-l4"].user_data), "--stop-timeout 600")
    error_message = "Docker kills the worker before it is done."
  }
}

run "spot_has_several_types_and_zones_and_on_demand_behind_it" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition     = keys(aws_autoscaling_group.this) == ["cpu-general-on-demand", "gpu-l4-on-demand", "gpu-l4-spot"]
    error_message = "Not a group for each way of paying."
  }

  assert {
    condition = (
      aws_autoscaling_group.this["gpu-l4-spot"].mixed_instances_policy[0].instances_distribution[0].on_demand_percentage_above_base_capacity == 0 &&
      aws_autoscaling_group.this["gpu-l4-spot"].mixed_instances_policy[0].instances_distribution[0].spot_allocation_strategy == "price-capacity-optimized" &&
      aws_autoscaling_group.this["gpu-l4-spot"].capacity_rebalance &&
      tolist([for override in aws_autoscaling_group.this["gpu-l4-spot"].mixed_instances_policy[0].launch_template[0].override : override.instance_type]) == var.pools.gpu.machines.l4.instance_types &&
      aws_autoscaling_group.this["gpu-l4-spot"].vpc_zone_identifier == toset(["subnet-a", "subnet-b"])
    )
    error_message = "Spot is asked for in one place only."
  }

  assert {
    condition = (
      aws_autoscaling_group.this["gpu-l4-on-demand"].mixed_instances_policy[0].instances_distribution[0].on_demand_percentage_above_base_capacity == 100 &&
      !aws_autoscaling_group.this["gpu-l4-on-demand"].capacity_rebalance &&
      aws_autoscaling_group.this["cpu-general-on-demand"].vpc_zone_identifier == toset(["subnet-b"])
    )
    error_message = "The fall-back is not on demand, or in other zones than it should be."
  }
}

run "policies_have_no_wildcard_actions_and_reach_their_own_things" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition = alltrue(flatten([
      for policy in [aws_iam_role_policy.worker.policy, aws_iam_role_policy.attempt.policy, aws_iam_role.attempt.assume_role_policy, aws_iam_role.worker.assume_role_policy] :
      [for statement in jsondecode(policy).Statement : [for action in statement.Action : !strcontains(action, "*")]]
    ]))
    error_message = "A wildcard among actions."
  }

  assert {
    condition     = alltrue([for statement in jsondecode(aws_iam_role_policy.worker.policy).Statement : !contains(statement.Resource, "*") || statement.Action == ["ecr:GetAuthorizationToken"]])
    error_message = "A right on everything."
  }

  assert {
    condition     = length(aws_iam_role_policy_attachment.shell) == 0
    error_message = "Shells on the machines are enabled without a configuration."
  }
}

run "an_attempt_reaches_its_own_job_only" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition     = [for statement in jsondecode(aws_iam_role_policy.attempt.policy).Statement : statement.Resource if contains(statement.Action, "s3:PutObject")] == [["arn:aws:s3:::zf-test-bucket/fleet/jobs/$${aws:PrincipalTag/zerofleet:job}/*"]]
    error_message = "An attempt may write beside its own job."
  }

  assert {
    condition = flatten([for statement in jsondecode(aws_iam_role_policy.attempt.policy).Statement : statement.Resource if contains(statement.Action, "s3:GetObject") && !contains(statement.Action, "s3:PutObject")]) == [
      "arn:aws:s3:::zf-test-bucket/fleet/datasets/*",
      "arn:aws:s3:::zf-test-bucket/fleet/models/*",
      "arn:aws:s3:::zf-test-bucket/fleet/jobs/$${aws:PrincipalTag/zerofleet:from}/checkpoints/*",
    ]
    error_message = "An attempt reads more of other jobs than the checkpoints that it begins with."
  }

  assert {
    condition     = alltrue([for statement in jsondecode(aws_iam_role_policy.attempt.policy).Statement : alltrue([for prefix in statement.Condition.StringLike["s3:prefix"] : startswith(prefix, "fleet/") && prefix != "fleet/*"]) if contains(statement.Action, "s3:ListBucket")])
    error_message = "An attempt may list what it does not read."
  }

  assert {
    condition     = jsondecode(aws_iam_role.attempt.assume_role_policy).Statement[0].Condition.StringLike["aws:RequestTag/zerofleet:from"] == ["job_*", "mdl_*"] && toset(jsondecode(aws_iam_role.attempt.assume_role_policy).Statement[0].Condition["ForAllValues:StringEquals"]["aws:TagKeys"]) == toset(["zerofleet:job", "zerofleet:from"])
    error_message = "A session has other tags than those that say which job it is of."
  }

  assert {
    condition     = jsondecode(aws_iam_role.attempt.assume_role_policy).Statement[0].Condition.StringLike["aws:RequestTag/zerofleet:job"] == ["job_*", "mdl_*"] && jsondecode(aws_iam_role.attempt.assume_role_policy).Statement[0].Principal.AWS == aws_iam_role.worker.arn
    error_message = "A session without a job, or of another account."
  }

  assert {
    condition     = [for statement in jsondecode(aws_iam_role_policy.worker.policy).Statement : statement.Resource if statement.Sid == "BecomeAnAttempt"] == [["arn:aws:iam::123456789012:role/zf-test-attempt"]] && aws_iam_role.attempt.name == "zf-test-attempt"
    error_message = "A worker can't become an attempt, or something else too."
  }
}

run "workers_give_their_ranks_sessions_of_the_attempt_role" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition     = alltrue([for environment in values(output.environment) : environment.ZEROFLEET_ATTEMPT_ROLE == "arn:aws:iam::123456789012:role/zf-test-attempt"])
    error_message = "Workers do not know the role, so that their ranks have all permissions of the machine."
  }

  assert {
    condition     = alltrue([for template in values(aws_launch_template.this) : strcontains(base64decode(template.user_data), "ZEROFLEET_ATTEMPT_ROLE=arn:aws:iam::123456789012:role/zf-test-attempt")])
    error_message = "The role does not reach the worker's environment."
  }

  assert {
    condition     = aws_iam_role.attempt.max_session_duration >= 3600
    error_message = "A session is shorter than what the worker asks for."
  }
}

run "the_container_has_no_rights_and_the_secret_lies_in_memory" {
  command = plan

  module {
    source = "./modules/workers"
  }

  assert {
    condition = alltrue([
      for template in values(aws_launch_template.this) :
      strcontains(base64decode(template.user_data), "--read-only --cap-drop ALL --security-opt no-new-privileges --user 10001:10001") &&
      strcontains(base64decode(template.user_data), "> /run/zerofleet/secret.env") && !strcontains(base64decode(template.user_data), "rediss://")
    ])
    error_message = "The worker's container may do more than it has to, or the secret lies on disk."
  }

  assert {
    condition     = strcontains(base64decode(aws_launch_template.this["gpu-l4"].user_data), "--gpus all") && !strcontains(base64decode(aws_launch_template.this["cpu-general"].user_data), "--gpus")
    error_message = "GPUs are not where they should be."
  }

  assert {
    condition     = output.environment["cpu-general"].ZEROFLEET_LOG_LEVEL == "debug" && output.environment["cpu-general"].ZEROFLEET_SLOTS == "4" && output.environment["gpu-l4"].ZEROFLEET_PRICE_PER_RANK_HOUR == "1.25"
    error_message = "Settings of a pool do not reach its workers."
  }
}

run "pools_that_can_not_be_are_refused" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    pools = {
      Bad = {
        machines      = { none = { slots = 0, instance_types = [], accelerator = "tpu", placement_group = "cluster" } }
        drain_seconds = 1
        settings      = { ZEROFLEET_REDIS_URL = "redis://in-plain-sight" }
      }
    }
    images = {}
  }

  expect_failures = [var.pools]
}

run "an_image_is_needed_for_each_accelerator" {
  command = plan

  module {
    source = "./modules/workers"
  }

  variables {
    images = { cpu = "registry.example.com/worker-cpu:latest" }
  }

  expect_failures = [var.images]
}
