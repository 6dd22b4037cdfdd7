data "aws_partition" "current" {}

module "permissions" {
  source = "../permissions"

  region    = var.region
  log_group = var.log_group
  storage   = var.storage
  secrets   = { arns = [var.redis.url_secret_arn], kms_key_arn = var.redis.kms_key_arn }
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
      module.permissions.objects,
      module.permissions.start,
      [
        {
          Sid      = "BecomeAnAttempt"
          Effect   = "Allow"
          Action   = ["sts:AssumeRole", "sts:TagSession"]
          Resource = [local.attempt_role_arn]
        },
      ],
    )
  })
}

resource "aws_iam_role_policy_attachment" "shell" {
  count      = var.shell_access ? 1 : 0
  role       = aws_iam_role.worker.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"
}
