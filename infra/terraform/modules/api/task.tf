locals {
  data_dir = "/var/lib/zerofleet"

  environment = merge(
    {
      AWS_REGION                = var.region
      ZEROFLEET_HOST            = "0.0.0.0"
      ZEROFLEET_PORT            = tostring(var.service.port)
      ZEROFLEET_DATA_DIR        = local.data_dir
      ZEROFLEET_OBJECT_STORE    = var.storage.object_store_url
      ZEROFLEET_DRAIN_SECONDS   = tostring(var.service.drain_seconds)
      ZEROFLEET_TRUSTED_PROXIES = "1" # the load balancer
      ZEROFLEET_DATASET_BUCKETS = length(var.dataset_buckets) == 0 ? "none" : join(",", var.dataset_buckets)
    },
    var.service.settings,
  )
}

resource "aws_ecs_cluster" "this" {
  name = var.name
  tags = var.tags

  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

resource "aws_ecs_task_definition" "api" {
  family                   = "${var.name}-api"
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

  # The only places that a task may write to; both end with it.
  volume {
    name = "data"
  }

  volume {
    name = "tmp"
  }

  container_definitions = jsonencode([{
    name                   = "api"
    image                  = var.image
    essential              = true
    readonlyRootFilesystem = true
    user                   = "10001:10001"
    privileged             = false
    stopTimeout            = 120
    linuxParameters        = { capabilities = { drop = ["ALL"] }, initProcessEnabled = true }
    portMappings           = [{ containerPort = var.service.port, protocol = "tcp" }]
    environment            = [for name, value in local.environment : { name = name, value = value }]
    mountPoints = [
      { sourceVolume = "data", containerPath = local.data_dir, readOnly = false },
      { sourceVolume = "tmp", containerPath = "/tmp", readOnly = false },
    ]
    secrets = concat(
      [
        { name = "ZEROFLEET_REDIS_URL", valueFrom = var.redis_url_secret_arn },
        { name = "ZEROFLEET_API_KEY", valueFrom = aws_secretsmanager_secret.api_key.arn },
      ],
      [for name, arn in var.service.secrets : { name = name, valueFrom = arn }],
    )
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        awslogs-region        = var.region
        awslogs-group         = var.log_group.name
        awslogs-stream-prefix = "api"
        # Lines that CloudWatch does not take in time are dropped: the program must not wait for it.
        mode            = "non-blocking"
        max-buffer-size = "16m"
      }
    }
  }])
}
