mock_provider "aws" {
  source          = "./tests/mocks"
  override_during = plan
}

# Distinguished by their ids below.
override_resource {
  target          = aws_security_group.this["load-balancer"]
  override_during = plan
  values          = { id = "sg-balancer" }
}

override_resource {
  target          = aws_security_group.this["api"]
  override_during = plan
  values          = { id = "sg-api" }
}

override_resource {
  target          = aws_security_group.this["worker"]
  override_during = plan
  values          = { id = "sg-worker" }
}

override_resource {
  target          = aws_security_group.pool["gpu"]
  override_during = plan
  values          = { id = "sg-pool-gpu" }
}

override_resource {
  target          = aws_security_group.pool["cpu"]
  override_during = plan
  values          = { id = "sg-pool-cpu" }
}

override_resource {
  target          = aws_security_group.this["queue"]
  override_during = plan
  values          = { id = "sg-queue" }
}

override_resource {
  target          = aws_security_group.this["endpoints"]
  override_during = plan
  values          = { id = "sg-endpoints" }
}

override_resource {
  target          = aws_security_group.this["autoscaler"]
  override_during = plan
  values          = { id = "sg-autoscaler" }
}

variables {
  name         = "zf-test"
  region       = "eu-central-1"
  account_id   = "123456789012"
  client_cidrs = ["203.0.113.0/24"]
  pools        = ["gpu", "cpu"]
  vpc          = { availability_zones = ["eu-central-1a", "eu-central-1b", "eu-central-1c"] }
}

run "machines_get_no_public_addresses" {
  command = plan

  module {
    source = "./modules/network"
  }

  assert {
    condition     = alltrue([for subnet in values(aws_subnet.private) : !subnet.map_public_ip_on_launch]) && length(aws_subnet.private) == 3
    error_message = "A private subnet gives public addresses."
  }

  assert {
    condition     = length(distinct(concat([for subnet in aws_subnet.private : subnet.cidr_block], [for subnet in aws_subnet.public : subnet.cidr_block]))) == 6
    error_message = "Subnets overlap."
  }
}

run "only_workers_of_its_pool_connect_to_a_worker" {
  command = plan

  module {
    source = "./modules/network"
  }

  assert {
    condition = alltrue([
      for rule in concat(values(aws_vpc_security_group_ingress_rule.clients), values(aws_vpc_security_group_ingress_rule.connection)) :
      rule.security_group_id != "sg-worker"
    ])
    error_message = "Something may connect to all workers."
  }

  assert {
    condition = alltrue([
      for pool in ["gpu", "cpu"] : [
        for rule in values(aws_vpc_security_group_ingress_rule.connection) : rule.referenced_security_group_id
        if rule.security_group_id == "sg-pool-${pool}"
      ] == ["sg-pool-${pool}", "sg-pool-${pool}"]
    ]) && alltrue([for rule in values(aws_vpc_security_group_ingress_rule.connection) : rule.cidr_ipv4 == null])
    error_message = "A pool lets in more than itself."
  }

  assert {
    condition = alltrue([
      for rules in [aws_vpc_security_group_ingress_rule.connection, aws_vpc_security_group_egress_rule.connection] :
      alltrue([for pool in ["gpu", "cpu"] : rules["pulse-${pool}"].ip_protocol == "udp" && rules["pulse-${pool}"].security_group_id == "sg-pool-${pool}"])
    ])
    error_message = "Ranks cannot exchange heartbeats."
  }

  assert {
    condition     = length(aws_default_security_group.this[0].ingress) == 0 && length(aws_default_security_group.this[0].egress) == 0
    error_message = "The default group is open."
  }
}

run "the_api_is_reached_by_its_load_balancer_only" {
  command = plan

  module {
    source = "./modules/network"
  }

  assert {
    condition     = [for rule in values(aws_vpc_security_group_ingress_rule.connection) : "${rule.referenced_security_group_id} ${rule.from_port} ${rule.to_port}" if rule.security_group_id == "sg-api"] == ["sg-balancer 8080 8080"]
    error_message = "The API is not behind its load balancer."
  }

  assert {
    condition     = alltrue([for rule in values(aws_vpc_security_group_ingress_rule.clients) : rule.cidr_ipv4 == "203.0.113.0/24" && rule.security_group_id == "sg-balancer" && contains([80, 443], rule.from_port)])
    error_message = "The load balancer lets in others than the clients."
  }
}

