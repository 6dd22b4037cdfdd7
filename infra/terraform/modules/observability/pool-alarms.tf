locals {
  # Metrics of the autoscaler; all of them have the dimension Pool.
  desired        = "DesiredRanks"
  running        = "RunningRanks"
  provisioned    = "ProvisionedRanks"
  unschedulable  = "UnschedulableJobs"
  agent_timeouts = "MissingAgentTimeouts"
  daily_cost     = "DailyCost"
  exhausted      = "BudgetExhausted"
  failed_saves   = "FailedSaves"

  failed_credentials = "FailedCredentials"

  period = 300
}

# Jobs should have more ranks than they have, for longer than machines take to start.
resource "aws_cloudwatch_metric_alarm" "stuck_queue" {
  for_each            = var.pools
  alarm_name          = "${var.name}-${each.key}-stuck-queue"
  alarm_description   = "Jobs of the pool ${each.key} are short of ranks for ${var.alarms.stuck_minutes} minutes: no capacity, a quota of AWS, or workers that don't come up. See docs/deploy.md."
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = var.alarms.stuck_minutes * 60 / local.period
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
  tags                = var.tags

  metric_query {
    id          = "short"
    expression  = "desired - running"
    label       = "Missing ranks"
    return_data = true
  }

  dynamic "metric_query" {
    for_each = { desired = { name = local.desired, stat = "Minimum" }, running = { name = local.running, stat = "Maximum" } }

    content {
      id = metric_query.key

      metric {
        namespace   = var.metric_namespace
        metric_name = metric_query.value.name
        dimensions  = { Pool = each.key }
        stat        = metric_query.value.stat
        period      = local.period
      }
    }
  }
}

# Jobs need ranks, and the pool has neither a machine nor a requested one.
resource "aws_cloudwatch_metric_alarm" "dead_pool" {
  for_each            = var.pools
  alarm_name          = "${var.name}-${each.key}-dead-pool"
  alarm_description   = "No machine of the pool ${each.key} for ${var.alarms.dead_minutes} minutes, although jobs need some. See docs/deploy.md."
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = var.alarms.dead_minutes * 60 / local.period
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
  tags                = var.tags

  metric_query {
    id          = "dead"
    expression  = "IF(provisioned < 1, desired, 0)"
    label       = "Ranks without a machine"
    return_data = true
  }

  dynamic "metric_query" {
    for_each = { desired = { name = local.desired, stat = "Minimum" }, provisioned = { name = local.provisioned, stat = "Maximum" } }

    content {
      id = metric_query.key

      metric {
        namespace   = var.metric_namespace
        metric_name = metric_query.value.name
        dimensions  = { Pool = each.key }
        stat        = metric_query.value.stat
        period      = local.period
      }
    }
  }
}

# The pool reports no metrics at all: no autoscaler serves it.
resource "aws_cloudwatch_metric_alarm" "silent_autoscaler" {
  for_each            = var.pools
  alarm_name          = "${var.name}-${each.key}-silent-autoscaler"
  alarm_description   = "The autoscaler has published no metrics of the pool ${each.key} for 15 minutes. Machines stay as they are."
  namespace           = var.metric_namespace
  metric_name         = local.desired
  dimensions          = { Pool = each.key }
  statistic           = "SampleCount"
  period              = local.period
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  evaluation_periods  = 3
  treat_missing_data  = "breaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
  tags                = var.tags
}

resource "aws_cloudwatch_metric_alarm" "pool_budget" {
  for_each            = var.pools
  alarm_name          = "${var.name}-${each.key}-budget-of-the-day"
  alarm_description   = "The pool ${each.key} has used up its budget_per_day: no machine is added until midnight, UTC."
  namespace           = var.metric_namespace
  metric_name         = local.exhausted
  dimensions          = { Pool = each.key }
  statistic           = "Maximum"
  period              = local.period
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = 1
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  tags                = var.tags
}
