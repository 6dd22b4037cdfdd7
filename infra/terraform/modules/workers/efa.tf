# Machines with several network cards reach each other at full speed only by EFA (Elastic Fabric Adapter), with an
# interface on each card.

locals {
  # Network cards by type. The first has addresses (EFA with ENA), the others carry EFA only.
  network_cards = {
    "p4d.24xlarge"     = 4
    "p4de.24xlarge"    = 4
    "p5.48xlarge"      = 32
    "p5e.48xlarge"     = 32
    "p5en.48xlarge"    = 16
    "p6-b200.48xlarge" = 8
  }

  # EFA interfaces of each template; 0 is one ordinary interface.
  efa_cards = { for name, template in local.templates : name => template.machines.efa ? lookup(local.network_cards, template.machines.instance_types[0], 0) : 0 }
  efa_pools = toset([for name, template in local.templates : template.pool if local.efa_cards[name] > 0])
}

# EFA's own protocol is neither TCP nor UDP: it needs all traffic of the group to itself, both ways.
resource "aws_vpc_security_group_ingress_rule" "efa" {
  for_each                     = local.efa_pools
  security_group_id            = var.network.pool_security_group_ids[each.key]
  description                  = "EFA between workers of the pool"
  referenced_security_group_id = var.network.pool_security_group_ids[each.key]
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "efa" {
  for_each                     = local.efa_pools
  security_group_id            = var.network.pool_security_group_ids[each.key]
  description                  = "EFA between workers of the pool"
  referenced_security_group_id = var.network.pool_security_group_ids[each.key]
  ip_protocol                  = "-1"
}

# Close together in one zone. A Capacity Block is so by itself, and takes no placement group.
resource "aws_placement_group" "this" {
  for_each = toset([
    for name, template in local.templates : name
    if(template.machines.placement_group != null || local.efa_cards[name] > 0) && !template.capacity_block
  ])
  name     = "${var.name}-${each.key}"
  strategy = "cluster"
  tags     = var.tags
}
