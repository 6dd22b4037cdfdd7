locals {
  pool_widgets = [for index, pool in sort(keys(var.pools)) : [
    {
      type   = "metric"
      x      = 0
      y      = 6 * index
      width  = 12
      height = 6
      properties = {
        title  = "${pool}: ranks"
        region = var.region
        period = 60
        stat   = "Average"
        metrics = [
          [var.metric_namespace, local.desired, "Pool", pool, { label = "desired" }],
          [var.metric_namespace, local.running, "Pool", pool, { label = "running" }],
          [var.metric_namespace, local.provisioned, "Pool", pool, { label = "provisioned" }],
        ]
      }
    },
    {
      type   = "metric"
      x      = 12
      y      = 6 * index
      width  = 12
      height = 6
      properties = {
        title  = "${pool}: refused jobs, strikes, missing agents, daily cost"
        region = var.region
        period = 60
        stat   = "Maximum"
        metrics = [
          [var.metric_namespace, local.refused, "Pool", pool, { label = "refused jobs" }],
          [var.metric_namespace, local.strikes, "Pool", pool, { label = "strikes" }],
          [var.metric_namespace, local.agent_timeouts, "Pool", pool, { label = "missing agents" }],
          [var.metric_namespace, local.daily_cost, "Pool", pool, { label = "daily cost", yAxis = "right" }],
        ]
      }
    },
  ]]

  services_y = 6 * length(var.pools)

  service_widgets = [
    {
      type   = "metric"
      x      = 0
      y      = local.services_y
      width  = 12
      height = 6
      properties = {
        title  = "API: requests and errors"
        region = var.region
        period = 60
        stat   = "Sum"
        metrics = [
          ["AWS/ApplicationELB", "RequestCount", "LoadBalancer", var.balancer.arn_suffix],
          ["AWS/ApplicationELB", "HTTPCode_Target_5XX_Count", "LoadBalancer", var.balancer.arn_suffix],
          ["AWS/ApplicationELB", "HTTPCode_ELB_5XX_Count", "LoadBalancer", var.balancer.arn_suffix],
          ["AWS/ApplicationELB", "TargetResponseTime", "LoadBalancer", var.balancer.arn_suffix, { stat = "p99", yAxis = "right", label = "p99 in seconds" }],
        ]
      }
    },
    {
      type   = "metric"
      x      = 12
      y      = local.services_y
      width  = 12
      height = 6
      properties = {
        title  = "CPU utilization in percent"
        region = var.region
        period = 60
        stat   = "Average"
        metrics = [
          ["AWS/ECS", "CPUUtilization", "ClusterName", var.services.cluster, "ServiceName", var.services.api, { label = "API" }],
          ["AWS/ECS", "CPUUtilization", "ClusterName", var.services.cluster, "ServiceName", var.services.autoscaler, { label = "autoscaler" }],
        ]
      }
    },
    {
      type   = "metric"
      x      = 0
      y      = local.services_y + 6
      width  = 12
      height = 6
      properties = {
        title  = "Redis: memory and CPU in percent"
        region = var.region
        period = 60
        stat   = "Maximum"
        metrics = [
          for metric in [var.redis.memory, "EngineCPUUtilization"] :
          concat([var.redis.namespace, metric], flatten([for name, value in var.redis.dimensions : [name, value]]))
        ]
      }
    },
    {
      type   = "metric"
      x      = 12
      y      = local.services_y + 6
      width  = 12
      height = 6
      properties = {
        title   = "Failed saves"
        region  = var.region
        period  = 300
        stat    = "Sum"
        metrics = [[var.metric_namespace, local.failed_saves]]
      }
    },
  ]
}

resource "aws_cloudwatch_dashboard" "this" {
  dashboard_name = var.name
  # Widgets differ in shape, so they are put together as text.
  dashboard_body = "{\"widgets\":[${join(",", concat(flatten([for widgets in local.pool_widgets : [for widget in widgets : jsonencode(widget)]]), [for widget in local.service_widgets : jsonencode(widget)]))}]}"
}
