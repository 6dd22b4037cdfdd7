locals {
  make_key    = var.encryption.mode == "kms" && var.encryption.key == null
  kms_key_arn = local.make_key ? aws_kms_key.this[0].arn : var.encryption.mode == "kms" ? var.encryption.key.arn : null
}

resource "aws_kms_key" "this" {
  count                   = local.make_key ? 1 : 0
  description             = "Objects of s3://${var.bucket.name}"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  tags                    = var.tags

  # The account's own policies say who may do what; none of them allows everything.
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "AccountDecidesByItsPolicies"
      Effect    = "Allow"
      Principal = { AWS = "arn:${data.aws_partition.current.partition}:iam::${var.encryption.account_id}:root" }
      Action    = local.key_actions
      Resource  = "*"
    }]
  })
}

resource "aws_kms_alias" "this" {
  count         = local.make_key ? 1 : 0
  name          = "alias/${var.bucket.name}"
  target_key_id = aws_kms_key.this[0].key_id
}

data "aws_partition" "current" {}

locals {
  key_actions = [
    "kms:CancelKeyDeletion",
    "kms:CreateAlias",
    "kms:CreateGrant",
    "kms:Decrypt",
    "kms:DeleteAlias",
    "kms:DescribeKey",
    "kms:DisableKey",
    "kms:DisableKeyRotation",
    "kms:EnableKey",
    "kms:EnableKeyRotation",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GetKeyPolicy",
    "kms:GetKeyRotationStatus",
    "kms:ListGrants",
    "kms:ListKeyPolicies",
    "kms:ListResourceTags",
    "kms:PutKeyPolicy",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
    "kms:RetireGrant",
    "kms:RevokeGrant",
    "kms:ScheduleKeyDeletion",
    "kms:TagResource",
    "kms:UntagResource",
    "kms:UpdateAlias",
    "kms:UpdateKeyDescription",
  ]
}
