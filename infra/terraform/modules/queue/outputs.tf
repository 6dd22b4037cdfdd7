locals {
  host = local.memorydb ? aws_memorydb_cluster.this[0].cluster_endpoint[0].address : aws_elasticache_replication_group.this[0].primary_endpoint_address
}

output "url_secret_arn" {
  description = "Secret with ZEROFLEET_REDIS_URL: host, user, password, and what a write needs."
  # The ARN of its version is the same text, and known only once Redis is there and the secret has its value. Programs
  # that started earlier would end at once.
  value = aws_secretsmanager_secret_version.url.arn
}

output "host" {
  description = "Where Redis listens, with TLS, on port 6379."
  value       = local.host
}

output "metrics" {
  description = "Where CloudWatch keeps this server's metrics: namespace, and the dimension that names it."
  value = local.memorydb ? {
    namespace  = "AWS/MemoryDB"
    dimensions = { ClusterName = var.name, NodeName = "${var.name}-0001-001" }
    memory     = "DatabaseMemoryUsagePercentage"
    } : {
    namespace  = "AWS/ElastiCache"
    dimensions = { CacheClusterId = "${var.name}-001" }
    memory     = "DatabaseMemoryUsagePercentage"
  }
}

output "access_string" {
  description = "What the programs' user may do, in the words of Redis' ACL."
  value       = local.access_string
}
