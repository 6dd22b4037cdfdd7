output "vpc_id" {
  description = "The network."
  value       = aws_vpc.this.id
}

output "private_subnet_ids" {
  description = "Private subnet of each availability zone."
  value       = { for zone, subnet in aws_subnet.private : zone => subnet.id }
}

output "public_subnet_ids" {
  description = "Public subnet of each availability zone: for load balancers."
  value       = { for zone, subnet in aws_subnet.public : zone => subnet.id }
}

output "security_group_ids" {
  description = "Security group of each kind of program."
  value = {
    for program in ["load-balancer", "api", "autoscaler", "worker", "queue"] :
    replace(program, "-", "_") => aws_security_group.this[program].id
  }
}

output "pool_security_group_ids" {
  description = "Security group in which the workers of each pool talk to each other."
  value       = { for pool, group in aws_security_group.pool : pool => group.id }
}
