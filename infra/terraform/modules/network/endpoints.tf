data "aws_partition" "current" {}

# Checkpoints and datasets go this way: no charge by the byte, as a NAT gateway has.
resource "aws_vpc_endpoint" "s3" {
  count             = local.own ? 1 : 0
  vpc_id            = local.vpc_id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [for table in aws_route_table.private : table.id]
  tags              = merge(var.tags, { Name = "${var.name}-s3" })

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        # Allows credentials of this account only: those of another account can't carry data out.
        Sid       = "OwnPrincipals"
        Effect    = "Allow"
        Principal = "*"
        Action = [
          "s3:AbortMultipartUpload",
          "s3:DeleteObject",
          "s3:GetBucketLocation",
          "s3:GetObject",
          "s3:ListBucket",
          "s3:ListBucketMultipartUploads",
          "s3:ListMultipartUploadParts",
          "s3:PutObject",
        ]
        Resource  = "*"
        Condition = { StringEquals = { "aws:PrincipalAccount" = var.account_id } }
      },
      {
        # Layers of images and packages of Amazon Linux come by URLs that AWS has signed.
        Sid       = "ImagesAndPackagesOfAws"
        Effect    = "Allow"
        Principal = "*"
        Action    = ["s3:GetObject"]
        Resource = [
          "arn:${data.aws_partition.current.partition}:s3:::prod-${var.region}-starport-layer-bucket/*",
          "arn:${data.aws_partition.current.partition}:s3:::al2023-repos-${var.region}-de612dc2/*",
        ]
      },
    ]
  })
}

resource "aws_vpc_endpoint" "interface" {
  for_each            = local.own ? var.vpc.interface_endpoints : []
  vpc_id              = local.vpc_id
  service_name        = "com.amazonaws.${var.region}.${each.key}"
  vpc_endpoint_type   = "Interface"
  private_dns_enabled = true
  subnet_ids          = [for subnet in aws_subnet.private : subnet.id]
  security_group_ids  = [aws_security_group.this["endpoints"].id]
  tags                = merge(var.tags, { Name = "${var.name}-${each.key}" })
}
