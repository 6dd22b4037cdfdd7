# The key with which an installation begins: 256 bits of a hash over 244 random ones. It lies in the state: keep that
# encrypted.
resource "terraform_data" "api_key" {
  input            = sensitive("zf_${sha256("${uuid()}${uuid()}")}")
  triggers_replace = var.secrets.key_generation

  lifecycle {
    ignore_changes = [input]
  }
}

resource "aws_secretsmanager_secret" "api_key" {
  name                    = "${var.name}/api-key"
  description             = "ZEROFLEET_API_KEY of ${var.name}: its first key, with the scopes admin and operator"
  kms_key_id              = var.secrets.kms_key_arn
  recovery_window_in_days = var.secrets.recovery_days
  tags                    = var.tags
}

resource "aws_secretsmanager_secret_version" "api_key" {
  secret_id     = aws_secretsmanager_secret.api_key.id
  secret_string = terraform_data.api_key.output
}
