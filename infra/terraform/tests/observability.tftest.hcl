mock_provider "aws" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  name             = "zf-test"
  region           = "eu-central-1"
  account_id       = "123456789012"
  pools            = ["gpu", "cpu"]
  metric_namespace = "Zerofleet"
  alarms           = { emails = ["oncall@example.com"], monthly_budget_usd = 1000, cost_tag = { key = "zerofleet:installation", value = "zf-test" } }
  balancer         = { arn_suffix = "app/zf-test/0123456789abcdef", target_group_arn_suffix = "targetgroup/zf-test/0123456789abcdef" }
  services         = { cluster = "zf-test", api = "api", autoscaler = "autoscaler" }
  redis            = { namespace = "AWS/MemoryDB", dimensions = { ClusterName = "zf-test" }, memory = "DatabaseMemoryUsagePercentage" }
}

run "stuck_queues_dead_pools_failing_saves_and_budgets_have_alarms" {
  command = plan

  module {
    source = "./modules/observability"
  }

  assert {
    condition     = [for name in keys(aws_cloudwatch_metric_alarm.this) : name if endswith(name, "-stuck-queue")] == ["cpu-stuck-queue", "gpu-stuck-queue"] && [for query in aws_cloudwatch_metric_alarm.this["gpu-stuck-queue"].metric_query : query.expression if query.id == "short"] == ["desired - running"] && aws_cloudwatch_metric_alarm.this["gpu-stuck-queue"].evaluation_periods == 4
    error_message = "Nobody hears of a stuck queue."
  }

  assert {
    condition     = [for query in aws_cloudwatch_metric_alarm.this["gpu-dead-pool"].metric_query : query.metric[0].dimensions.Pool if length(query.metric) > 0] == ["gpu", "gpu"]
    error_message = "Nobody hears of a dead pool."
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.this["gpu-silent-autoscaler"].treat_missing_data == "breaching" && aws_cloudwatch_metric_alarm.this["no-api"].treat_missing_data == "breaching"
    error_message = "Silence counts as good news."
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.this["failing-saves"].metric_name == aws_cloudwatch_log_metric_filter.this["failed-saves"].metric_transformation[0].name && aws_cloudwatch_metric_alarm.this["failing-saves"].namespace == aws_cloudwatch_log_metric_filter.this["failed-saves"].metric_transformation[0].namespace
    error_message = "Nobody hears of failing saves."
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.this["failed-credentials"].metric_name == aws_cloudwatch_log_metric_filter.this["failed-credentials"].metric_transformation[0].name && aws_cloudwatch_metric_alarm.this["failed-credentials"].namespace == aws_cloudwatch_log_metric_filter.this["failed-credentials"].metric_transformation[0].namespace
    error_message = "Nobody hears of workers that get no credentials."
  }

  assert {
    condition     = aws_budgets_budget.this[0].limit_amount == "1000" && one(aws_budgets_budget.this[0].cost_filter).values == tolist(["user:zerofleet:installation$zf-test"]) && length(aws_budgets_budget.this[0].notification) == 3
    error_message = "The budget notifies no address."
  }

  assert {
    condition     = length(aws_cloudwatch_metric_alarm.this) == 13 && alltrue([for alarm in values(aws_cloudwatch_metric_alarm.this) : alarm.alarm_actions == toset([aws_sns_topic.alarms.arn])]) && aws_sns_topic_subscription.email["oncall@example.com"].protocol == "email"
    error_message = "An alarm rings nowhere."
  }
}

run "only_this_accounts_services_may_use_the_topic" {
  command = plan

  module {
    source = "./modules/observability"
  }

  assert {
    condition     = alltrue([for statement in jsondecode(aws_sns_topic_policy.alarms.policy).Statement : statement.Action == ["sns:Publish"] && statement.Condition.StringEquals["aws:SourceAccount"] == "123456789012"])
    error_message = "Other accounts may send alarms."
  }
}

run "logs_are_kept_for_a_while_and_the_dashboard_shows_each_pool" {
  command = plan

  module {
    source = "./modules/observability"
  }

  assert {
    condition     = keys(aws_cloudwatch_log_group.this) == ["api", "autoscaler", "workers"] && alltrue([for group in values(aws_cloudwatch_log_group.this) : group.retention_in_days == 30])
    error_message = "Logs are kept for ever, or one is missing."
  }

  assert {
    condition     = [for widget in jsondecode(aws_cloudwatch_dashboard.this.dashboard_body).widgets : widget.properties.title if endswith(widget.properties.title, ": ranks")] == ["cpu: ranks", "gpu: ranks"]
    error_message = "A pool is missing on the dashboard."
  }
}
