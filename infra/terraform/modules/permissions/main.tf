data "aws_partition" "current" {}

locals {
  # What starts a program needs: its image, its secrets, its log.
  start = concat(
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
        Resource = var.secrets.arns
      },
      {
        Sid      = "WriteLogs"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = ["${var.log_group.arn}:*"]
      },
    ],
    [for arn in var.secrets.kms_key_arn[*] : {
      Sid      = "DecryptSecrets"
      Effect   = "Allow"
      Action   = ["kms:Decrypt"]
      Resource = [arn]
    }],
  )

  # What reads and writes the objects of an installation needs.
  objects = concat(
    [for storage in var.storage[*] : {
      Sid      = "Objects"
      Effect   = "Allow"
      Action   = local.object_actions
      Resource = ["${storage.objects_arn}*"]
    }],
    [for storage in var.storage[*] : {
      Sid      = "ListObjects"
      Effect   = "Allow"
      Action   = ["s3:ListBucket", "s3:ListBucketMultipartUploads"]
      Resource = [storage.bucket_arn]
    }],
  )

  object_key = [for arn in compact(var.storage[*].kms_key_arn) : {
    Sid      = "UseTheKeyOfObjects"
    Effect   = "Allow"
    Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
    Resource = [arn]
  }]

  object_actions = [
    "s3:AbortMultipartUpload",
    "s3:DeleteObject",
    "s3:GetObject",
    "s3:ListMultipartUploadParts",
    "s3:PutObject",
  ]

  trust_ecs_tasks = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Action    = ["sts:AssumeRole"]
    }]
  })
}
