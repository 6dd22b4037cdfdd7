locals {
  # Programs that use Redis and AWS.
  programs = {
    api        = aws_security_group.api.id
    autoscaler = aws_security_group.autoscaler.id
    worker     = aws_security_group.worker.id
  }
  # The API sends webhooks to the addresses that its users name (and checks them itself). The others connect to AWS only; where
  # there are no endpoints, that is on the internet.
  internet_programs = length(var.vpc.interface_endpoints) == 0 ? local.programs : { api = local.programs.api }
}

resource "aws_vpc_security_group_ingress_rule" "clients" {
  for_each          = { for pair in setproduct(var.client_cidrs, [80, 443]) : "${pair[0]}-${pair[1]}" => { cidr = pair[0], port = pair[1] } }
  security_group_id = aws_security_group.load_balancer.id
  description       = each.value.port == 80 ? "HTTP, answered with a redirect" : "HTTPS"
  cidr_ipv4         = each.value.cidr
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
}

resource "aws_vpc_security_group_egress_rule" "load_balancer_to_api" {
  security_group_id            = aws_security_group.load_balancer.id
  description                  = "Requests and health checks"
  referenced_security_group_id = aws_security_group.api.id
  ip_protocol                  = "tcp"
  from_port                    = var.ports.api
  to_port                      = var.ports.api
}

resource "aws_vpc_security_group_ingress_rule" "api_from_load_balancer" {
  security_group_id            = aws_security_group.api.id
  description                  = "Requests and health checks"
  referenced_security_group_id = aws_security_group.load_balancer.id
  ip_protocol                  = "tcp"
  from_port                    = var.ports.api
  to_port                      = var.ports.api
}

resource "aws_vpc_security_group_egress_rule" "redis" {
  for_each                     = local.programs
  security_group_id            = each.value
  description                  = "Redis"
  referenced_security_group_id = aws_security_group.queue.id
  ip_protocol                  = "tcp"
  from_port                    = var.ports.redis
  to_port                      = var.ports.redis
}

resource "aws_vpc_security_group_ingress_rule" "redis" {
  for_each                     = local.programs
  security_group_id            = aws_security_group.queue.id
  description                  = "Redis, from the ${each.key}"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = var.ports.redis
  to_port                      = var.ports.redis
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

resource "aws_vpc_security_group_egress_rule" "endpoints" {
  for_each                     = local.programs
  security_group_id            = each.value
  description                  = "Services of AWS, by their endpoints"
  referenced_security_group_id = aws_security_group.endpoints.id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
}

resource "aws_vpc_security_group_ingress_rule" "endpoints" {
  for_each                     = local.programs
  security_group_id            = aws_security_group.endpoints.id
  description                  = "HTTPS, from the ${each.key}"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
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

resource "aws_vpc_security_group_ingress_rule" "pool" {
  for_each                     = aws_security_group.pool
  security_group_id            = each.value.id
  description                  = "Links between workers and between ranks"
  referenced_security_group_id = each.value.id
  ip_protocol                  = "tcp"
  from_port                    = 1024
  to_port                      = 65535
}

resource "aws_vpc_security_group_egress_rule" "pool" {
  for_each                     = aws_security_group.pool
  security_group_id            = each.value.id
  description                  = "Links between workers and between ranks"
  referenced_security_group_id = each.value.id
  ip_protocol                  = "tcp"
  from_port                    = 1024
  to_port                      = 65535
}

resource "aws_vpc_security_group_ingress_rule" "pulse" {
  for_each                     = aws_security_group.pool
  security_group_id            = each.value.id
  description                  = "Signs of life between ranks"
  referenced_security_group_id = each.value.id
  ip_protocol                  = "udp"
  from_port                    = 1024
  to_port                      = 65535
}

resource "aws_vpc_security_group_egress_rule" "pulse" {
  for_each                     = aws_security_group.pool
  security_group_id            = each.value.id
  description                  = "Signs of life between ranks"
  referenced_security_group_id = each.value.id
  ip_protocol                  = "udp"
  from_port                    = 1024
  to_port                      = 65535
}
