resource "aws_cloudwatch_metric_alarm" "failed_saves" {
  alarm_name          = "${var.name}-failing-saves"
  alarm_description   = "More than ${var.alarms.failed_saves} checkpoints could not be saved in five minutes: jobs go on, but a fault now would cost what they did since the last good one. See docs/checkpoints.md."
  namespace           = var.metric_namespace
  metric_name         = local.failed_saves
  statistic           = "Sum"
  period              = local.period
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.alarms.failed_saves
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "failed_credentials" {
  alarm_name          = "${var.name}-failed-credentials"
  alarm_description   = "For ten minutes workers get no credentials for their jobs: STS is away, or the role of attempts does not let them in (docs/access.md)."
  namespace           = var.metric_namespace
  metric_name         = local.failed_credentials
  statistic           = "Sum"
  period              = local.period
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 2
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "api_errors" {
  alarm_name          = "${var.name}-api-errors"
  alarm_description   = "More than 1 % of the API's answers were errors of its own for 15 minutes."
  comparison_operator = "GreaterThanThreshold"
  threshold           = 1
  evaluation_periods  = 3
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
  tags                = var.tags

  metric_query {
    id          = "share"
    expression  = "IF(requests > 0, 100 * (FILL(own, 0) + FILL(balancer, 0)) / requests, 0)"
    label       = "Errors in percent"
    return_data = true
  }

  dynamic "metric_query" {
    for_each = {
      requests = "RequestCount"
      own      = "HTTPCode_Target_5XX_Count"
      balancer = "HTTPCode_ELB_5XX_Count"
    }

    content {
      id = metric_query.key

      metric {
        namespace   = "AWS/ApplicationELB"
        metric_name = metric_query.value
        dimensions  = { LoadBalancer = var.balancer.arn_suffix }
        stat        = "Sum"
        period      = local.period
      }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_api" {
  alarm_name          = "${var.name}-no-api"
  alarm_description   = "No task of the API is ready: Redis or the object store may not answer (/readyz says which)."
  namespace           = "AWS/ApplicationELB"
  metric_name         = "HealthyHostCount"
  dimensions          = { LoadBalancer = var.balancer.arn_suffix, TargetGroup = var.balancer.target_group_arn_suffix }
  statistic           = "Maximum"
  period              = 60
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  evaluation_periods  = 3
  treat_missing_data  = "breaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
  tags                = var.tags
}

# A full Redis refuses new jobs: it must not drop old ones.
resource "aws_cloudwatch_metric_alarm" "redis_memory" {
  alarm_name          = "${var.name}-redis-memory"
  alarm_description   = "Redis is 80 % full. It refuses writes when it is full: choose a larger node_type."
  namespace           = var.redis.namespace
  metric_name         = var.redis.memory
  dimensions          = var.redis.dimensions
  statistic           = "Maximum"
  period              = local.period
  comparison_operator = "GreaterThanThreshold"
  threshold           = 80
  evaluation_periods  = 2
  treat_missing_data  = "missing"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
  tags                = var.tags
}
