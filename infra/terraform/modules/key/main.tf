data "aws_partition" "current" {}

resource "aws_kms_key" "this" {
  description             = var.description
  enable_key_rotation     = true
  deletion_window_in_days = 30
  tags                    = var.tags

  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = concat([local.account], local.publishers, local.logs)
  })
}

resource "aws_kms_alias" "this" {
  name          = "alias/${var.alias}"
  target_key_id = aws_kms_key.this.key_id
}

locals {
  # The account's own policies say who may do what; none of them allows everything.
  account = {
    Sid       = "AccountDecidesByItsPolicies"
    Effect    = "Allow"
    Principal = { AWS = "arn:${data.aws_partition.current.partition}:iam::${var.account_id}:root" }
    Action    = local.account_actions
    Resource  = "*"
  }

  # Senders into an encrypted topic need the key as well.
  publishers = [for service in var.publishers : {
    Sid       = "PublishFrom${title(service)}"
    Effect    = "Allow"
    Principal = { Service = "${service}.amazonaws.com" }
    Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
    Resource  = "*"
    Condition = { StringEquals = { "aws:SourceAccount" = var.account_id } }
  }]

  logs = [for region in var.logs_region[*] : {
    Sid       = "KeepLogs"
    Effect    = "Allow"
    Principal = { Service = "logs.${region}.amazonaws.com" }
    Action    = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"]
    Resource  = "*"
    Condition = {
      ArnLike = { "kms:EncryptionContext:aws:logs:arn" = "arn:${data.aws_partition.current.partition}:logs:${region}:${var.account_id}:log-group:*" }
    }
  }]

  account_actions = [
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
