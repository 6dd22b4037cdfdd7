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
    load_balancer = aws_security_group.load_balancer.id
    api           = aws_security_group.api.id
    autoscaler    = aws_security_group.autoscaler.id
    worker        = aws_security_group.worker.id
    queue         = aws_security_group.queue.id
  }
}

output "pool_security_group_ids" {
  description = "Security group in which the workers of each pool talk to each other."
  value       = { for pool, group in aws_security_group.pool : pool => group.id }
}
