mock_provider "aws" {
  source          = "./tests/mocks"
  override_during = plan
}

# For runs that check values known only after an apply.
mock_provider "aws" {
  alias  = "applied"
  source = "./tests/mocks"
}

variables {
  name                 = "zf-test"
  region               = "eu-central-1"
  image                = "registry.example.com/zerofleet/api:0.1.0"
  redis_url_secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:zf-test/redis-url-AbCdEf"
  balancer             = { certificate_arn = "arn:aws:acm:eu-central-1:123456789012:certificate/0f0e0d0c-1111-2222-3333-444455556666" }
  log_group            = { name = "/zf-test/api", arn = "arn:aws:logs:eu-central-1:123456789012:log-group:/zf-test/api" }

  network = {
    vpc_id             = "vpc-0123456789abcdef0"
    public_subnet_ids  = ["subnet-public-a", "subnet-public-b"]
    private_subnet_ids = ["subnet-private-a", "subnet-private-b"]
    security_group_ids = { load_balancer = "sg-balancer", api = "sg-api" }
  }

  storage = {
    object_store_url = "s3://zf-test-bucket/fleet"
    bucket_arn       = "arn:aws:s3:::zf-test-bucket"
    objects_arn      = "arn:aws:s3:::zf-test-bucket/fleet/"
    kms_key_arn      = "arn:aws:kms:eu-central-1:123456789012:key/objects"
  }
}

run "clients_speak_tls" {
  command = plan

  module {
    source = "./modules/api"
  }

  assert {
    condition     = aws_lb_listener.https.protocol == "HTTPS" && aws_lb_listener.https.certificate_arn == var.balancer.certificate_arn && aws_lb_listener.https.ssl_policy == "ELBSecurityPolicy-TLS13-1-2-2021-06"
    error_message = "The listener has no TLS 1.2 or 1.3."
  }

  assert {
    condition     = aws_lb_listener.http.default_action[0].type == "redirect" && aws_lb_listener.http.default_action[0].redirect[0].protocol == "HTTPS"
    error_message = "Plain HTTP is answered with something else than a redirect."
  }

  assert {
    condition     = aws_lb.this.drop_invalid_header_fields && aws_lb.this.desync_mitigation_mode == "strictest" && aws_lb.this.enable_deletion_protection
    error_message = "The load balancer passes on bad headers, or may be deleted by accident."
  }
}

run "tasks_are_private_read_only_and_unprivileged" {
  command = plan

  module {
    source = "./modules/api"
  }

  assert {
    condition     = !aws_ecs_service.api.network_configuration[0].assign_public_ip && aws_ecs_service.api.network_configuration[0].subnets == toset(var.network.private_subnet_ids)
    error_message = "Tasks have public addresses."
  }

  assert {
    condition = alltrue([
      for container in jsondecode(aws_ecs_task_definition.api.container_definitions) :
      container.readonlyRootFilesystem && !container.privileged && container.user == "10001:10001" && container.linuxParameters.capabilities.drop == ["ALL"]
    ])
    error_message = "A container may write its root file system, or has rights that it does not need."
  }

  assert {
    condition     = !aws_ecs_service.api.enable_execute_command
    error_message = "Anybody with the right to it can open a shell in a task."
  }
}

run "secrets_come_from_secrets_manager" {
  command = plan

  module {
    source = "./modules/api"
  }

  assert {
    condition     = { for secret in jsondecode(aws_ecs_task_definition.api.container_definitions)[0].secrets : secret.name => secret.valueFrom } == { ZEROFLEET_REDIS_URL = var.redis_url_secret_arn, ZEROFLEET_API_KEY = aws_secretsmanager_secret.api_key.arn }
    error_message = "The secrets are not references."
  }

  assert {
    condition     = length([for variable in jsondecode(aws_ecs_task_definition.api.container_definitions)[0].environment : variable if contains(["ZEROFLEET_REDIS_URL", "ZEROFLEET_API_KEY"], variable.name)]) == 0
    error_message = "A secret lies open in the environment."
  }
}

run "further_secrets_are_references_that_tasks_may_read" {
  command = plan

  module {
    source = "./modules/api"
  }

  variables {
    service = {
      secrets = {
        ZEROFLEET_OIDC_CLIENT_SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:zf-test/oidc-AbCdEf"
        ZEROFLEET_WANDB_CREDENTIALS  = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:zf-test/trackers-AbCdEf:wandb::"
        ZEROFLEET_MLFLOW_CREDENTIALS = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:zf-test/trackers-AbCdEf:mlflow::"
      }
    }
  }

  assert {
    condition     = tomap({ for secret in jsondecode(aws_ecs_task_definition.api.container_definitions)[0].secrets : secret.name => secret.valueFrom if contains(keys(var.service.secrets), secret.name) }) == var.service.secrets
    error_message = "A secret does not reach the tasks."
  }

  assert {
    condition = [for statement in jsondecode(aws_iam_role_policy.execution.policy).Statement : sort(statement.Resource) if statement.Sid == "ReadSecrets"][0] == sort([
      var.redis_url_secret_arn,
      aws_secretsmanager_secret.api_key.arn,
      "arn:aws:secretsmanager:eu-central-1:123456789012:secret:zf-test/oidc-AbCdEf",
      "arn:aws:secretsmanager:eu-central-1:123456789012:secret:zf-test/trackers-AbCdEf",
    ])
    error_message = "Tasks may read other secrets than theirs."
  }
}

run "plain_values_and_strange_names_are_no_secrets" {
  command = plan

  module {
    source = "./modules/api"
  }

  variables {
    service = { secrets = { ZEROFLEET_OIDC_CLIENT_SECRET = "in plain sight" } }
  }

  expect_failures = [var.service]
}

