mock_provider "aws" {
  source          = "./tests/mocks"
  override_during = plan
}

# For runs that check values known only after an apply.
mock_provider "aws" {
  alias  = "applied"
  source = "./tests/mocks"
}

variables {
  name              = "zf-test"
  subnet_ids        = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
  security_group_id = "sg-queue"
  kms_key_arn       = "arn:aws:kms:eu-central-1:123456789012:key/own"
}

run "memorydb_is_the_default_with_tls_and_acl" {
  command   = apply
  providers = { aws = aws.applied }

  module {
    source = "./modules/queue"
  }

  assert {
    condition     = aws_memorydb_cluster.this[0].tls_enabled && aws_memorydb_cluster.this[0].acl_name == aws_memorydb_acl.this[0].name && aws_memorydb_cluster.this[0].kms_key_arn == var.kms_key_arn
    error_message = "MemoryDB without TLS, without the ACL or without the key."
  }

  assert {
    condition     = aws_memorydb_acl.this[0].user_names == toset(["zf-test-app"]) && aws_memorydb_user.this[0].authentication_mode[0].type == "password"
    error_message = "Access without a password is possible."
  }

  # All keys have the same hash tag, so there is nothing to share between shards.
  assert {
    condition     = aws_memorydb_cluster.this[0].num_shards == 1 && aws_memorydb_cluster.this[0].num_replicas_per_shard == 1
    error_message = "A shard without keys, or none that takes over."
  }

  assert {
    condition     = one(aws_memorydb_parameter_group.this[0].parameter).name == "maxmemory-policy" && one(aws_memorydb_parameter_group.this[0].parameter).value == "noeviction"
    error_message = "Keys may be dropped when the memory is full."
  }

  assert {
    condition     = length(aws_elasticache_replication_group.this) == 0
    error_message = "Two servers are made."
  }
}

run "the_address_is_a_secret_and_speaks_tls" {
  command   = apply
  providers = { aws = aws.applied }

  module {
    source = "./modules/queue"
  }

  assert {
    condition     = can(regex("^rediss\\+cluster://zf-test-app:[0-9a-f]{64}@clustercfg.mock.memorydb.eu-central-1.amazonaws.com:6379\\?replicas=0$", nonsensitive(aws_secretsmanager_secret_version.url.secret_string)))
    error_message = "The secret is not the address of Redis with TLS, a user and a random password."
  }

  assert {
    condition     = aws_secretsmanager_secret.url.kms_key_id == var.kms_key_arn && issensitive(aws_secretsmanager_secret_version.url.secret_string) && nonsensitive(aws_memorydb_user.this[0].authentication_mode[0].passwords == toset([terraform_data.password["1"].output]))
    error_message = "The secret is not guarded, or not what Redis accepts."
  }
}

run "a_new_password_is_accepted_beside_the_old_one" {
  command   = apply
  providers = { aws = aws.applied }

  module {
    source = "./modules/queue"
  }

  variables {
    password_generation = 2
  }

  assert {
    condition     = nonsensitive(aws_memorydb_user.this[0].authentication_mode[0].passwords == toset([terraform_data.password["1"].output, terraform_data.password["2"].output]))
    error_message = "Programs that run are locked out."
  }

  assert {
    condition     = strcontains(nonsensitive(aws_secretsmanager_secret_version.url.secret_string), nonsensitive(terraform_data.password["2"].output))
    error_message = "Programs that start get the old password."
  }
}

run "only_two_passwords_are_accepted" {
  command   = apply
  providers = { aws = aws.applied }

  module {
    source = "./modules/queue"
  }

  variables {
    password_generation = 3
  }

  assert {
    condition     = keys(terraform_data.password) == ["2", "3"] && nonsensitive(aws_memorydb_user.this[0].authentication_mode[0].passwords == toset([terraform_data.password["2"].output, terraform_data.password["3"].output]))
    error_message = "An old password is accepted for ever, or the newest one was replaced."
  }
}

run "the_programs_may_do_nothing_but_their_work" {
  command = plan

  module {
    source = "./modules/queue"
  }

  assert {
    condition     = startswith(output.access_string, "on ~{zf}* resetchannels &{zf}:* -@all ") && strcontains(output.access_string, " -@dangerous -@admin ") && !strcontains(output.access_string, "~* ") && !strcontains(output.access_string, "+@all")
    error_message = "The user may touch other keys, or the server itself."
  }
}

run "elasticache_has_tls_acl_and_a_replica_in_another_zone" {
  command   = apply
  providers = { aws = aws.applied }

  module {
    source = "./modules/queue"
  }

  variables {
    redis = { engine = "elasticache" }
  }

  assert {
    condition     = aws_elasticache_replication_group.this[0].transit_encryption_enabled && aws_elasticache_replication_group.this[0].transit_encryption_mode == "required" && aws_elasticache_replication_group.this[0].at_rest_encryption_enabled
    error_message = "ElastiCache without encryption."
  }

  assert {
    condition     = aws_elasticache_replication_group.this[0].num_cache_clusters == 2 && aws_elasticache_replication_group.this[0].automatic_failover_enabled && aws_elasticache_replication_group.this[0].multi_az_enabled
    error_message = "No replica takes over."
  }

  assert {
    condition     = aws_elasticache_user.disabled_default[0].user_name == "default" && startswith(aws_elasticache_user.disabled_default[0].access_string, "off ") && strcontains(aws_elasticache_user.disabled_default[0].access_string, "-@all")
    error_message = "Who connects without a name may do something."
  }

  assert {
    condition     = one(aws_elasticache_parameter_group.this[0].parameter).value == "noeviction" && length(aws_memorydb_cluster.this) == 0
    error_message = "Keys may be dropped when the memory is full, or two servers are made."
  }
}

run "with_two_replicas_of_elasticache_a_write_needs_one" {
  command   = apply
  providers = { aws = aws.applied }

  module {
    source = "./modules/queue"
  }

  variables {
    redis = { engine = "elasticache", replicas = 2 }
  }

  assert {
    condition     = aws_elasticache_replication_group.this[0].num_cache_clusters == 3 && can(regex("^rediss://.*:6379\\?replicas=1$", nonsensitive(aws_secretsmanager_secret_version.url.secret_string)))
    error_message = "A failover loses acknowledged writes."
  }
}

run "a_fraction_of_a_replica_is_refused" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    redis = { replicas = 0.5 }
  }

  expect_failures = [var.redis]
}

run "a_node_type_of_the_other_engine_is_refused" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    redis = { engine = "elasticache", node_type = "db.r7g.large" }
  }

  expect_failures = [var.redis]
}

run "a_generation_of_half_a_password_is_refused" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    password_generation = 1.5
  }

  expect_failures = [var.password_generation]
}