run "redis_is_reached_by_the_programs_only" {
  command = plan

  module {
    source = "./modules/network"
  }

  assert {
    condition     = toset([for rule in values(aws_vpc_security_group_ingress_rule.connection) : "${rule.referenced_security_group_id} ${rule.from_port} ${rule.to_port}" if rule.security_group_id == "sg-queue"]) == toset(["sg-api 6379 6379", "sg-autoscaler 6379 6379", "sg-worker 6379 6379"])
    error_message = "Redis is open to more than the programs."
  }
}

run "without_endpoints_the_programs_reach_aws_by_https_only" {
  command = plan

  module {
    source = "./modules/network"
  }

  assert {
    condition     = toset([for rule in values(aws_vpc_security_group_egress_rule.internet) : "${rule.security_group_id} ${rule.cidr_ipv4}"]) == toset(["sg-api 0.0.0.0/0", "sg-autoscaler 0.0.0.0/0", "sg-worker 0.0.0.0/0"]) && alltrue([for rule in values(aws_vpc_security_group_egress_rule.internet) : rule.from_port == 443 && rule.to_port == 443])
    error_message = "More than HTTPS leaves the network."
  }
}

run "with_endpoints_workers_reach_no_internet" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    vpc = {
      availability_zones  = ["eu-central-1a", "eu-central-1b"]
      interface_endpoints = ["autoscaling", "ecr.api", "ecr.dkr", "kms", "logs", "monitoring", "secretsmanager", "sts"]
    }
  }

  assert {
    condition     = keys(aws_vpc_security_group_egress_rule.internet) == ["api"]
    error_message = "A worker or the autoscaler may reach the internet."
  }

  assert {
    condition     = alltrue([for endpoint in values(aws_vpc_endpoint.interface) : endpoint.private_dns_enabled && endpoint.vpc_endpoint_type == "Interface"]) && length(aws_vpc_endpoint.interface) == 8
    error_message = "An endpoint is missing."
  }
}

run "s3_goes_through_a_gateway_for_our_own_principals" {
  command = plan

  module {
    source = "./modules/network"
  }

  assert {
    condition     = aws_vpc_endpoint.s3[0].vpc_endpoint_type == "Gateway" && aws_vpc_endpoint.s3[0].service_name == "com.amazonaws.eu-central-1.s3"
    error_message = "S3 has no gateway endpoint."
  }

  assert {
    condition = alltrue([
      for statement in jsondecode(aws_vpc_endpoint.s3[0].policy).Statement :
      alltrue([for action in statement.Action : !strcontains(action, "*")]) &&
      (try(statement.Condition.StringEquals["aws:PrincipalAccount"], "") == "123456789012" || statement.Action == ["s3:GetObject"])
    ])
    error_message = "The endpoint lets other accounts write."
  }
}

run "nat_gateways_are_as_many_as_asked_for" {
  command = plan

  module {
    source = "./modules/network"
  }

  assert {
    condition     = length(aws_nat_gateway.this) == 1 && length(aws_route.nat) == 3
    error_message = "A single gateway serves all zones."
  }
}

run "a_nat_gateway_per_zone" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    vpc = { availability_zones = ["eu-central-1a", "eu-central-1b"], nat = "per_zone" }
  }

  assert {
    condition     = length(aws_nat_gateway.this) == 2 && length(aws_route.nat) == 2
    error_message = "Not one for each zone."
  }
}

run "refused_connections_are_logged_where_that_is_asked_for" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    vpc = { availability_zones = ["eu-central-1a", "eu-central-1b"], flow_log = { log_group_arn = "arn:aws:logs:eu-central-1:123456789012:log-group:/zf-test/network" } }
  }

  assert {
    condition     = aws_flow_log.refused[0].traffic_type == "REJECT" && jsondecode(aws_iam_role_policy.flow_log[0].policy).Statement[0].Resource == ["arn:aws:logs:eu-central-1:123456789012:log-group:/zf-test/network:*"]
    error_message = "No flow log of refused connections."
  }
}

run "machines_without_a_way_to_aws_are_refused" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    vpc = { availability_zones = ["eu-central-1a", "eu-central-1b"], nat = "none", interface_endpoints = ["logs"] }
  }

  expect_failures = [var.vpc]
}

# Once there are endpoints, workers and autoscaler have no other way: NAT gateways are for webhooks.
run "some_of_the_endpoints_beside_a_nat_gateway_are_refused" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    vpc = { availability_zones = ["eu-central-1a", "eu-central-1b"], nat = "per_zone", interface_endpoints = ["autoscaling", "ecr.api", "ecr.dkr", "kms", "logs", "monitoring", "secretsmanager"] }
  }

  expect_failures = [var.vpc]
}

