output "groups" {
  description = "Auto Scaling groups, by pool, kind and way of paying: what the autoscaler scales."
  value = {
    for name, group in local.groups : name => {
      name           = "${var.name}-${name}"
      pool           = group.pool
      slots          = group.machines.slots
      max            = group.max
      price_per_hour = group.price_per_hour
    }
  }
}

output "group_arns" {
  description = "ARNs of the Auto Scaling groups."
  value       = [for group in aws_autoscaling_group.this : group.arn]

  # Who scales the groups waits until machines that end are held.
  depends_on = [aws_autoscaling_lifecycle_hook.drain]
}

output "attempt_role_arn" {
  description = "Role with the rights of one attempt of one job, for sessions tagged zerofleet:job."
  value       = aws_iam_role.attempt.arn
}

output "environment" {
  description = "Variables of the workers, without the secret one, by pool and kind of machines."
  value       = local.environment
}
