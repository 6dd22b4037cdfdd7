output "cluster" {
  description = "ECS cluster, for other services of this installation."
  value = {
    arn  = aws_ecs_cluster.this.arn
    name = aws_ecs_cluster.this.name
  }
}

output "service_name" {
  description = "ECS service of the API."
  value       = aws_ecs_service.api.name
}

output "balancer" {
  description = "The load balancer: host name and zone for a DNS alias, and what its metrics are called by."
  value = {
    dns_name                = aws_lb.this.dns_name
    zone_id                 = aws_lb.this.zone_id
    arn_suffix              = aws_lb.this.arn_suffix
    target_group_arn_suffix = aws_lb_target_group.api.arn_suffix
  }
}

output "api_key_secret_arn" {
  description = "Secret with the first API key."
  value       = aws_secretsmanager_secret.api_key.arn
}

output "environment" {
  description = "Variables of the tasks, without the secret ones."
  value       = local.environment
}
