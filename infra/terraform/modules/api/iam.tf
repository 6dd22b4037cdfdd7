data "aws_partition" "current" {}

locals {
  # An ARN may be followed by the key, the stage and the version of a value: seven parts are the secret itself.
  secret_arns = concat(
    [var.redis_url_secret_arn, aws_secretsmanager_secret.api_key.arn],
    distinct([for arn in values(var.service.secrets) : join(":", slice(split(":", arn), 0, 7))]),
  )
}

module "permissions" {
  source = "../permissions"

  region    = var.region
  log_group = var.log_group
  storage   = var.storage
  secrets   = { arns = local.secret_arns, kms_key_arn = var.secrets.kms_key_arn }
}

# Permissions that Fargate needs to start a task: image, secrets, log.
resource "aws_iam_role" "execution" {
  name                 = "${var.name}-api-start"
  permissions_boundary = var.permissions_boundary
  assume_role_policy   = module.permissions.trust_ecs_tasks
  tags                 = var.tags
}

resource "aws_iam_role_policy" "execution" {
  name = "start-tasks"
  role = aws_iam_role.execution.id

  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = module.permissions.start
  })
}

# Permissions of the API itself: its own objects, and reading the buckets of datasets that an operator
# named.
resource "aws_iam_role" "task" {
  name                 = "${var.name}-api"
  permissions_boundary = var.permissions_boundary
  assume_role_policy   = module.permissions.trust_ecs_tasks
  tags                 = var.tags
}

resource "aws_iam_role_policy" "task" {
  name = "objects"
  role = aws_iam_role.task.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      module.permissions.objects,
      length(var.dataset_buckets) == 0 ? [] : [
        {
          Sid      = "ReadDatasets"
          Effect   = "Allow"
          Action   = ["s3:GetObject"]
          Resource = [for bucket in var.dataset_buckets : "arn:${data.aws_partition.current.partition}:s3:::${bucket}/*"]
        },
        {
          Sid      = "ListDatasets"
          Effect   = "Allow"
          Action   = ["s3:ListBucket"]
          Resource = distinct([for bucket in var.dataset_buckets : "arn:${data.aws_partition.current.partition}:s3:::${split("/", bucket)[0]}"])
        },
      ],
    )
  })
}
