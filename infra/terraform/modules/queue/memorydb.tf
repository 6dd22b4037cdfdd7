resource "aws_memorydb_subnet_group" "this" {
  count      = local.memorydb ? 1 : 0
  name       = var.name
  subnet_ids = var.subnet_ids
  tags       = var.tags
}

resource "aws_memorydb_parameter_group" "this" {
  count  = local.memorydb ? 1 : 0
  name   = var.name
  family = "memorydb_redis7"
  tags   = var.tags

  # Silently dropping keys would lose jobs; a full memory must be an error instead.
  parameter {
    name  = "maxmemory-policy"
    value = "noeviction"
  }
}

resource "aws_memorydb_user" "this" {
  count         = local.memorydb ? 1 : 0
  user_name     = local.user
  access_string = local.access_string
  tags          = var.tags

  authentication_mode {
    type      = "password"
    passwords = local.passwords
  }
}

# Without the user "default": who has no password has no access.
resource "aws_memorydb_acl" "this" {
  count      = local.memorydb ? 1 : 0
  name       = var.name
  user_names = [aws_memorydb_user.this[0].user_name]
  tags       = var.tags
}

resource "aws_memorydb_cluster" "this" {
  count                    = local.memorydb ? 1 : 0
  name                     = var.name
  description              = "Jobs, queues and streams of ${var.name}"
  engine                   = "redis"
  engine_version           = "7.1"
  node_type                = local.node_type
  num_shards               = 1
  num_replicas_per_shard   = local.replicas
  acl_name                 = aws_memorydb_acl.this[0].name
  parameter_group_name     = aws_memorydb_parameter_group.this[0].name
  subnet_group_name        = aws_memorydb_subnet_group.this[0].name
  security_group_ids       = [var.security_group_id]
  tls_enabled              = true
  kms_key_arn              = var.kms_key_arn
  maintenance_window       = var.redis.maintenance_window
  snapshot_retention_limit = var.redis.snapshot_retention_days
  final_snapshot_name      = var.redis.final_snapshot ? "${var.name}-final" : null
  tags                     = var.tags
}
