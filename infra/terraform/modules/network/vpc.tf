locals {
  # In an existing VPC only security groups, their rules and the flow log are made.
  own = var.vpc.existing == null
  # Index of each zone, so that another zone at the end of the list moves no subnet.
  zones = local.own ? { for index, zone in var.vpc.availability_zones : zone => index } : {}
  # Zones that have a NAT gateway.
  nat_zones = !local.own ? [] : {
    none     = []
    single   = slice(var.vpc.availability_zones, 0, 1)
    per_zone = var.vpc.availability_zones
  }[var.vpc.nat]

  vpc_id = local.own ? aws_vpc.this[0].id : var.vpc.existing.id
}

resource "aws_vpc" "this" {
  count                = local.own ? 1 : 0
  cidr_block           = var.vpc.cidr
  enable_dns_hostnames = true
  enable_dns_support   = true
  tags                 = merge(var.tags, { Name = var.name })
}

# The group that things get which name none: it lets nothing through.
resource "aws_default_security_group" "this" {
  count   = local.own ? 1 : 0
  vpc_id  = local.vpc_id
  ingress = []
  egress  = []
  tags    = merge(var.tags, { Name = "${var.name}-default-closed" })
}

resource "aws_subnet" "private" {
  for_each                = local.zones
  vpc_id                  = local.vpc_id
  availability_zone       = each.key
  cidr_block              = cidrsubnet(var.vpc.cidr, 4, each.value)
  map_public_ip_on_launch = false
  tags                    = merge(var.tags, { Name = "${var.name}-private-${each.key}" })

  # Machines get host names with their instance ids, by which the autoscaler knows which worker runs on which machine.
  private_dns_hostname_type_on_launch = "resource-name"
}

# Load balancers and NAT gateways only.
resource "aws_subnet" "public" {
  for_each                = local.zones
  vpc_id                  = local.vpc_id
  availability_zone       = each.key
  cidr_block              = cidrsubnet(var.vpc.cidr, 8, 240 + each.value)
  map_public_ip_on_launch = false
  tags                    = merge(var.tags, { Name = "${var.name}-public-${each.key}" })
}

resource "aws_internet_gateway" "this" {
  count  = local.own ? 1 : 0
  vpc_id = local.vpc_id
  tags   = merge(var.tags, { Name = var.name })
}

resource "aws_route_table" "public" {
  count  = local.own ? 1 : 0
  vpc_id = local.vpc_id
  tags   = merge(var.tags, { Name = "${var.name}-public" })
}

resource "aws_route" "internet" {
  count                  = local.own ? 1 : 0
  route_table_id         = aws_route_table.public[0].id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.this[0].id
}

resource "aws_route_table_association" "public" {
  for_each       = aws_subnet.public
  subnet_id      = each.value.id
  route_table_id = aws_route_table.public[0].id
}

resource "aws_route_table" "private" {
  for_each = local.zones
  vpc_id   = local.vpc_id
  tags     = merge(var.tags, { Name = "${var.name}-private-${each.key}" })
}

resource "aws_route_table_association" "private" {
  for_each       = aws_subnet.private
  subnet_id      = each.value.id
  route_table_id = aws_route_table.private[each.key].id
}
