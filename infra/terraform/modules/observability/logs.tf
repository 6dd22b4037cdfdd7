resource "aws_cloudwatch_log_group" "this" {
  for_each          = toset(concat(["api", "autoscaler", "workers"], var.logs.network ? ["network"] : []))
  name              = "/${var.name}/${each.key}"
  retention_in_days = var.logs.retention_days
  kms_key_id        = var.logs.kms_key_arn
  tags              = var.tags
}

# A worker logs each failed save of a job; the job goes on, and would lose its progress since the last good one.
resource "aws_cloudwatch_log_metric_filter" "failed_saves" {
  name           = "${var.name}-failed-saves"
  log_group_name = aws_cloudwatch_log_group.this["workers"].name
  pattern        = "{ $.msg = \"checkpoint not saved\" }"

  metric_transformation {
    namespace     = var.metric_namespace
    name          = local.failed_saves
    value         = "1"
    default_value = "0"
  }
}

# A worker logs each failure to get credentials for a job from STS. Running jobs go on until their hour is
# over; others wait in their queue.
resource "aws_cloudwatch_log_metric_filter" "failed_credentials" {
  name           = "${var.name}-failed-credentials"
  log_group_name = aws_cloudwatch_log_group.this["workers"].name
  pattern        = "{ $.msg = \"credentials not given\" }"

  metric_transformation {
    namespace     = var.metric_namespace
    name          = local.failed_credentials
    value         = "1"
    default_value = "0"
  }
}
