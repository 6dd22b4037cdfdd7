resource "aws_ecs_service" "api" {
  name                               = "api"
  cluster                            = aws_ecs_cluster.this.id
  task_definition                    = aws_ecs_task_definition.api.arn
  launch_type                        = "FARGATE"
  desired_count                      = var.service.min_tasks
  deployment_minimum_healthy_percent = 100
  deployment_maximum_percent         = 200
  health_check_grace_period_seconds  = 60
  enable_execute_command             = false
  propagate_tags                     = "SERVICE"
  tags                               = var.tags

  network_configuration {
    subnets          = var.network.private_subnet_ids
    security_groups  = [var.network.security_group_ids.api]
    assign_public_ip = false
  }

  load_balancer {
    target_group_arn = aws_lb_target_group.api.arn
    container_name   = "api"
    container_port   = var.service.port
  }

  # A version that does not become healthy is taken back.
  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  lifecycle {
    ignore_changes = [desired_count]
  }

  depends_on = [
    aws_lb_listener.https,
    aws_secretsmanager_secret_version.api_key,
    aws_iam_role_policy.execution,
    aws_iam_role_policy.task,
  ]
}
