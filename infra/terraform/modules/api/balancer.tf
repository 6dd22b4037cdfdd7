resource "aws_lb" "this" {
  name                       = "${var.name}-api"
  load_balancer_type         = "application"
  internal                   = var.balancer.internal
  subnets                    = var.balancer.internal ? var.network.private_subnet_ids : var.network.public_subnet_ids
  security_groups            = [var.network.security_group_ids.load_balancer]
  idle_timeout               = var.balancer.idle_seconds
  drop_invalid_header_fields = true
  desync_mitigation_mode     = "strictest"
  enable_deletion_protection = var.balancer.deletion_protection
  tags                       = var.tags

  dynamic "access_logs" {
    for_each = var.balancer.access_log_bucket == null ? [] : [var.balancer.access_log_bucket]

    content {
      bucket  = access_logs.value
      prefix  = "${var.name}-api"
      enabled = true
    }
  }
}

resource "aws_lb_target_group" "api" {
  name        = "${var.name}-api"
  vpc_id      = var.network.vpc_id
  target_type = "ip"
  protocol    = "HTTP"
  port        = var.service.port
  tags        = var.tags

  # Depends on nothing but the task itself: without Redis every task would fail it, and the balancer would have none
  # left to answer that Redis is away. The task returns 503 here once it is stopping, and continues to serve for
  # `drain_seconds`.
  health_check {
    path                = "/healthz"
    matcher             = "200"
    interval            = 5
    timeout             = 4
    healthy_threshold   = 2
    unhealthy_threshold = 2
  }

  deregistration_delay = var.service.drain_seconds

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_lb_listener" "https" {
  load_balancer_arn = aws_lb.this.arn
  protocol          = "HTTPS"
  port              = 443
  ssl_policy        = var.balancer.tls_policy
  certificate_arn   = var.balancer.certificate_arn
  tags              = var.tags

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.api.arn
  }
}

resource "aws_lb_listener" "http" {
  load_balancer_arn = aws_lb.this.arn
  protocol          = "HTTP"
  port              = 80
  tags              = var.tags

  default_action {
    type = "redirect"

    redirect {
      protocol    = "HTTPS"
      port        = "443"
      status_code = "HTTP_301"
    }
  }
}

resource "aws_wafv2_web_acl_association" "this" {
  count        = var.balancer.web_acl == null ? 0 : 1
  resource_arn = aws_lb.this.arn
  web_acl_arn  = var.balancer.web_acl.arn
}