run "shells_need_their_endpoints_where_there_are_endpoints" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    shell_access = true
    vpc          = { availability_zones = ["eu-central-1a", "eu-central-1b"], interface_endpoints = ["autoscaling", "ecr.api", "ecr.dkr", "kms", "logs", "monitoring", "secretsmanager", "sts"] }
  }

  expect_failures = [var.vpc]
}

run "shells_work_by_endpoints" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    shell_access = true
    vpc          = { availability_zones = ["eu-central-1a", "eu-central-1b"], nat = "none", interface_endpoints = ["autoscaling", "ec2messages", "ecr.api", "ecr.dkr", "kms", "logs", "monitoring", "secretsmanager", "ssm", "ssmmessages", "sts"] }
  }

  assert {
    condition     = alltrue([for service in ["ec2messages", "ssm", "ssmmessages"] : aws_vpc_endpoint.interface[service].service_name == "com.amazonaws.eu-central-1.${service}"]) && aws_vpc_security_group_egress_rule.connection["endpoints-worker"].from_port == 443
    error_message = "Systems Manager does not reach the machines."
  }
}

run "shells_work_by_https_without_endpoints" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    shell_access = true
  }

  assert {
    condition     = length(aws_vpc_endpoint.interface) == 0 && contains([for rule in values(aws_vpc_security_group_egress_rule.internet) : rule.security_group_id], "sg-worker")
    error_message = "The agent of Systems Manager has no way to AWS."
  }
}

run "an_existing_vpc_is_used_as_it_is" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    vpc = {
      existing = {
        id                 = "vpc-own"
        private_subnet_ids = { "eu-central-1a" = "subnet-own-a", "eu-central-1b" = "subnet-own-b" }
        public_subnet_ids  = { "eu-central-1a" = "subnet-public-a", "eu-central-1b" = "subnet-public-b" }
        aws_cidrs          = ["10.1.0.0/16"]
        s3_prefix_list_id  = "pl-own"
      }
    }
  }

  assert {
    condition     = length(aws_vpc.this) + length(aws_subnet.private) + length(aws_subnet.public) + length(aws_internet_gateway.this) + length(aws_nat_gateway.this) + length(aws_route.nat) + length(aws_vpc_endpoint.s3) + length(aws_vpc_endpoint.interface) + length(aws_default_security_group.this) == 0
    error_message = "The network of somebody else is changed."
  }

  assert {
    condition     = output.vpc_id == "vpc-own" && output.private_subnet_ids == tomap({ "eu-central-1a" = "subnet-own-a", "eu-central-1b" = "subnet-own-b" }) && alltrue([for group in values(aws_security_group.this) : group.vpc_id == "vpc-own"])
    error_message = "The programs are in another network."
  }

  assert {
    condition     = toset([for rule in values(aws_vpc_security_group_egress_rule.internet) : "${rule.security_group_id} ${rule.cidr_ipv4}"]) == toset(["sg-api 0.0.0.0/0", "sg-autoscaler 10.1.0.0/16", "sg-worker 10.1.0.0/16"]) && alltrue([for rule in values(aws_vpc_security_group_egress_rule.s3) : rule.prefix_list_id == "pl-own"])
    error_message = "The programs reach more than AWS, or not S3."
  }
}

run "an_existing_vpc_beside_a_new_one_is_refused" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    vpc = {
      availability_zones = ["eu-central-1a", "eu-central-1b"]
      existing           = { id = "vpc-own", private_subnet_ids = { "eu-central-1a" = "subnet-own-a" }, aws_cidrs = ["everything"] }
    }
  }

  expect_failures = [var.vpc]
}

run "roles_have_the_permissions_boundary" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    permissions_boundary = "arn:aws:iam::123456789012:policy/boundary"
    vpc                  = { availability_zones = ["eu-central-1a", "eu-central-1b"], flow_log = { log_group_arn = "arn:aws:logs:eu-central-1:123456789012:log-group:/zf-test/network" } }
  }

  assert {
    condition     = aws_iam_role.flow_log[0].permissions_boundary == var.permissions_boundary
    error_message = "A role without the boundary."
  }
}

run "a_single_zone_is_refused" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    vpc = { availability_zones = ["eu-central-1a"], cidr = "10.0.0.0/24" }
  }

  expect_failures = [var.vpc]
}
