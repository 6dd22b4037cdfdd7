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

  pool_alarms = [for pool in var.pools : {
    # Jobs should have more ranks than they have, for longer than machines take to come.
    "${pool}-stuck-queue" = {
      description = "Jobs of the pool ${pool} are short of ranks for ${var.alarms.stuck_minutes} minutes: no capacity, a quota of AWS, or workers that don't come up. See docs/deploy.md."
      above       = 0
      periods     = var.alarms.stuck_minutes * 60 / local.period
      missing     = "notBreaching"
      expression = {
        id    = "short"
        text  = "desired - running"
        label = "Missing ranks"
        metrics = {
          desired = { namespace = var.metric_namespace, name = local.desired, dimensions = { Pool = pool }, statistic = "Minimum" }
          running = { namespace = var.metric_namespace, name = local.running, dimensions = { Pool = pool }, statistic = "Maximum" }
        }
      }
    }

    # Ranks are requested, and there is not one machine, not even a requested one.
    "${pool}-dead-pool" = {
      description = "No machine of the pool ${pool} for ${var.alarms.dead_minutes} minutes, though jobs want some. See docs/deploy.md."
      above       = 0
      periods     = var.alarms.dead_minutes * 60 / local.period
      missing     = "notBreaching"
      expression = {
        id    = "dead"
        text  = "IF(provisioned < 1, desired, 0)"
        label = "Ranks without a machine"
        metrics = {
          desired     = { namespace = var.metric_namespace, name = local.desired, dimensions = { Pool = pool }, statistic = "Minimum" }
          provisioned = { namespace = var.metric_namespace, name = local.provisioned, dimensions = { Pool = pool }, statistic = "Maximum" }
        }
      }
    }

    # The pool reports no metrics at all: no autoscaler serves it.
    "${pool}-silent-autoscaler" = {
      description = "The autoscaler has published nothing of the pool ${pool} for 15 minutes. Machines stay as they are."
      below       = 1
      periods     = 3
      missing     = "breaching"
      metric      = { namespace = var.metric_namespace, name = local.desired, dimensions = { Pool = pool }, statistic = "SampleCount", period = local.period }
    }

    "${pool}-budget-of-the-day" = {
      description = "The pool ${pool} has used up its budget_per_day: no machine is added until midnight, UTC."
      above       = 0
      periods     = 1
      missing     = "notBreaching"
      metric      = { namespace = var.metric_namespace, name = local.exhausted, dimensions = { Pool = pool }, statistic = "Maximum", period = local.period }
      without_end = true
    }
  }]
}
