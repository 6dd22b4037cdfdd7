resource "aws_cloudwatch_log_group" "this" {
  for_each          = toset(concat(["api", "autoscaler", "workers"], var.logs.network ? ["network"] : []))
  name              = "/${var.name}/${each.key}"
  retention_in_days = var.logs.retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

# A worker logs each failed save of a job; the job goes on, and would lose its progress since the last good one. It also
# logs each failure to get credentials for a job from STS. Running jobs go on until their hour is over; others wait in
# their queue.
resource "aws_cloudwatch_log_metric_filter" "this" {
  for_each = {
    failed-saves       = { metric = local.failed_saves, message = "checkpoint not saved" }
    failed-credentials = { metric = local.failed_credentials, message = "credentials not given" }
  }
  name           = "${var.name}-${each.key}"
  log_group_name = aws_cloudwatch_log_group.this["workers"].name
  pattern        = "{ $.msg = \"${each.value.message}\" }"

  metric_transformation {
    namespace     = var.metric_namespace
    name          = each.value.metric
    value         = "1"
    default_value = "0"
  }
}
