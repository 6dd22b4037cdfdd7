variable "bucket" {
  description = <<-EOT
    The bucket that holds datasets, checkpoints and models.
      name:           its name, unique in all of S3.
      prefix:         folder of this installation in it, without slashes at the ends; "" is the whole bucket.
      versioning:     keep replaced and deleted objects for `noncurrent_days`: a way back from mistakes, paid by the byte.
      stale_upload_days: after so many days the parts of an upload that never ended are removed.
      object_ownership:  "BucketOwnerEnforced" switches ACLs off; "server" leaves it to the server, for those that have no such setting.
      force_destroy:  let `terraform destroy` delete a bucket that is not empty.
      access_log_bucket: bucket that receives S3's access logs; null writes none.
  EOT
  type = object({
    name              = string
    prefix            = optional(string, "")
    versioning        = optional(bool, false)
    noncurrent_days   = optional(number, 30)
    stale_upload_days = optional(number, 3)
    object_ownership  = optional(string, "BucketOwnerEnforced")
    force_destroy     = optional(bool, false)
    access_log_bucket = optional(string)
  })
  nullable = false

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.bucket.name))
    error_message = "bucket.name: 3 to 63 lower-case letters, digits and hyphens. A dot would break TLS to the bucket's own host name."
  }

  validation {
    condition     = can(regex("^([A-Za-z0-9._=-]+(/[A-Za-z0-9._=-]+)*)?$", var.bucket.prefix))
    error_message = "bucket.prefix: letters, digits and ._=- with single slashes between them, none at the ends."
  }

  validation {
    condition     = var.bucket.stale_upload_days >= 2
    error_message = "bucket.stale_upload_days must be at least 2: an upload of a large shard or dataset may take a day."
  }

  validation {
    condition     = var.bucket.noncurrent_days >= 1
    error_message = "bucket.noncurrent_days must be at least 1."
  }

  validation {
    condition     = contains(["BucketOwnerEnforced", "server"], var.bucket.object_ownership)
    error_message = "bucket.object_ownership: \"BucketOwnerEnforced\" or \"server\"."
  }
}

variable "encryption" {
  description = <<-EOT
    How objects lie on disk.
      mode:       "kms" encrypts with a customer key, so that reading needs the key as well as the bucket. "s3" uses keys that S3
                  manages (SSE-S3). "server" sets no default and leaves it to the server: on AWS that is SSE-S3, on servers of one's
                  own it is what they are configured for.
      key:        of the mode "kms", when there is one already; null makes one.
      account_id: of the AWS account, needed for the policy of a key that is made here.
  EOT
  type = object({
    mode       = optional(string, "kms")
    key        = optional(object({ arn = string }))
    account_id = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = contains(["kms", "s3", "server"], var.encryption.mode)
    error_message = "encryption.mode: \"kms\", \"s3\" or \"server\"."
  }

  validation {
    condition     = var.encryption.mode != "kms" || var.encryption.key != null || can(regex("^[0-9]{12}$", var.encryption.account_id))
    error_message = "encryption: mode \"kms\" needs the ARN of a key, or account_id (12 digits) to make one."
  }
}

variable "tags" {
  description = "Tags of everything that is made here."
  type        = map(string)
  default     = {}
}
