# Removes only unreferenced objects. No rule removes checkpoints, datasets or models. Their retention is part of the job
# document, and a rule by age would remove checkpoints that a job still needs.
resource "aws_s3_bucket_lifecycle_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  # In the order of their ids, in which servers other than AWS list them.
  dynamic "rule" {
    for_each = var.bucket.versioning ? [var.bucket.noncurrent_days] : []

    content {
      id     = "old-versions"
      status = "Enabled"

      filter {
        prefix = local.objects_prefix
      }

      noncurrent_version_expiration {
        noncurrent_days = rule.value
      }

      expiration {
        expired_object_delete_marker = true
      }
    }
  }

  rule {
    id     = "stale-uploads"
    status = "Enabled"

    filter {
      prefix = local.objects_prefix
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = var.bucket.stale_upload_days
    }
  }

  depends_on = [aws_s3_bucket_versioning.this]
}
