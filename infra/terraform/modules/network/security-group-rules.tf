locals {
  # Programs that use Redis and AWS.
  programs = {
    api        = aws_security_group.this["api"].id
    autoscaler = aws_security_group.this["autoscaler"].id
    worker     = aws_security_group.this["worker"].id
  }
  # The API sends webhooks to the addresses that its users name (and checks them itself). The others connect to AWS only; where
  # there are no endpoints, that is on the internet.
  internet_programs = length(var.vpc.interface_endpoints) == 0 ? local.programs : { api = local.programs.api }

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
  for_each          = local.programs
  security_group_id = each.value
  description       = "S3, by its gateway endpoint"
  prefix_list_id    = aws_vpc_endpoint.s3.prefix_list_id
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_security_group_egress_rule" "internet" {
  for_each          = local.internet_programs
  security_group_id = each.value
  description       = "HTTPS"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}
