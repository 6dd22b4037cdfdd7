output "log_groups" {
  description = "Name and ARN of each log group: api, autoscaler, workers, and network where there is one."
  value       = { for key, group in aws_cloudwatch_log_group.this : key => { name = group.name, arn = group.arn } }
}

output "alarm_topic_arn" {
  description = "Topic of all alarms, to subscribe other things to."
  value       = aws_sns_topic.alarms.arn
}

output "dashboard_name" {
  description = "The dashboard in CloudWatch."
  value       = aws_cloudwatch_dashboard.this.dashboard_name
}
