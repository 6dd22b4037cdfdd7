resource "aws_appautoscaling_target" "api" {
  service_namespace  = "ecs"
  scalable_dimension = "ecs:service:DesiredCount"
  resource_id        = "service/${aws_ecs_cluster.this.name}/${aws_ecs_service.api.name}"
  min_capacity       = var.service.min_tasks
  max_capacity       = var.service.max_tasks
  tags               = var.tags
}

resource "aws_appautoscaling_policy" "this" {
  for_each = {
    cpu      = { target = var.service.target_cpu_percent, metric = "ECSServiceAverageCPUUtilization", label = null }
    requests = { target = var.service.target_requests, metric = "ALBRequestCountPerTarget", label = "${aws_lb.this.arn_suffix}/${aws_lb_target_group.api.arn_suffix}" }
  }
  name               = "${var.name}-api-${each.key}"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.api.service_namespace
  scalable_dimension = aws_appautoscaling_target.api.scalable_dimension
  resource_id        = aws_appautoscaling_target.api.resource_id

  target_tracking_scaling_policy_configuration {
    target_value       = each.value.target
    scale_out_cooldown = 60
    scale_in_cooldown  = 300

    predefined_metric_specification {
      predefined_metric_type = each.value.metric
      resource_label         = each.value.label
    }
  }
}
