locals {
  # Prefix of this installation's keys.
  objects_prefix = var.bucket.prefix == "" ? "" : "${var.bucket.prefix}/"
}

resource "aws_s3_bucket" "this" {
  bucket        = var.bucket.name
  force_destroy = var.bucket.force_destroy
  tags          = var.tags
}

resource "aws_s3_bucket_public_access_block" "this" {
  bucket                  = aws_s3_bucket.this.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "this" {
  count  = var.bucket.object_ownership == "server" ? 0 : 1
  bucket = aws_s3_bucket.this.id

  rule {
    object_ownership = var.bucket.object_ownership
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  count  = var.encryption.mode == "server" ? 0 : 1
  bucket = aws_s3_bucket.this.id

  rule {
    # Shares a data key between many objects: a save writes hundreds of shards, each of which would cost a
    # request to KMS.
    bucket_key_enabled = var.encryption.mode == "kms"

    apply_server_side_encryption_by_default {
      sse_algorithm     = var.encryption.mode == "kms" ? "aws:kms" : "AES256"
      kms_master_key_id = local.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_versioning" "this" {
  count  = var.bucket.versioning ? 1 : 0
  bucket = aws_s3_bucket.this.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_logging" "this" {
  count         = var.bucket.access_log_bucket == null ? 0 : 1
  bucket        = aws_s3_bucket.this.id
  target_bucket = var.bucket.access_log_bucket
  target_prefix = "${var.bucket.name}/"
}
