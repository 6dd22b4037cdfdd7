locals {
  # Metrics of the autoscaler; all of them have the dimension Pool.
  desired        = "DesiredRanks"
  running        = "RunningRanks"
  provisioned    = "ProvisionedRanks"
  working        = "MachinesRunning"
  refused        = "JobsRefused"
  strikes        = "Strikes"
  machines_up    = "MachinesUp"
  agent_timeouts = "MissingAgentTimeouts"
  daily_cost     = "DailyCost"
  exhausted      = "BudgetExhausted"
  failed_saves   = "FailedSaves"

  failed_credentials = "FailedCredentials"

  # Metrics that an expression refers to by a short name.
  pool_metrics = { for pool in keys(var.pools) : pool => {
    waiting = {
      for id, name in { desired = local.desired, running = local.running, refused = local.refused } :
      id => { namespace = var.metric_namespace, name = name, dimensions = { Pool = pool }, statistic = "Maximum" }
    }
    working = { working = { namespace = var.metric_namespace, name = local.working, dimensions = { Pool = pool }, statistic = "Maximum" } }
  } }

  period = 300

  minute = 60

  # Demand without machines, a value a minute: ranks whose machines have not come, and jobs for which the autoscaler
  # requests none. Such a job is larger than the pool, or all types of the pool are backed off. While a type is backed
  # off, a queue alternates between the two numbers, so the alarm needs their sum.
  waiting = "IF(desired > running, desired - running, 0) + refused"

  pool_alarms = [for pool, limits in var.pools : {
    # Jobs should have more ranks than they have, for longer than machines take to come.
    "${pool}-stuck-queue" = {
      description = "Jobs of the pool ${pool} are short of ranks for ${var.alarms.stuck_minutes} minutes: no capacity, a quota of AWS, or workers that don't come up. See docs/deploy.md."
      above       = 0
      periods     = var.alarms.stuck_minutes
      missing     = "ignore"
      expression = {
        id      = "short"
        text    = local.waiting
        label   = "Missing ranks and refused jobs"
        period  = local.minute
        metrics = local.pool_metrics[pool].waiting
      }
    }

    # Ranks are wanted, and there is no machine with a worker: those that are requested or boot have not helped for all
    # that time.
    "${pool}-dead-pool" = {
      description = "No machine of the pool ${pool} has had a worker for ${var.alarms.dead_minutes} minutes, though jobs want some. See docs/deploy.md."
      above       = 0
      periods     = var.alarms.dead_minutes
      missing     = "ignore"
      expression = {
        id      = "dead"
        text    = "IF(working < 1, ${local.waiting}, 0)"
        label   = "Waiting without a worker"
        period  = local.minute
        metrics = merge(local.pool_metrics[pool].waiting, local.pool_metrics[pool].working)
      }
    }

    "${pool}-refused-jobs" = {
      description = "For ${var.alarms.stuck_minutes} minutes there are jobs that the pool ${pool} starts no machines for: they are larger than the pool, or EC2 has no machines. `zerofleet pools` and the autoscaler's log say why."
      above       = 0
      periods     = max(1, floor(var.alarms.stuck_minutes * local.minute / local.period))
      missing     = "ignore"
      metric      = { namespace = var.metric_namespace, name = local.refused, dimensions = { Pool = pool }, statistic = "Minimum", period = local.period }
    }

    "${pool}-strikes" = {
      description = "Machines of the pool ${pool} were launched and never had a worker, or were not launched at all, more than ${var.alarms.strikes} times in succession. See docs/deploy.md."
      above       = var.alarms.strikes
      periods     = 1
      missing     = "notBreaching"
      metric      = { namespace = var.metric_namespace, name = local.strikes, dimensions = { Pool = pool }, statistic = "Maximum", period = local.period }
    }

    # A machine that leaves may be up beside its successor for a while.
    "${pool}-machines-up" = {
      description = "The pool ${pool} has had more than ${limits.max_machines} machines for 15 minutes: somebody else starts them, or they don't end. They cost money."
      above       = limits.max_machines
      periods     = 3
      missing     = "notBreaching"
      metric      = { namespace = var.metric_namespace, name = local.machines_up, dimensions = { Pool = pool }, statistic = "Minimum", period = local.period }
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
      description = "The pool ${pool} has used up its budget_per_day: no machine is added until midnight, UTC, and with on_budget = pause running jobs have saved and wait for it."
      above       = 0
      periods     = 1
      missing     = "notBreaching"
      metric      = { namespace = var.metric_namespace, name = local.exhausted, dimensions = { Pool = pool }, statistic = "Maximum", period = local.period }
      without_end = true
    }
  }]
}
