locals {
  make_key    = var.encryption.mode == "kms" && var.encryption.key == null
  kms_key_arn = local.make_key ? module.key[0].arn : var.encryption.mode == "kms" ? var.encryption.key.arn : null
}

module "key" {
  source = "../key"
  count  = local.make_key ? 1 : 0

  alias       = var.bucket.name
  description = "Objects of s3://${var.bucket.name}"
  account_id  = var.encryption.account_id
  tags        = var.tags
}
