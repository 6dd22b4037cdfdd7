locals {
  # Auto Scaling groups, one for each kind of machines and purchase option, named <pool>-<kind>-<way>. Reserved machines
  # have a launch template of their own, which names the reservation.
  groups = merge(flatten([
    for pool_name, pool in var.pools : [
      for kind_name, kind in pool.machines : [
        for way, terms in { spot = kind.spot, on-demand = kind.on_demand, reserved = kind.reserved } : {
          "${pool_name}-${kind_name}-${way}" = {
            pool           = pool_name
            kind           = kind_name
            machines       = kind
            template       = way == "reserved" ? "${pool_name}-${kind_name}-reserved" : "${pool_name}-${kind_name}"
            spot           = way == "spot"
            reserved       = way == "reserved"
            max            = terms.max
            price_per_hour = terms.price_per_hour
            drain_seconds  = pool.drain_seconds
            zones          = coalesce(pool.availability_zones, keys(var.network.private_subnet_ids))
          }
        } if terms != null
      ]
    ]
  ])...)
}

resource "aws_autoscaling_group" "this" {
  for_each            = local.groups
  name                = "${var.name}-${each.key}"
  vpc_zone_identifier = [for zone in each.value.zones : var.network.private_subnet_ids[zone]]

  # The autoscaler sets the desired capacity. Without an autoscaler it stays as it is: initially none.
  min_size         = 0
  max_size         = each.value.max
  desired_capacity = 0

  # Only the autoscaler terminates machines, and it names which: one without a job. Moving machines between zones for
  # balance would terminate busy ones.
  protect_from_scale_in = true
  suspended_processes   = ["AZRebalance"]

  # A Spot machine that is likely to be taken away gets a successor before that; its worker hands its jobs over.
  capacity_rebalance = each.value.spot

  health_check_type         = "EC2"
  health_check_grace_period = 300
  default_instance_warmup   = 0
  wait_for_capacity_timeout = "0"

  # A Capacity Block can't be used with a policy for several types.
  dynamic "launch_template" {
    for_each = each.value.reserved ? [aws_launch_template.this[each.value.template]] : []

    content {
      id      = launch_template.value.id
      version = launch_template.value.latest_version
    }
  }

  dynamic "mixed_instances_policy" {
    for_each = each.value.reserved ? [] : [aws_launch_template.this[each.value.template]]

    content {
      instances_distribution {
        on_demand_base_capacity                  = 0
        on_demand_percentage_above_base_capacity = each.value.spot ? 0 : 100
        on_demand_allocation_strategy            = "prioritized"
        spot_allocation_strategy                 = "price-capacity-optimized"
      }

      launch_template {
        launch_template_specification {
          launch_template_id = mixed_instances_policy.value.id
          version            = mixed_instances_policy.value.latest_version
        }

        dynamic "override" {
          for_each = each.value.machines.instance_types

          content {
            instance_type = override.value
          }
        }
      }
    }
  }

  dynamic "tag" {
    for_each = merge(var.tags, { Name = "${var.name}-${each.key}", "zerofleet:pool" = each.value.pool })

    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = true
    }
  }

  lifecycle {
    ignore_changes = [desired_capacity]
  }

  # A machine reads the secret while it boots, and its first job needs a session.
  depends_on = [
    aws_iam_role_policy.attempt,
    aws_iam_role_policy.worker,
    aws_vpc_security_group_egress_rule.efa,
    aws_vpc_security_group_ingress_rule.efa,
  ]
}

# A machine waits here before it is terminated, while its worker saves and returns its jobs. The worker reads the state
# from the machine's metadata, and the autoscaler completes the lifecycle action. Otherwise the wait ends after
# `drain_seconds`.
resource "aws_autoscaling_lifecycle_hook" "drain" {
  for_each               = local.groups
  name                   = "drain"
  autoscaling_group_name = aws_autoscaling_group.this[each.key].name
  lifecycle_transition   = "autoscaling:EC2_INSTANCE_TERMINATING"
  heartbeat_timeout      = each.value.drain_seconds
  default_result         = "CONTINUE"
}
