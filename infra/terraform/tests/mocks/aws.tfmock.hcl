# Ids and ARNs in the shapes that the provider's own checks want; everything else is made up by Terraform.
mock_data "aws_partition" {
  defaults = { partition = "aws" }
}

mock_resource "aws_s3_bucket" {
  defaults = { arn = "arn:aws:s3:::zf-test-bucket", id = "zf-test-bucket" }
}

mock_resource "aws_kms_key" {
  defaults = { arn = "arn:aws:kms:eu-central-1:123456789012:key/0f0e0d0c-0000-1111-2222-333344445555", key_id = "0f0e0d0c-0000-1111-2222-333344445555" }
}

mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::123456789012:role/mock", id = "mock" }
}

mock_resource "aws_iam_instance_profile" {
  defaults = { arn = "arn:aws:iam::123456789012:instance-profile/mock" }
}

mock_resource "aws_secretsmanager_secret" {
  defaults = { arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:mock-AbCdEf" }
}

mock_resource "aws_secretsmanager_secret_version" {
  defaults = { arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:mock-AbCdEf" }
}

mock_resource "aws_cloudwatch_log_group" {
  defaults = { arn = "arn:aws:logs:eu-central-1:123456789012:log-group:/mock" }
}

mock_resource "aws_sns_topic" {
  defaults = { arn = "arn:aws:sns:eu-central-1:123456789012:mock" }
}

mock_resource "aws_vpc" {
  defaults = { id = "vpc-0123456789abcdef0" }
}

mock_resource "aws_subnet" {
  defaults = { id = "subnet-0123456789abcdef0" }
}

mock_resource "aws_vpc_endpoint" {
  defaults = { prefix_list_id = "pl-0123456789abcdef0" }
}

mock_resource "aws_launch_template" {
  defaults = { id = "lt-0123456789abcdef0", latest_version = 1 }
}

mock_resource "aws_autoscaling_group" {
  defaults = { arn = "arn:aws:autoscaling:eu-central-1:123456789012:autoScalingGroup:01234567-89ab-cdef-0123-456789abcdef:autoScalingGroupName/mock" }
}

mock_resource "aws_ecs_cluster" {
  defaults = { arn = "arn:aws:ecs:eu-central-1:123456789012:cluster/mock", id = "arn:aws:ecs:eu-central-1:123456789012:cluster/mock" }
}

mock_resource "aws_ecs_task_definition" {
  defaults = { arn = "arn:aws:ecs:eu-central-1:123456789012:task-definition/mock:1" }
}

mock_resource "aws_lb" {
  defaults = {
    arn        = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:loadbalancer/app/mock/0123456789abcdef"
    arn_suffix = "app/mock/0123456789abcdef"
    dns_name   = "mock.eu-central-1.elb.amazonaws.com"
  }
}

mock_resource "aws_lb_target_group" {
  defaults = {
    arn        = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/mock/0123456789abcdef"
    arn_suffix = "targetgroup/mock/0123456789abcdef"
  }
}

mock_resource "aws_lb_listener" {
  defaults = { arn = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:listener/app/mock/0123456789abcdef/0123456789abcdef" }
}

mock_resource "aws_memorydb_cluster" {
  defaults = { cluster_endpoint = [{ address = "clustercfg.mock.memorydb.eu-central-1.amazonaws.com", port = 6379 }] }
}

mock_resource "aws_elasticache_replication_group" {
  defaults = { primary_endpoint_address = "master.mock.cache.amazonaws.com" }
}
