locals {
  user = "${var.name}-app"

  # The programs' own keys and channels, and no command that reads or changes the server's settings, except
  # INFO, by which BullMQ reads the version. CLIENT SETNAME names connections.
  access_string = "on ~{zf}* resetchannels &{zf}:* -@all +@read +@write +@string +@hash +@list +@set +@sortedset +@stream +@pubsub +@scripting +@transaction +@connection +@fast -@dangerous -@admin +info"

  password = terraform_data.password.output
  url      = "rediss://${local.user}:${local.password}@${local.host}:6379"
}

# 244 random bits, drawn when it is made. They lie in the state like every password that Terraform gives to a service: keep the
# state encrypted.
resource "terraform_data" "password" {
  input            = sensitive(replace("${uuid()}${uuid()}", "-", ""))
  triggers_replace = var.password_generation

  lifecycle {
    ignore_changes = [input]
  }
}

# The whole address is the secret, in the form in which the programs take it.
resource "aws_secretsmanager_secret" "url" {
  name                    = "${var.name}/redis-url"
  description             = "ZEROFLEET_REDIS_URL of ${var.name}"
  kms_key_id              = var.kms_key_arn
  recovery_window_in_days = var.secret_recovery_days
  tags                    = var.tags
}

resource "aws_secretsmanager_secret_version" "url" {
  secret_id     = aws_secretsmanager_secret.url.id
  secret_string = local.url
}
