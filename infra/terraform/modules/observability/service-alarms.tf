locals {
  service_alarms = {
    failing-saves = {
      description = "More than ${var.alarms.failed_saves} checkpoints could not be saved in five minutes: jobs go on, but a fault now would cost what they did since the last good one. See docs/checkpoints.md."
      above       = var.alarms.failed_saves
      periods     = 1
      missing     = "notBreaching"
      metric      = { namespace = var.metric_namespace, name = local.failed_saves, statistic = "Sum", period = local.period }
    }

    failed-credentials = {
      description = "For ten minutes workers get no credentials for their jobs: STS is away, or the role of attempts does not let them in (docs/access.md)."
      above       = 0
      periods     = 2
      missing     = "notBreaching"
      metric      = { namespace = var.metric_namespace, name = local.failed_credentials, statistic = "Sum", period = local.period }
    }

    api-errors = {
      description = "More than 1 % of the API's answers were errors of its own for 15 minutes."
      above       = 1
      periods     = 3
      missing     = "notBreaching"
      expression = {
        id    = "share"
        text  = "IF(requests > 0, 100 * (FILL(own, 0) + FILL(balancer, 0)) / requests, 0)"
        label = "Errors in percent"
        metrics = {
          for id, name in { requests = "RequestCount", own = "HTTPCode_Target_5XX_Count", balancer = "HTTPCode_ELB_5XX_Count" } :
          id => { namespace = "AWS/ApplicationELB", name = name, dimensions = { LoadBalancer = var.balancer.arn_suffix }, statistic = "Sum" }
        }
      }
    }

    no-api = {
      description = "No task of the API serves: see its service in ECS, and the log group of the API."
      below       = 1
      periods     = 3
      missing     = "breaching"
      metric = {
        namespace  = "AWS/ApplicationELB"
        name       = "HealthyHostCount"
        dimensions = { LoadBalancer = var.balancer.arn_suffix, TargetGroup = var.balancer.target_group_arn_suffix }
        statistic  = "Maximum"
        period     = 60
      }
    }

    # A full Redis refuses new jobs: it must not drop old ones.
    redis-memory = {
      description = "Redis is 80 % full. It refuses writes when it is full: choose a larger node_type."
      above       = 80
      periods     = 2
      missing     = "missing"
      metric      = { namespace = var.redis.namespace, name = var.redis.memory, dimensions = var.redis.dimensions, statistic = "Maximum", period = local.period }
    }
  }
}
