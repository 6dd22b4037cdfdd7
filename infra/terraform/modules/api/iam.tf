data "aws_partition" "current" {}

locals {
  # An ARN may be followed by the key, the stage and the version of a value: seven parts are the secret itself.
  secret_arns = concat(
    [var.redis_url_secret_arn, aws_secretsmanager_secret.api_key.arn],
    distinct([for arn in values(var.service.secrets) : join(":", slice(split(":", arn), 0, 7))]),
  )

  # Keys that the secrets and the objects are encrypted with; none where those of AWS are used.
  secret_key_arns = var.secrets.kms_key_arn == null ? [] : [var.secrets.kms_key_arn]
  object_key_arns = var.storage.kms_key_arn == null ? [] : [var.storage.kms_key_arn]

  trust_ecs_tasks = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Action    = ["sts:AssumeRole"]
    }]
  })
}

# Permissions that Fargate needs to start a task: image, secrets, log.
resource "aws_iam_role" "execution" {
  name                 = "${var.name}-api-start"
  permissions_boundary = var.permissions_boundary
  assume_role_policy   = local.trust_ecs_tasks
  tags                 = var.tags
}

resource "aws_iam_role_policy" "execution" {
  name = "start-tasks"
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
          Sid    = "PullImages"
          Effect = "Allow"
          Action = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
          # Images may lie in another account of the organization, whose repository policy decides.
          Resource = ["arn:${data.aws_partition.current.partition}:ecr:${var.region}:*:repository/*"]
        },
        {
          Sid      = "ReadSecrets"
          Effect   = "Allow"
          Action   = ["secretsmanager:GetSecretValue"]
          Resource = local.secret_arns
        },
        {
          Sid      = "WriteLogs"
          Effect   = "Allow"
          Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
          Resource = ["${var.log_group.arn}:*"]
        },
      ],
      [for arn in local.secret_key_arns : {
        Sid      = "DecryptSecrets"
        Effect   = "Allow"
        Action   = ["kms:Decrypt"]
        Resource = [arn]
      }],
    )
  })
}

# Permissions of the API itself: its own objects, and reading the buckets of datasets that an operator
# named.
resource "aws_iam_role" "task" {
  name                 = "${var.name}-api"
  permissions_boundary = var.permissions_boundary
  assume_role_policy   = local.trust_ecs_tasks
  tags                 = var.tags
}

resource "aws_iam_role_policy" "task" {
  name = "objects"
  role = aws_iam_role.task.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid    = "Objects"
          Effect = "Allow"
          Action = [
            "s3:AbortMultipartUpload",
            "s3:DeleteObject",
            "s3:GetObject",
            "s3:ListMultipartUploadParts",
            "s3:PutObject",
          ]
          Resource = ["${var.storage.objects_arn}*"]
        },
        {
          Sid      = "ListObjects"
          Effect   = "Allow"
          Action   = ["s3:ListBucket", "s3:ListBucketMultipartUploads"]
          Resource = [var.storage.bucket_arn]
        },
      ],
      [for arn in local.object_key_arns : {
        Sid      = "UseTheKeyOfObjects"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = [arn]
      }],
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
