mock_provider "aws" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  name             = "zf-test"
  region           = "eu-central-1"
  account_id       = "123456789012"
  pools            = { gpu = { max_machines = 20 }, cpu = { max_machines = 3 } }
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
    condition     = [for name in keys(aws_cloudwatch_metric_alarm.this) : name if endswith(name, "-stuck-queue")] == ["cpu-stuck-queue", "gpu-stuck-queue"] && [for query in aws_cloudwatch_metric_alarm.this["gpu-stuck-queue"].metric_query : query.expression if query.id == "short"] == ["IF(desired > running, desired - running, 0) + refused"]
    error_message = "Nobody hears of a stuck queue."
  }

  # Five minutes at a time would hide a queue that goes to and fro between wanted and refused, and a metric that is late
  # is no news.
  assert {
    condition = alltrue(flatten([for name, minutes in { gpu-stuck-queue = 20, gpu-dead-pool = 15 } : [
      aws_cloudwatch_metric_alarm.this[name].evaluation_periods == minutes,
      aws_cloudwatch_metric_alarm.this[name].treat_missing_data == "ignore",
      alltrue([for query in aws_cloudwatch_metric_alarm.this[name].metric_query : query.metric[0].period == 60 if length(query.metric) > 0]),
    ]]))
    error_message = "The alarm ends while a type is backed off."
  }

  # Requested machines are no help: only one with a worker ends it.
  assert {
    condition     = { for query in aws_cloudwatch_metric_alarm.this["gpu-dead-pool"].metric_query : query.id => "${query.metric[0].metric_name} ${query.metric[0].dimensions.Pool}" if length(query.metric) > 0 } == { desired = "DesiredRanks gpu", refused = "JobsRefused gpu", running = "RunningRanks gpu", working = "MachinesRunning gpu" } && [for query in aws_cloudwatch_metric_alarm.this["gpu-dead-pool"].metric_query : query.expression if query.id == "dead"] == ["IF(working < 1, IF(desired > running, desired - running, 0) + refused, 0)"]
    error_message = "Nobody hears of a dead pool."
  }

  assert {
    condition     = [for name in ["refused-jobs", "strikes", "machines-up"] : "${aws_cloudwatch_metric_alarm.this["gpu-${name}"].statistic} ${aws_cloudwatch_metric_alarm.this["gpu-${name}"].metric_name} > ${aws_cloudwatch_metric_alarm.this["gpu-${name}"].threshold} in ${aws_cloudwatch_metric_alarm.this["gpu-${name}"].evaluation_periods}"] == ["Minimum JobsRefused > 0 in 4", "Maximum Strikes > 2 in 1", "Minimum MachinesUp > 20 in 3"]
    error_message = "Nobody hears of refused jobs, of machines that never work, or of too many."
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
    condition     = length(aws_cloudwatch_metric_alarm.this) == 19 && alltrue([for alarm in values(aws_cloudwatch_metric_alarm.this) : alarm.alarm_actions == toset([aws_sns_topic.alarms.arn])]) && aws_sns_topic_subscription.email["oncall@example.com"].protocol == "email"
    error_message = "An alarm rings nowhere."
  }
}

run "alarms_and_logs_are_encrypted_with_the_key" {
  command = plan

  module {
    source = "./modules/observability"
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-central-1:123456789012:key/own"
  }

  assert {
    condition     = aws_sns_topic.alarms.kms_master_key_id == var.kms_key_arn && alltrue([for group in values(aws_cloudwatch_log_group.this) : group.kms_key_id == var.kms_key_arn])
    error_message = "Alarms or logs lie open."
  }
}

run "a_limit_below_one_machine_is_refused" {
  command = plan

  module {
    source = "./modules/observability"
  }

  variables {
    pools  = { gpu = { max_machines = 0 } }
    alarms = { strikes = -1 }
  }

  expect_failures = [var.pools, var.alarms]
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
