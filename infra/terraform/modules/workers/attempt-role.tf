# Credentials for one attempt of one job. A session of this role carries the job's id as the tag `zerofleet:job`, and reaches that
# job's own folder, and datasets and models to read: whoever has its credentials can touch no other job, whatever session policy they
# were asked for with.
locals {
  attempt_role_name = "${var.name}-attempt"
  # Written out, since the worker's policy and this role's trust name each other.
  attempt_role_arn = "arn:${data.aws_partition.current.partition}:iam::${var.account_id}:role/${local.attempt_role_name}"

  job_tag = "zerofleet:job"
  own_job = "jobs/$${aws:PrincipalTag/${local.job_tag}}/"
  prefix  = trimprefix(var.storage.objects_arn, "${var.storage.bucket_arn}/")
}

resource "aws_iam_role" "attempt" {
  name                 = local.attempt_role_name
  max_session_duration = 3600
  tags                 = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { AWS = aws_iam_role.worker.arn }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Condition = {
        # No session without a job: a missing tag would make the folder "jobs//".
        StringLike                  = { "aws:RequestTag/${local.job_tag}" = "job_*" }
        "ForAllValues:StringEquals" = { "aws:TagKeys" = [local.job_tag] }
      }
    }]
  })
}

resource "aws_iam_role_policy" "attempt" {
  name = "one-job"
  role = aws_iam_role.attempt.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "OwnJob"
          Effect   = "Allow"
          Action   = local.object_actions
          Resource = ["${var.storage.objects_arn}${local.own_job}*"]
        },
        {
          Sid      = "ReadDatasetsAndModels"
          Effect   = "Allow"
          Action   = ["s3:GetObject"]
          Resource = ["${var.storage.objects_arn}datasets/*", "${var.storage.objects_arn}models/*"]
        },
        {
          Sid      = "ListOwnJob"
          Effect   = "Allow"
          Action   = ["s3:ListBucket"]
          Resource = [var.storage.bucket_arn]
          Condition = {
            StringLike = { "s3:prefix" = ["${local.prefix}${local.own_job}*", "${local.prefix}datasets/*", "${local.prefix}models/*"] }
          }
        },
      ],
      [for arn in local.object_key_arns : {
        Sid      = "UseTheKeyOfObjects"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = [arn]
      }],
    )
  })
}
