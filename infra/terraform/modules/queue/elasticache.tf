resource "aws_elasticache_subnet_group" "this" {
  count      = local.memorydb ? 0 : 1
  name       = var.name
  subnet_ids = var.subnet_ids
  tags       = var.tags
}

resource "aws_elasticache_parameter_group" "this" {
  count  = local.memorydb ? 0 : 1
  name   = var.name
  family = "redis7"
  tags   = var.tags

  # Silently dropping keys would lose jobs; a full memory must be an error instead.
  parameter {
    name  = "maxmemory-policy"
    value = "noeviction"
  }
}

resource "aws_elasticache_user" "this" {
  count         = local.memorydb ? 0 : 1
  user_id       = local.user
  user_name     = local.user
  engine        = "redis"
  access_string = local.access_string
  tags          = var.tags

  authentication_mode {
    type      = "password"
    passwords = local.passwords
  }
}

# A group must have a user named "default". Connections without a user name get it; it is disabled and has no
# permissions.
resource "aws_elasticache_user" "disabled_default" {
  count         = local.memorydb ? 0 : 1
  user_id       = "${var.name}-default"
  user_name     = "default"
  engine        = "redis"
  access_string = "off resetkeys resetchannels -@all"
  tags          = var.tags

  authentication_mode {
    type = "no-password-required"
  }

  # AWS answers "no-password", which is the same and would look like a change in every plan.
  lifecycle {
    ignore_changes = [authentication_mode]
  }
}

resource "aws_elasticache_user_group" "this" {
  count         = local.memorydb ? 0 : 1
  user_group_id = var.name
  engine        = "redis"
  user_ids      = [aws_elasticache_user.this[0].user_id, aws_elasticache_user.disabled_default[0].user_id]
  tags          = var.tags
}

resource "aws_elasticache_replication_group" "this" {
  count                      = local.memorydb ? 0 : 1
  replication_group_id       = var.name
  description                = "Jobs, queues and streams of ${var.name}"
  engine                     = "redis"
  engine_version             = "7.1"
  node_type                  = local.node_type
  num_cache_clusters         = 1 + local.replicas
  automatic_failover_enabled = local.replicas > 0
  multi_az_enabled           = local.replicas > 0
  parameter_group_name       = aws_elasticache_parameter_group.this[0].name
  subnet_group_name          = aws_elasticache_subnet_group.this[0].name
  security_group_ids         = [var.security_group_id]
  user_group_ids             = [aws_elasticache_user_group.this[0].user_group_id]
  transit_encryption_enabled = true
  transit_encryption_mode    = "required"
  at_rest_encryption_enabled = true
  kms_key_id                 = var.kms_key_arn
  maintenance_window         = var.redis.maintenance_window
  snapshot_retention_limit   = var.redis.snapshot_retention_days
  final_snapshot_identifier  = var.redis.final_snapshot ? "${var.name}-final" : null
  tags                       = var.tags
}
