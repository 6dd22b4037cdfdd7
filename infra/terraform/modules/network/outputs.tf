# Users of these outputs wait until the network works. A task that starts earlier cannot pull its image, and its
# deployment fails.

output "vpc_id" {
  description = "The network."
  value       = local.vpc_id
}

output "private_subnet_ids" {
  description = "Private subnet of each availability zone."
  value       = local.own ? { for zone, subnet in aws_subnet.private : zone => subnet.id } : var.vpc.existing.private_subnet_ids

  depends_on = [
    aws_route.internet,
    aws_route.nat,
    aws_route_table_association.private,
    aws_route_table_association.public,
    aws_vpc_endpoint.interface,
    aws_vpc_endpoint.s3,
  ]
}

output "public_subnet_ids" {
  description = "Public subnet of each availability zone: for load balancers."
  value       = local.own ? { for zone, subnet in aws_subnet.public : zone => subnet.id } : var.vpc.existing.public_subnet_ids

  depends_on = [aws_route.internet, aws_route_table_association.public]
}

output "security_group_ids" {
  description = "Security group of each kind of program."
  value = {
    for program in ["load-balancer", "api", "autoscaler", "worker", "queue"] :
    replace(program, "-", "_") => aws_security_group.this[program].id
  }

  depends_on = [
    aws_vpc_security_group_egress_rule.connection,
    aws_vpc_security_group_egress_rule.internet,
    aws_vpc_security_group_egress_rule.s3,
    aws_vpc_security_group_ingress_rule.clients,
    aws_vpc_security_group_ingress_rule.connection,
  ]
}

output "pool_security_group_ids" {
  description = "Security group in which the workers of each pool talk to each other."
  value       = { for pool, group in aws_security_group.pool : pool => group.id }

  depends_on = [aws_vpc_security_group_egress_rule.connection, aws_vpc_security_group_ingress_rule.connection]
}
