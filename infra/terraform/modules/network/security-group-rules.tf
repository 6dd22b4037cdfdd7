locals {
  # Programs that use Redis and AWS.
  programs = {
    api        = aws_security_group.this["api"].id
    autoscaler = aws_security_group.this["autoscaler"].id
    worker     = aws_security_group.this["worker"].id
  }
  # The API sends webhooks to the addresses that its users name (and checks them itself). The others connect to AWS
  # only: by endpoints, where there are any, else on the internet. How it is reached in an existing VPC, that VPC's
  # owner says.
  aws_cidrs = local.own ? (length(var.vpc.interface_endpoints) == 0 ? ["0.0.0.0/0"] : []) : var.vpc.existing.aws_cidrs
  https = merge(
    { api = { from = local.programs.api, cidr = "0.0.0.0/0" } },
    { for pair in setproduct(["autoscaler", "worker"], local.aws_cidrs) : "${pair[0]}-${pair[1]}" => { from = local.programs[pair[0]], cidr = pair[1] } },
  )
  s3_prefix_list_id = local.own ? aws_vpc_endpoint.s3[0].prefix_list_id : var.vpc.existing.s3_prefix_list_id
  through_s3        = local.own || try(var.vpc.existing.s3_prefix_list_id, null) != null

  # Connections between groups: each may leave the first and enter the second.
  connections = merge(
    { api-load_balancer = { from = aws_security_group.this["load-balancer"].id, to = aws_security_group.this["api"].id, protocol = "tcp", ports = [var.ports.api, var.ports.api], description = "Requests and health checks" } },
    { for name, id in local.programs : "redis-${name}" => { from = id, to = aws_security_group.this["queue"].id, protocol = "tcp", ports = [var.ports.redis, var.ports.redis], description = "Redis, from the ${name}" } },
    { for name, id in local.programs : "endpoints-${name}" => { from = id, to = aws_security_group.this["endpoints"].id, protocol = "tcp", ports = [443, 443], description = "Services of AWS by their endpoints, from the ${name}" } },
    { for pool, group in aws_security_group.pool : "links-${pool}" => { from = group.id, to = group.id, protocol = "tcp", ports = [1024, 65535], description = "Links between workers and between ranks" } },
    { for pool, group in aws_security_group.pool : "pulse-${pool}" => { from = group.id, to = group.id, protocol = "udp", ports = [1024, 65535], description = "Signs of life between ranks" } },
  )
}

resource "aws_vpc_security_group_egress_rule" "connection" {
  for_each                     = local.connections
  security_group_id            = each.value.from
  description                  = each.value.description
  referenced_security_group_id = each.value.to
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.ports[0]
  to_port                      = each.value.ports[1]
}

resource "aws_vpc_security_group_ingress_rule" "connection" {
  for_each                     = local.connections
  security_group_id            = each.value.to
  description                  = each.value.description
  referenced_security_group_id = each.value.from
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.ports[0]
  to_port                      = each.value.ports[1]
}

resource "aws_vpc_security_group_ingress_rule" "clients" {
  for_each          = { for pair in setproduct(var.client_cidrs, [80, 443]) : "${pair[0]}-${pair[1]}" => { cidr = pair[0], port = pair[1] } }
  security_group_id = aws_security_group.this["load-balancer"].id
  description       = each.value.port == 80 ? "HTTP, answered with a redirect" : "HTTPS"
  cidr_ipv4         = each.value.cidr
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
}

resource "aws_vpc_security_group_egress_rule" "s3" {
  for_each          = local.through_s3 ? local.programs : {}
  security_group_id = each.value
  description       = "S3, by its gateway endpoint"
  prefix_list_id    = local.s3_prefix_list_id
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_security_group_egress_rule" "internet" {
  for_each          = local.https
  security_group_id = each.value.from
  description       = "HTTPS"
  cidr_ipv4         = each.value.cidr
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}
