data "aws_partition" "current" {}

locals {
  secret_key_arns = var.redis.kms_key_arn == null ? [] : [var.redis.kms_key_arn]

  trust_ecs_tasks = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Action    = ["sts:AssumeRole"]
    }]
  })
}

# Permissions that Fargate needs to start the task: image, secret, log.
resource "aws_iam_role" "execution" {
  name                 = "${var.name}-autoscaler-start"
  permissions_boundary = var.permissions_boundary
  assume_role_policy   = local.trust_ecs_tasks
  tags                 = var.tags
}

resource "aws_iam_role_policy" "execution" {
  name = "start-task"
  role = aws_iam_role.execution.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "LogInToTheRegistry"
          Effect   = "Allow"
          Action   = ["ecr:GetAuthorizationToken"]
          Resource = ["*"]
        },
        {
          Sid      = "PullImages"
          Effect   = "Allow"
          Action   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
          Resource = ["arn:${data.aws_partition.current.partition}:ecr:${var.region}:*:repository/*"]
        },
        {
          Sid      = "ReadTheAddressOfRedis"
          Effect   = "Allow"
          Action   = ["secretsmanager:GetSecretValue"]
          Resource = [var.redis.url_secret_arn]
        },
        {
          Sid      = "WriteLogs"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = ["${var.log_group.arn}:*"]
        },
      ],
      [for arn in local.secret_key_arns : {
        Sid      = "DecryptTheAddressOfRedis"
        Effect   = "Allow"
        Action   = ["kms:Decrypt"]
        Resource = [arn]
      }],
    )
  })
}

# Permissions of the autoscaler itself: its own groups only. It starts machines only by setting a group's desired capacity, so it
# can neither choose what runs on them nor give them rights.
resource "aws_iam_role" "task" {
  name                 = "${var.name}-autoscaler"
  permissions_boundary = var.permissions_boundary
  assume_role_policy   = local.trust_ecs_tasks
  tags                 = var.tags
}

resource "aws_iam_role_policy" "task" {
  name = "scale"
  role = aws_iam_role.task.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        # AWS knows no narrower resource for them.
        Sid      = "SeeGroups"
        Effect   = "Allow"
        Action   = ["autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities", "autoscaling:DescribeLifecycleHooks"]
        Resource = ["*"]
      },
      {
        Sid    = "ScaleOwnGroups"
        Effect = "Allow"
        Action = [
          "autoscaling:CompleteLifecycleAction",
          "autoscaling:RecordLifecycleActionHeartbeat",
          "autoscaling:SetDesiredCapacity",
          "autoscaling:TerminateInstanceInAutoScalingGroup",
        ]
        Resource = var.group_arns
      },
      {
        Sid       = "PublishOwnMetrics"
        Effect    = "Allow"
        Action    = ["cloudwatch:PutMetricData"]
        Resource  = ["*"]
        Condition = { StringEquals = { "cloudwatch:namespace" = var.service.metric_namespace } }
      },
    ]
  })
}
