# Allowed connections:
#
#   clients -> load balancer -> api -> redis, 443
#                        autoscaler -> redis, 443 (AWS)
#                            worker -> redis, 443 (AWS), workers of its own pool
#
# Nothing may open a connection to a worker but workers of its pool.

resource "aws_security_group" "this" {
  for_each = {
    load-balancer = "HTTPS from clients"
    api           = "The API, reached from its load balancer only"
    autoscaler    = "The autoscaler, which accepts no connections"
    worker        = "What all workers may reach; nothing may reach them by it"
    queue         = "Redis, for the programs of this installation"
    endpoints     = "Services of AWS inside of the network"
  }
  name        = "${var.name}-${each.key}"
  description = each.value
  vpc_id      = local.vpc_id
  tags        = merge(var.tags, { Name = "${var.name}-${each.key}" })
}

# Workers of a pool share jobs: their ranks exchange gradients on any free ports, unencrypted.
resource "aws_security_group" "pool" {
  for_each    = var.pools
  name        = "${var.name}-pool-${each.key}"
  description = "Workers of the pool ${each.key} among themselves"
  vpc_id      = local.vpc_id
  tags        = merge(var.tags, { Name = "${var.name}-pool-${each.key}" })
}
