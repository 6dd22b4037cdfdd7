locals {
  templates = merge(flatten([
    for pool_name, pool in var.pools : [
      for kind_name, kind in pool.machines : [
        for suffix, reserved in { "" = null, "-reserved" = kind.reserved } : {
          "${pool_name}-${kind_name}${suffix}" = {
            pool           = pool_name
            machines       = kind
            drain_seconds  = pool.drain_seconds
            settings       = pool.settings
            reservation    = try(reserved.capacity_reservation, null)
            capacity_block = try(reserved.capacity_block, false)
          }
        } if suffix == "" ? kind.spot != null || kind.on_demand != null : reserved != null
      ]
    ]
  ])...)

  environment = {
    for name, template in local.templates : name => merge(
      {
        AWS_REGION                  = var.region
        ZEROFLEET_POOL              = template.pool
        ZEROFLEET_SLOTS             = tostring(template.machines.slots)
        ZEROFLEET_DATA_DIR          = "/var/lib/zerofleet"
        ZEROFLEET_OBJECT_STORE      = var.storage.object_store_url
        ZEROFLEET_PREEMPTION_SOURCE = "aws"
        ZEROFLEET_MACHINE_ID        = "aws"
        ZEROFLEET_TOPOLOGY          = "aws"
        # Ends before the timeouts of Docker and the lifecycle hook.
        ZEROFLEET_SAVE_SECONDS = tostring(template.drain_seconds - 30)
        # Ranks get sessions of this role, tagged with their job, and none of the machine's permissions.
        ZEROFLEET_ATTEMPT_ROLE = local.attempt_role_arn
        # The price of a rank is that of the most expensive purchase option, so that limits of jobs
        # hold on all of them.
        ZEROFLEET_PRICE_PER_RANK_HOUR = tostring(max(
          try(template.machines.spot.price_per_hour, 0),
          try(template.machines.on_demand.price_per_hour, 0),
          try(template.machines.reserved.price_per_hour, 0),
        ) / template.machines.slots)
      },
      template.machines.threads_per_rank == null ? {} : {
        ZEROFLEET_THREADS_PER_RANK = tostring(template.machines.threads_per_rank)
      },
      template.settings,
    )
  }
}

resource "aws_launch_template" "this" {
  for_each    = local.templates
  name        = "${var.name}-${each.key}"
  description = "Workers of the pool ${each.value.pool}"
  image_id    = var.machine_images[each.value.machines.accelerator]
  # Groups name the types; this one is for an operator who starts a machine from the template by
  # hand.
  instance_type                        = each.value.machines.instance_types[0]
  instance_initiated_shutdown_behavior = "terminate"
  update_default_version               = true
  tags                                 = var.tags

  # Version 2 of the metadata service only, and no further than this machine: a process behind a network bridge gets no
  # credentials.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
    instance_metadata_tags      = "disabled"
  }

  iam_instance_profile {
    arn = aws_iam_instance_profile.worker.arn
  }

  dynamic "network_interfaces" {
    for_each = range(max(1, local.efa_cards[each.key]))
    iterator = card

    content {
      # With several interfaces EC2 takes no word on public addresses; the private subnets give none.
      associate_public_ip_address = local.efa_cards[each.key] == 0 ? false : null
      delete_on_termination       = true
      interface_type              = local.efa_cards[each.key] == 0 ? null : card.value == 0 ? "efa" : "efa-only"
      network_card_index          = local.efa_cards[each.key] == 0 ? null : card.value
      device_index                = card.value == 0 ? 0 : 1
      security_groups = [
        var.network.worker_security_group,
        var.network.pool_security_group_ids[each.value.pool],
      ]
    }
  }

  dynamic "instance_market_options" {
    for_each = each.value.capacity_block ? ["capacity-block"] : []

    content {
      market_type = instance_market_options.value
    }
  }

  dynamic "capacity_reservation_specification" {
    for_each = each.value.reservation[*]

    content {
      capacity_reservation_target {
        capacity_reservation_id                 = startswith(capacity_reservation_specification.value, "cr-") ? capacity_reservation_specification.value : null
        capacity_reservation_resource_group_arn = startswith(capacity_reservation_specification.value, "cr-") ? null : capacity_reservation_specification.value
      }
    }
  }

  # Nothing persists here: data that a job needs later is in the object store.
  block_device_mappings {
    device_name = "/dev/xvda"

    ebs {
      encrypted             = true
      volume_type           = "gp3"
      volume_size           = each.value.machines.disk_gib
      throughput            = 250
      delete_on_termination = true
    }
  }

  dynamic "placement" {
    for_each = try([aws_placement_group.this[each.key].name], [])

    content {
      group_name = placement.value
    }
  }

  private_dns_name_options {
    hostname_type = "resource-name"
  }

  monitoring {
    enabled = false
  }

  dynamic "tag_specifications" {
    for_each = ["volume", "network-interface"]

    content {
      resource_type = tag_specifications.value
      tags          = merge(var.tags, { Name = "${var.name}-${each.key}" })
    }
  }

  user_data = base64encode(local.user_data[each.key])

  lifecycle {
    create_before_destroy = true
  }
}
