resource "aws_budgets_budget" "this" {
  count        = var.alarms.monthly_budget_usd == null ? 0 : 1
  name         = var.name
  budget_type  = "COST"
  time_unit    = "MONTHLY"
  limit_amount = tostring(var.alarms.monthly_budget_usd)
  limit_unit   = "USD"
  tags         = var.tags

  dynamic "cost_filter" {
    for_each = var.alarms.cost_tag == null ? [] : [var.alarms.cost_tag]

    content {
      name   = "TagKeyValue"
      values = [format("user:%s$%s", cost_filter.value.key, cost_filter.value.value)]
    }
  }

  dynamic "notification" {
    for_each = { "50" = "ACTUAL", "80" = "ACTUAL", "100" = "FORECASTED" }

    content {
      comparison_operator       = "GREATER_THAN"
      threshold                 = tonumber(notification.key)
      threshold_type            = "PERCENTAGE"
      notification_type         = notification.value
      subscriber_sns_topic_arns = [aws_sns_topic.alarms.arn]
    }
  }
}
