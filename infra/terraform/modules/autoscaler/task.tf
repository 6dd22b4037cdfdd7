locals {
  # Reachable inside of the task only: no security group allows ingress.
  metrics_port = 9091

  pool_names = distinct([for group in values(var.groups) : group.pool])

  # Value of ZEROFLEET_AUTOSCALE_POOLS (docs/autoscaling.md). Null fields are left out.
  policies = [
    for pool in local.pool_names : merge(
      {
        pool = pool
        types = [
          for name, group in var.groups : {
            name           = name
            group          = group.name
            slots          = group.slots
            max            = group.max
            price_per_hour = group.price_per_hour
          } if group.pool == pool
        ]
      },
      { for key, value in try(var.pools[pool], {}) : key => value if value != null },
    )
  ]

  environment = merge(
    {
      AWS_REGION                           = var.region
      ZEROFLEET_AUTOSCALE_CAPACITY         = "aws"
      ZEROFLEET_AUTOSCALE_POOLS            = jsonencode(local.policies)
      ZEROFLEET_AUTOSCALE_INTERVAL_SECONDS = tostring(var.service.interval_seconds)
      ZEROFLEET_CLOUDWATCH_NAMESPACE       = var.service.metric_namespace
      ZEROFLEET_METRICS_PORT               = tostring(local.metrics_port)
    },
    var.service.settings,
  )
}

resource "aws_ecs_task_definition" "autoscaler" {
  family                   = "${var.name}-autoscaler"
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.service.cpu
  memory                   = var.service.memory_mib
  execution_role_arn       = aws_iam_role.execution.arn
  task_role_arn            = aws_iam_role.task.arn
  tags                     = var.tags

  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = var.service.architecture
  }

  container_definitions = jsonencode([{
    name                   = "autoscaler"
    image                  = var.image
    essential              = true
    readonlyRootFilesystem = true
    user                   = "10001:10001"
    privileged             = false
    stopTimeout            = 30
    healthCheck = {
      # 503 when it has not looked at its pools for long.
      command     = ["CMD", "node", "-e", "fetch('http://127.0.0.1:${local.metrics_port}/healthz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
      interval    = 30
      timeout     = 5
      retries     = 3
      startPeriod = 60
    }
    linuxParameters = { capabilities = { drop = ["ALL"] }, initProcessEnabled = true }
    environment     = [for name, value in local.environment : { name = name, value = value }]
    secrets         = [{ name = "ZEROFLEET_REDIS_URL", valueFrom = var.redis.url_secret_arn }]
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        awslogs-region        = var.region
        awslogs-group         = var.log_group.name
        awslogs-stream-prefix = "autoscaler"
        # Lines that CloudWatch does not take in time are dropped: the program must not wait for it.
        mode            = "non-blocking"
        max-buffer-size = "16m"
      }
    }
  }])
}

resource "aws_ecs_service" "autoscaler" {
  name            = "autoscaler"
  cluster         = var.cluster_arn
  task_definition = aws_ecs_task_definition.autoscaler.arn
  launch_type     = "FARGATE"
  # A single task is the leader; the others stand by.
  desired_count                      = var.service.tasks
  deployment_minimum_healthy_percent = 100
  deployment_maximum_percent         = 200
  enable_execute_command             = false
  propagate_tags                     = "SERVICE"
  tags                               = var.tags

  network_configuration {
    subnets          = var.network.private_subnet_ids
    security_groups  = [var.network.security_group_id]
    assign_public_ip = false
  }

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  depends_on = [aws_iam_role_policy.execution, aws_iam_role_policy.task]
}
