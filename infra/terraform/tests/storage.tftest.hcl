mock_provider "aws" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  bucket     = { name = "zf-test-bucket", prefix = "fleet" }
  encryption = { account_id = "123456789012" }
}

run "objects_are_encrypted_with_a_customer_key" {
  command = plan

  module {
    source = "./modules/storage"
  }

  assert {
    condition     = one(aws_s3_bucket_server_side_encryption_configuration.this[0].rule).apply_server_side_encryption_by_default[0].sse_algorithm == "aws:kms"
    error_message = "The default encryption is not KMS."
  }

  assert {
    condition     = one(aws_s3_bucket_server_side_encryption_configuration.this[0].rule).apply_server_side_encryption_by_default[0].kms_master_key_id == module.key[0].arn && one(aws_s3_bucket_server_side_encryption_configuration.this[0].rule).bucket_key_enabled
    error_message = "Not with the bucket's own key."
  }
}

run "objects_are_encrypted_by_s3_where_that_is_asked_for" {
  command = plan

  module {
    source = "./modules/storage"
  }

  variables {
    encryption = { mode = "s3" }
  }

  assert {
    condition     = one(aws_s3_bucket_server_side_encryption_configuration.this[0].rule).apply_server_side_encryption_by_default[0].sse_algorithm == "AES256" && length(module.key) == 0 && output.kms_key_arn == null
    error_message = "SSE-S3 needs no key."
  }
}

run "a_key_that_is_there_is_used" {
  command = plan

  module {
    source = "./modules/storage"
  }

  variables {
    encryption = { key = { arn = "arn:aws:kms:eu-central-1:123456789012:key/own" } }
  }

  assert {
    condition     = length(module.key) == 0 && output.kms_key_arn == "arn:aws:kms:eu-central-1:123456789012:key/own"
    error_message = "Another key was made."
  }
}

run "nothing_is_public" {
  command = plan

  module {
    source = "./modules/storage"
  }

  assert {
    condition = alltrue([
      aws_s3_bucket_public_access_block.this.block_public_acls,
      aws_s3_bucket_public_access_block.this.block_public_policy,
      aws_s3_bucket_public_access_block.this.ignore_public_acls,
      aws_s3_bucket_public_access_block.this.restrict_public_buckets,
    ])
    error_message = "A way to make objects public is open."
  }

  assert {
    condition     = aws_s3_bucket_ownership_controls.this[0].rule[0].object_ownership == "BucketOwnerEnforced"
    error_message = "ACLs are on."
  }

  assert {
    condition     = alltrue([for statement in jsondecode(aws_s3_bucket_policy.this.policy).Statement : statement.Effect == "Deny"])
    error_message = "The bucket's policy grants access."
  }
}

run "plain_http_and_old_tls_are_refused" {
  command = plan

  module {
    source = "./modules/storage"
  }

  assert {
    condition = length([
      for statement in jsondecode(aws_s3_bucket_policy.this.policy).Statement : statement
      if statement.Effect == "Deny" && statement.Principal == "*" && try(statement.Condition.Bool["aws:SecureTransport"], "") == "false"
    ]) == 1
    error_message = "Plain HTTP is not refused."
  }

  assert {
    condition = length([
      for statement in jsondecode(aws_s3_bucket_policy.this.policy).Statement : statement
      if statement.Effect == "Deny" && try(statement.Condition.NumericLessThan["s3:TlsVersion"], "") == "1.2"
    ]) == 1
    error_message = "TLS before 1.2 is not refused."
  }
}

run "stale_uploads_are_removed_and_nothing_else" {
  command = plan

  module {
    source = "./modules/storage"
  }

  assert {
    condition     = length(aws_s3_bucket_lifecycle_configuration.this.rule) == 1
    error_message = "A rule removes more than stale uploads."
  }

  assert {
    condition = (
      aws_s3_bucket_lifecycle_configuration.this.rule[0].abort_incomplete_multipart_upload[0].days_after_initiation == 3 &&
      length(aws_s3_bucket_lifecycle_configuration.this.rule[0].expiration) == 0 &&
      aws_s3_bucket_lifecycle_configuration.this.rule[0].filter[0].prefix == "fleet/"
    )
    error_message = "Uploads that never ended stay, or objects go by their age."
  }
}

run "versions_are_kept_for_a_while_where_that_is_asked_for" {
  command = plan

  module {
    source = "./modules/storage"
  }

  variables {
    bucket = { name = "zf-test-bucket", versioning = true, noncurrent_days = 7 }
  }

  assert {
    condition     = aws_s3_bucket_versioning.this[0].versioning_configuration[0].status == "Enabled" && aws_s3_bucket_lifecycle_configuration.this.rule[0].noncurrent_version_expiration[0].noncurrent_days == 7
    error_message = "Old versions are not kept for seven days."
  }
}

run "the_urls_of_objects_have_the_prefix" {
  command = plan

  module {
    source = "./modules/storage"
  }

  assert {
    condition     = output.object_store_url == "s3://zf-test-bucket/fleet" && output.objects_arn == "arn:aws:s3:::zf-test-bucket/fleet/"
    error_message = "The prefix is missing."
  }
}

run "bad_buckets_are_refused" {
  command = plan

  module {
    source = "./modules/storage"
  }

  variables {
    bucket = { name = "With.Dots", prefix = "/fleet/", stale_upload_days = 0 }
  }

  expect_failures = [var.bucket]
}

run "a_key_without_an_account_is_refused" {
  command = plan

  module {
    source = "./modules/storage"
  }

  variables {
    encryption = { mode = "kms" }
  }

  expect_failures = [var.encryption]
}
