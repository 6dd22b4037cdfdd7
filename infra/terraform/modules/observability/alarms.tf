# An alarm watches a metric, or an expression over several. It goes off when the value is above its threshold (or below
# it) in `periods` periods in succession.
resource "aws_cloudwatch_metric_alarm" "this" {
  for_each            = merge(local.service_alarms, local.pool_alarms...)
  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  namespace           = try(each.value.metric.namespace, null)
  metric_name         = try(each.value.metric.name, null)
  dimensions          = try(each.value.metric.dimensions, null)
  statistic           = try(each.value.metric.statistic, null)
  period              = try(each.value.metric.period, null)
  comparison_operator = try(each.value.below, null) == null ? "GreaterThanThreshold" : "LessThanThreshold"
  threshold           = try(each.value.below, each.value.above)
  evaluation_periods  = each.value.periods
  treat_missing_data  = each.value.missing
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = try(each.value.without_end, false) ? null : [aws_sns_topic.alarms.arn]
  tags                = var.tags

  dynamic "metric_query" {
    for_each = try([each.value.expression], [])

    content {
      id          = metric_query.value.id
      expression  = metric_query.value.text
      label       = metric_query.value.label
      return_data = true
    }
  }

  dynamic "metric_query" {
    for_each = try(each.value.expression.metrics, {})

    content {
      id = metric_query.key

      metric {
        namespace   = metric_query.value.namespace
        metric_name = metric_query.value.name
        dimensions  = metric_query.value.dimensions
        stat        = metric_query.value.statistic
        period      = try(each.value.expression.period, local.period)
      }
    }
  }
}
