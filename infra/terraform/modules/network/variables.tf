variable "name" {
  description = "Begins the names of everything that is made here."
  type        = string
}

variable "region" {
  description = "AWS region, for the names of endpoints."
  type        = string
}

variable "account_id" {
  description = "AWS account whose principals may use the S3 endpoint."
  type        = string

  validation {
    condition     = can(regex("^[0-9]{12}$", var.account_id))
    error_message = "account_id: 12 digits."
  }
}

variable "vpc" {
  description = <<-EOT
    The private network.
      cidr:                its addresses.
      availability_zones:  the zones to use. Name all those that have the pools' machine types: Spot is found more often in more zones.
      nat:                 "none", "single" or "per_zone" gateways to the internet. The API needs one to send webhooks; without one the
                           interface endpoints below are the only way to AWS.
      interface_endpoints: services of AWS that are reached inside of the network, such as "ecr.api": none, or all that the programs
                           need. Workers may then reach those, S3 and Redis, and nothing else.
      flow_log:            CloudWatch log group for refused connections; null keeps no flow log.
      existing:            a VPC to use; then `cidr`, `nat` and `interface_endpoints` are its owner's business and not made here.
        private_subnet_ids:  of machines and tasks, by zone; they give no public addresses and have a way to AWS.
        public_subnet_ids:   of the load balancer, by zone; empty for an internal one.
        aws_cidrs:           addresses at which autoscaler and workers reach AWS: those of its interface endpoints, or everything.
        s3_prefix_list_id:   of its gateway endpoint for S3; null where S3 is reached at `aws_cidrs`.
  EOT
  type = object({
    cidr                = optional(string, "10.40.0.0/16")
    availability_zones  = optional(list(string), [])
    nat                 = optional(string, "single")
    interface_endpoints = optional(set(string), [])
    flow_log            = optional(object({ log_group_arn = string }))
    existing = optional(object({
      id                 = string
      private_subnet_ids = map(string)
      public_subnet_ids  = optional(map(string), {})
      aws_cidrs          = optional(list(string), ["0.0.0.0/0"])
      s3_prefix_list_id  = optional(string)
    }))
  })
  nullable = false

  validation {
    condition     = can(cidrhost(var.vpc.cidr, 0)) && try(tonumber(split("/", var.vpc.cidr)[1]), 0) >= 16 && try(tonumber(split("/", var.vpc.cidr)[1]), 0) <= 18
    error_message = "vpc.cidr: an IPv4 range from /16 to /18, e.g. \"10.40.0.0/16\". A smaller one has no room for load balancers in each zone."
  }

  validation {
    condition     = var.vpc.existing != null || length(var.vpc.availability_zones) >= 2 && length(var.vpc.availability_zones) <= 6 && length(distinct(var.vpc.availability_zones)) == length(var.vpc.availability_zones)
    error_message = "vpc.availability_zones: two to six different zones. A load balancer needs two."
  }

  validation {
    condition     = contains(["none", "single", "per_zone"], var.vpc.nat)
    error_message = "vpc.nat: \"none\", \"single\" or \"per_zone\"."
  }

  # With one endpoint, workers and autoscaler reach nothing of AWS but endpoints: a partial list would take STS, logs or
  # secrets away.
  validation {
    condition     = length(setsubtract(local.needed_endpoints, var.vpc.interface_endpoints)) == 0 || var.vpc.nat != "none" && length(var.vpc.interface_endpoints) == 0 || var.vpc.existing != null
    error_message = "vpc.interface_endpoints: all of ${join(", ", local.needed_endpoints)}, or with a NAT gateway none; with a part of them the programs could not reach the rest of AWS."
  }

  validation {
    condition     = var.vpc.existing == null || length(try(var.vpc.existing.private_subnet_ids, {})) >= 2 && length(var.vpc.availability_zones) == 0 && length(var.vpc.interface_endpoints) == 0
    error_message = "vpc.existing: private subnets in two zones at least; availability_zones and interface_endpoints are not given then."
  }

  validation {
    condition     = var.vpc.existing == null || alltrue([for cidr in try(var.vpc.existing.aws_cidrs, []) : can(cidrhost(cidr, 0))])
    error_message = "vpc.existing.aws_cidrs: IPv4 ranges."
  }
}

variable "shell_access" {
  description = "Machines are to be reached by AWS Systems Manager: it needs endpoints as well, where there are any."
  type        = bool
  default     = false
}

variable "permissions_boundary" {
  description = "ARN of a policy that bounds what each role made here may do; null has none."
  type        = string
  default     = null
}

variable "client_cidrs" {
  description = "Addresses from which the API may be reached."
  type        = list(string)

  validation {
    condition     = length(var.client_cidrs) > 0 && alltrue([for cidr in var.client_cidrs : can(cidrhost(cidr, 0))])
    error_message = "client_cidrs: at least one IPv4 range, e.g. [\"203.0.113.0/24\"]. [\"0.0.0.0/0\"] is everybody."
  }
}

variable "pools" {
  description = "Names of the worker pools: each has a security group of its own, inside of which its workers talk to each other."
  type        = set(string)
}

variable "ports" {
  description = "Ports of the API's tasks and of Redis."
  type = object({
    api   = optional(number, 8080)
    redis = optional(number, 6379)
  })
  default  = {}
  nullable = false
}

variable "tags" {
  description = "Tags of everything that is made here."
  type        = map(string)
  default     = {}
}

locals {
  needed_endpoints = toset(concat(
    ["autoscaling", "ecr.api", "ecr.dkr", "kms", "logs", "monitoring", "secretsmanager", "sts"],
    var.shell_access ? ["ec2messages", "ssm", "ssmmessages"] : [],
  ))
}
