mock_provider "aws" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  name        = "zf-test"
  region      = "eu-central-1"
  image       = "registry.example.com/zerofleet/autoscaler@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
  cluster_arn = "arn:aws:ecs:eu-central-1:123456789012:cluster/zf-test"
  network     = { private_subnet_ids = ["subnet-a", "subnet-b"], security_group_id = "sg-autoscaler" }
  redis       = { url_secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:zf-test/redis-url-AbCdEf" }
  log_group   = { name = "/zf-test/autoscaler", arn = "arn:aws:logs:eu-central-1:123456789012:log-group:/zf-test/autoscaler" }
  group_arns  = ["arn:aws:autoscaling:eu-central-1:123456789012:autoScalingGroup:0:autoScalingGroupName/zf-test-gpu-l4-spot"]
  pools       = { gpu = { budget_per_day = 100, max_ranks = 12 } }

  groups = {
    gpu-l4-spot      = { name = "zf-test-gpu-l4-spot", pool = "gpu", slots = 1, max = 16, price_per_hour = 0.5 }
    gpu-l4-on-demand = { name = "zf-test-gpu-l4-on-demand", pool = "gpu", slots = 1, max = 4, price_per_hour = 1.25 }
  }
}

run "a_budget_below_a_machine_hour_is_refused" {
  command = plan

  module {
    source = "./modules/autoscaler"
  }

  variables {
    pools = { gpu = { budget_per_day = 1 } }
  }

  expect_failures = [var.pools]
}

run "a_budget_of_one_machine_hour_is_enough" {
  command = plan

  module {
    source = "./modules/autoscaler"
  }

  variables {
    pools                = { gpu = { budget_per_day = 1.25 } }
    permissions_boundary = "arn:aws:iam::123456789012:policy/boundary"
  }

  assert {
    condition     = jsondecode(output.environment.ZEROFLEET_AUTOSCALE_POOLS)[0].budget_per_day == 1.25
    error_message = "The budget is not configured."
  }

  assert {
    condition     = aws_iam_role.task.permissions_boundary == var.permissions_boundary && aws_iam_role.execution.permissions_boundary == var.permissions_boundary
    error_message = "A role without the boundary."
  }

  assert {
    condition     = jsondecode(aws_ecs_task_definition.autoscaler.container_definitions)[0].logConfiguration.options.mode == "non-blocking"
    error_message = "The autoscaler waits for CloudWatch."
  }
}

run "it_may_scale_its_own_groups_and_nothing_else" {
  command = plan

  module {
    source = "./modules/autoscaler"
  }

  assert {
    condition     = toset(flatten([for statement in jsondecode(aws_iam_role_policy.task.policy).Statement : statement.Action])) == toset(["autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities", "autoscaling:DescribeLifecycleHooks", "autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup", "autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat", "cloudwatch:PutMetricData"])
    error_message = "It may do something else than scale."
  }

  assert {
    condition     = tolist([for statement in jsondecode(aws_iam_role_policy.task.policy).Statement : statement.Resource if statement.Sid == "ScaleOwnGroups"][0]) == var.group_arns
    error_message = "It may scale groups of others."
  }

  assert {
    condition     = [for statement in jsondecode(aws_iam_role_policy.task.policy).Statement : statement.Condition.StringEquals["cloudwatch:namespace"] if statement.Sid == "PublishOwnMetrics"][0] == "Zerofleet"
    error_message = "It may publish into any namespace."
  }

  assert {
    condition     = alltrue(flatten([for statement in jsondecode(aws_iam_role_policy.execution.policy).Statement : [for action in statement.Action : !strcontains(action, "*")]]))
    error_message = "A wildcard among actions."
  }
}

run "the_task_is_private_and_read_only" {
  command = plan

  module {
    source = "./modules/autoscaler"
  }

  assert {
    condition = alltrue([
      for container in jsondecode(aws_ecs_task_definition.autoscaler.container_definitions) :
      container.readonlyRootFilesystem && !container.privileged && container.user == "10001:10001" && container.linuxParameters.capabilities.drop == ["ALL"] && !can(container.portMappings)
    ])
    error_message = "The container may write its root file system, has rights that it does not need, or a port."
  }

  assert {
    condition     = !aws_ecs_service.autoscaler.network_configuration[0].assign_public_ip && jsondecode(aws_ecs_task_definition.autoscaler.container_definitions)[0].secrets == [{ name = "ZEROFLEET_REDIS_URL", valueFrom = var.redis.url_secret_arn }]
    error_message = "The task has a public address, or the secret is not a reference."
  }
}

run "it_knows_its_pools_and_groups" {
  command = plan

  module {
    source = "./modules/autoscaler"
  }

  assert {
    condition     = [for pool in jsondecode(output.environment.ZEROFLEET_AUTOSCALE_POOLS) : [pool.pool, pool.budget_per_day, pool.max_ranks, pool.idle_seconds]] == [["gpu", 100, 12, 120]]
    error_message = "A pool's limits are not configured."
  }

  assert {
    condition     = { for type in jsondecode(output.environment.ZEROFLEET_AUTOSCALE_POOLS)[0].types : type.group => [type.slots, type.max, type.price_per_hour] } == { "zf-test-gpu-l4-spot" = [1, 16, 0.5], "zf-test-gpu-l4-on-demand" = [1, 4, 1.25] }
    error_message = "A group is not configured."
  }
}

run "a_budget_without_prices_is_refused" {
  command = plan

  module {
    source = "./modules/autoscaler"
  }

  variables {
    groups = { gpu-l4-spot = { name = "zf-test-gpu-l4-spot", pool = "gpu", slots = 1, max = 16, price_per_hour = 0 } }
  }

  expect_failures = [var.pools]
}
