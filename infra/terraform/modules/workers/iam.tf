data "aws_partition" "current" {}

locals {
  object_key_arns = var.storage.kms_key_arn == null ? [] : [var.storage.kms_key_arn]
  secret_key_arns = var.redis.kms_key_arn == null ? [] : [var.redis.kms_key_arn]

  object_actions = [
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:GetObject",
    "s3:ListMultipartUploadParts",
    "s3:PutObject",
  ]
}

resource "aws_iam_role" "worker" {
  name                 = "${var.name}-worker"
  permissions_boundary = var.permissions_boundary
  tags                 = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ec2.amazonaws.com" }
      Action    = ["sts:AssumeRole"]
    }]
  })
}

resource "aws_iam_instance_profile" "worker" {
  name = "${var.name}-worker"
  role = aws_iam_role.worker.name
  tags = var.tags
}

resource "aws_iam_role_policy" "worker" {
  name = "work"
  role = aws_iam_role.worker.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "Objects"
          Effect   = "Allow"
          Action   = local.object_actions
          Resource = ["${var.storage.objects_arn}*"]
        },
        {
          Sid      = "ListObjects"
          Effect   = "Allow"
          Action   = ["s3:ListBucket", "s3:ListBucketMultipartUploads"]
          Resource = [var.storage.bucket_arn]
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
          Sid      = "BecomeAnAttempt"
          Effect   = "Allow"
          Action   = ["sts:AssumeRole", "sts:TagSession"]
          Resource = [local.attempt_role_arn]
        },
      ],
      [for arn in local.object_key_arns : {
        Sid      = "UseTheKeyOfObjects"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = [arn]
      }],
      [for arn in local.secret_key_arns : {
        Sid      = "DecryptTheAddressOfRedis"
        Effect   = "Allow"
        Action   = ["kms:Decrypt"]
        Resource = [arn]
      }],
    )
  })
}

resource "aws_iam_role_policy_attachment" "shell" {
  count      = var.shell_access ? 1 : 0
  role       = aws_iam_role.worker.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"
}