run "the_first_key_is_random" {
  command   = apply
  providers = { aws = aws.applied }

  module {
    source = "./modules/api"
  }

  assert {
    condition     = can(regex("^zf_[0-9a-f]{64}$", nonsensitive(aws_secretsmanager_secret_version.api_key.secret_string))) && issensitive(aws_secretsmanager_secret_version.api_key.secret_string)
    error_message = "The first API key is not a random one."
  }
}

run "policies_have_no_wildcard_actions_and_reach_their_own_things" {
  command = plan

  module {
    source = "./modules/api"
  }

  variables {
    dataset_buckets = ["corpora", "team/texts"]
  }

  assert {
    condition = alltrue(flatten([
      for policy in [aws_iam_role_policy.execution.policy, aws_iam_role_policy.task.policy] :
      [for statement in jsondecode(policy).Statement : [for action in statement.Action : !strcontains(action, "*")]]
    ]))
    error_message = "A wildcard among actions."
  }

  assert {
    condition = alltrue(flatten([
      for policy in [aws_iam_role_policy.execution.policy, aws_iam_role_policy.task.policy] :
      [for statement in jsondecode(policy).Statement : !contains(statement.Resource, "*") || statement.Action == ["ecr:GetAuthorizationToken"]]
    ]))
    error_message = "A right on everything."
  }

  assert {
    condition     = [for statement in jsondecode(aws_iam_role_policy.task.policy).Statement : statement.Resource if statement.Sid == "Objects"][0] == ["arn:aws:s3:::zf-test-bucket/fleet/*"]
    error_message = "The API reaches more than its own objects."
  }

  assert {
    condition     = [for statement in jsondecode(aws_iam_role_policy.task.policy).Statement : statement if statement.Sid == "ReadDatasets"][0].Action == ["s3:GetObject"] && [for statement in jsondecode(aws_iam_role_policy.task.policy).Statement : statement.Resource if statement.Sid == "ListDatasets"][0] == ["arn:aws:s3:::corpora", "arn:aws:s3:::team"]
    error_message = "Datasets of others may be written, or not be read."
  }
}

run "a_task_that_ends_is_taken_out_first" {
  command = plan

  module {
    source = "./modules/api"
  }

  assert {
    condition = (
      aws_lb_target_group.api.health_check[0].path == "/healthz" &&
      aws_lb_target_group.api.health_check[0].interval * aws_lb_target_group.api.health_check[0].unhealthy_threshold < var.service.drain_seconds &&
      output.environment.ZEROFLEET_DRAIN_SECONDS == tostring(var.service.drain_seconds) &&
      output.environment.ZEROFLEET_TRUSTED_PROXIES == "1" &&
      jsondecode(aws_ecs_task_definition.api.container_definitions)[0].stopTimeout > var.service.drain_seconds
    )
    error_message = "Requests reach a task that is gone."
  }

  assert {
    condition     = aws_ecs_service.api.deployment_minimum_healthy_percent == 100 && one(aws_ecs_service.api.deployment_circuit_breaker).rollback
    error_message = "A bad version takes the place of a good one."
  }

  # Streams send an event every 15 s.
  assert {
    condition     = aws_lb.this.idle_timeout > 15
    error_message = "Silent streams are cut."
  }
}

run "the_api_scales_with_its_load" {
  command = plan

  module {
    source = "./modules/api"
  }

  assert {
    condition     = aws_appautoscaling_target.api.min_capacity == 2 && aws_appautoscaling_target.api.max_capacity == 8 && aws_appautoscaling_policy.this["cpu"].target_tracking_scaling_policy_configuration[0].predefined_metric_specification[0].predefined_metric_type == "ECSServiceAverageCPUUtilization" && aws_appautoscaling_policy.this["requests"].target_tracking_scaling_policy_configuration[0].predefined_metric_specification[0].predefined_metric_type == "ALBRequestCountPerTarget"
    error_message = "The number of tasks is fixed."
  }
}

run "roles_have_the_permissions_boundary_and_the_key_secret_a_customer_key" {
  command = plan

  module {
    source = "./modules/api"
  }

  variables {
    permissions_boundary = "arn:aws:iam::123456789012:policy/boundary"
    secrets              = { kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/own" }
  }

  assert {
    condition     = aws_iam_role.task.permissions_boundary == var.permissions_boundary && aws_iam_role.execution.permissions_boundary == var.permissions_boundary
    error_message = "A role without the boundary."
  }

  assert {
    condition     = aws_secretsmanager_secret.api_key.kms_key_id == var.secrets.kms_key_arn && [for statement in jsondecode(aws_iam_role_policy.execution.policy).Statement : statement.Resource if statement.Sid == "DecryptSecrets"] == [[var.secrets.kms_key_arn]]
    error_message = "The first API key is not encrypted with the key, or no task can read it."
  }

  assert {
    condition     = jsondecode(aws_ecs_task_definition.api.container_definitions)[0].logConfiguration.options.mode == "non-blocking"
    error_message = "The API waits for CloudWatch."
  }
}

run "images_that_may_change_are_refused" {
  command = plan

  module {
    source = "./modules/api"
  }

  variables {
    image = "registry.example.com/zerofleet/api:latest"
  }

  expect_failures = [var.image]
}

run "old_tls_and_secrets_among_settings_are_refused" {
  command = plan

  module {
    source = "./modules/api"
  }

  variables {
    balancer = { certificate_arn = "arn:aws:acm:eu-central-1:123456789012:certificate/0f0e0d0c-1111-2222-3333-444455556666", tls_policy = "ELBSecurityPolicy-2016-08" }
    service  = { settings = { ZEROFLEET_OIDC_CLIENT_SECRET = "in_plain_sight" } }
  }

  expect_failures = [var.balancer, var.service]
}
