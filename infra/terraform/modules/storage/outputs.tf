output "bucket" {
  description = "Name and ARN of the bucket."
  value = {
    name = aws_s3_bucket.this.id
    arn  = aws_s3_bucket.this.arn
  }
}

output "object_store_url" {
  description = "What ZEROFLEET_OBJECT_STORE has to be."
  value       = trimsuffix("s3://${aws_s3_bucket.this.id}/${local.objects_prefix}", "/")
}

output "objects_arn" {
  description = "What the ARNs of all objects of this installation begin with."
  value       = "${aws_s3_bucket.this.arn}/${local.objects_prefix}"
}

output "kms_key_arn" {
  description = "Key that reading and writing need; null unless encryption.mode is \"kms\"."
  value       = local.kms_key_arn
}
