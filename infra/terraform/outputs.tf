output "api" {
  description = "Where the API is. Point the name of the certificate at `dns_name` (an alias record of `zone_id`)."
  value = {
    dns_name           = module.api.balancer.dns_name
    zone_id            = module.api.balancer.zone_id
    api_key_secret_arn = module.api.api_key_secret_arn
  }
}

output "object_store_url" {
  description = "ZEROFLEET_OBJECT_STORE of this installation, for `zerofleet recover`."
  value       = module.storage.object_store_url
}

output "redis" {
  description = "Host of Redis, and the secret with its URL."
  value = {
    host           = module.queue.host
    url_secret_arn = module.queue.url_secret_arn
  }
}

output "groups" {
  description = "Auto Scaling groups of the pools."
  value       = module.workers.groups
}

output "attempt_role_arn" {
  description = "Role with the rights of one attempt of one job (modules/workers)."
  value       = module.workers.attempt_role_arn
}

output "environment" {
  description = "Variables of all programs, without the secret ones."
  value = {
    api        = module.api.environment
    autoscaler = module.autoscaler.environment
    workers    = module.workers.environment
  }
}

output "alarm_topic_arn" {
  description = "Topic of all alarms."
  value       = module.observability.alarm_topic_arn
}

output "network" {
  description = "VPC and subnets, for things of one's own beside it."
  value = {
    vpc_id             = module.network.vpc_id
    private_subnet_ids = module.network.private_subnet_ids
    security_group_ids = module.network.security_group_ids
  }
}
