module "permissions" {
  source = "../permissions"

  region    = var.region
  log_group = var.log_group
  secrets   = { arns = [var.redis.url_secret_arn], kms_key_arn = var.redis.kms_key_arn }
}

# Permissions that Fargate needs to start the task: image, secret, log.
resource "aws_iam_role" "execution" {
  name                 = "${var.name}-autoscaler-start"
  permissions_boundary = var.permissions_boundary
  assume_role_policy   = module.permissions.trust_ecs_tasks
  tags                 = var.tags
}

resource "aws_iam_role_policy" "execution" {
  name = "start-task"
  role = aws_iam_role.execution.id

  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = module.permissions.start
  })
}

# Permissions of the autoscaler itself: its own groups only. It starts machines only by setting a group's desired
# capacity, so it can neither choose what runs on them nor give them rights.
resource "aws_iam_role" "task" {
  name                 = "${var.name}-autoscaler"
  permissions_boundary = var.permissions_boundary
  assume_role_policy   = module.permissions.trust_ecs_tasks
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
