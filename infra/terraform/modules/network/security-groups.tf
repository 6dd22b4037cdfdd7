# Allowed connections:
#
#   clients -> load balancer -> api -> redis, 443
#                        autoscaler -> redis, 443 (AWS)
#                            worker -> redis, 443 (AWS), workers of its own pool
#
# Nothing may open a connection to a worker but workers of its pool.

resource "aws_security_group" "load_balancer" {
  name        = "${var.name}-load-balancer"
  description = "HTTPS from clients"
  vpc_id      = aws_vpc.this.id
  tags        = merge(var.tags, { Name = "${var.name}-load-balancer" })
}

resource "aws_security_group" "api" {
  name        = "${var.name}-api"
  description = "The API, reached from its load balancer only"
  vpc_id      = aws_vpc.this.id
  tags        = merge(var.tags, { Name = "${var.name}-api" })
}

resource "aws_security_group" "autoscaler" {
  name        = "${var.name}-autoscaler"
  description = "The autoscaler, which accepts no connections"
  vpc_id      = aws_vpc.this.id
  tags        = merge(var.tags, { Name = "${var.name}-autoscaler" })
}

resource "aws_security_group" "worker" {
  name        = "${var.name}-worker"
  description = "What all workers may reach; nothing may reach them by it"
  vpc_id      = aws_vpc.this.id
  tags        = merge(var.tags, { Name = "${var.name}-worker" })
}

# Workers of a pool share jobs: their ranks exchange gradients on any free ports, unencrypted.
resource "aws_security_group" "pool" {
  for_each    = var.pools
  name        = "${var.name}-pool-${each.key}"
  description = "Workers of the pool ${each.key} among themselves"
  vpc_id      = aws_vpc.this.id
  tags        = merge(var.tags, { Name = "${var.name}-pool-${each.key}" })
}

resource "aws_security_group" "queue" {
  name        = "${var.name}-queue"
  description = "Redis, for the programs of this installation"
  vpc_id      = aws_vpc.this.id
  tags        = merge(var.tags, { Name = "${var.name}-queue" })
}

resource "aws_security_group" "endpoints" {
  name        = "${var.name}-endpoints"
  description = "Services of AWS inside of the network"
  vpc_id      = aws_vpc.this.id
  tags        = merge(var.tags, { Name = "${var.name}-endpoints" })
}
