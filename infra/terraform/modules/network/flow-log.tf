resource "aws_flow_log" "refused" {
  count                = var.vpc.flow_log == null ? 0 : 1
  vpc_id               = local.vpc_id
  traffic_type         = "REJECT"
  log_destination_type = "cloud-watch-logs"
  log_destination      = var.vpc.flow_log.log_group_arn
  iam_role_arn         = aws_iam_role.flow_log[0].arn
  tags                 = merge(var.tags, { Name = var.name })
}

resource "aws_iam_role" "flow_log" {
  count                = var.vpc.flow_log == null ? 0 : 1
  name                 = "${var.name}-flow-log"
  permissions_boundary = var.permissions_boundary
  tags                 = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "vpc-flow-logs.amazonaws.com" }
      Action    = ["sts:AssumeRole"]
      Condition = { StringEquals = { "aws:SourceAccount" = var.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "flow_log" {
  count = var.vpc.flow_log == null ? 0 : 1
  name  = "write"
  role  = aws_iam_role.flow_log[0].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
      Resource = ["${var.vpc.flow_log.log_group_arn}:*"]
    }]
  })
}
