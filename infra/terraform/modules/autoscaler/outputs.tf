output "service_name" {
  description = "ECS service of the autoscaler."
  value       = aws_ecs_service.autoscaler.name
}

output "metric_namespace" {
  description = "Namespace of its numbers in CloudWatch."
  value       = var.service.metric_namespace
}

output "environment" {
  description = "Variables of the task, without the secret one."
  value       = local.environment
}
