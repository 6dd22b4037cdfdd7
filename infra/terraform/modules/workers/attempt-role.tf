# Credentials for one attempt of one job. The tag `zerofleet:job` of a session is the job's id. `zerofleet:from` is the
# id of the job whose checkpoint it begins with, otherwise again its own. The session writes the folder of the first
# job, and reads datasets, models and the checkpoints of the second one. Its credentials give access to no other job
# under any session policy. The worker requests them with a narrower policy: this dataset, these models, this
# checkpoint. For the answers of an uploaded model both tags are the model's id: the session reads models, and the
# folder of no job.
locals {
  attempt_role_name = "${var.name}-attempt"
  # Written out, since the worker's policy and this role's trust name each other.
  attempt_role_arn = "arn:${data.aws_partition.current.partition}:iam::${var.account_id}:role/${local.attempt_role_name}"

  job_tag = "zerofleet:job"
  own_job = "jobs/$${aws:PrincipalTag/${local.job_tag}}/"

  source_tag  = "zerofleet:from"
  source_jobs = "jobs/$${aws:PrincipalTag/${local.source_tag}}/checkpoints/"
  readable    = ["datasets/", "models/", local.source_jobs]

  prefix = trimprefix(var.storage.objects_arn, "${var.storage.bucket_arn}/")
}

resource "aws_iam_role" "attempt" {
  name                 = local.attempt_role_name
  permissions_boundary = var.permissions_boundary
  max_session_duration = 3600
  tags                 = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { AWS = aws_iam_role.worker.arn }
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Condition = {
        # No session without a job or a model: a missing tag would make the folder "jobs//".
        StringLike = {
          "aws:RequestTag/${local.job_tag}"    = ["job_*", "mdl_*"]
          "aws:RequestTag/${local.source_tag}" = ["job_*", "mdl_*"]
        }
        "ForAllValues:StringEquals" = { "aws:TagKeys" = [local.job_tag, local.source_tag] }
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
          Action   = module.permissions.object_actions
          Resource = ["${var.storage.objects_arn}${local.own_job}*"]
        },
        {
          Sid      = "ReadDatasetsModelsAndTheCheckpointToBeginWith"
          Effect   = "Allow"
          Action   = ["s3:GetObject"]
          Resource = [for folder in local.readable : "${var.storage.objects_arn}${folder}*"]
        },
        {
          # Without this permission, S3 answers alike for a missing and a denied object.
          Sid      = "ListWhatItReads"
          Effect   = "Allow"
          Action   = ["s3:ListBucket"]
          Resource = [var.storage.bucket_arn]
          Condition = {
            StringLike = { "s3:prefix" = [for folder in concat([local.own_job], local.readable) : "${local.prefix}${folder}*"] }
          }
        },
      ],
      module.permissions.object_key,
    )
  })
}
