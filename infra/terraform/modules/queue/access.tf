locals {
  user = "${var.name}-app"

  # Allows the programs' own keys and channels, and no command that reads or changes the server's settings. The
  # exceptions are INFO, by which BullMQ reads the version, and the commands that find the primary in a cluster. CLIENT
  # SETNAME names connections.
  access_string = "on ~{zf}* resetchannels &{zf}:* -@all +@read +@write +@string +@hash +@list +@set +@sortedset +@stream +@pubsub +@scripting +@transaction +@connection +@fast -@dangerous -@admin +info +cluster|keyslot +cluster|slots"

  # The password before the newest is accepted too: programs that have not been restarted since go on.
  generations = toset([for generation in [var.password_generation - 1, var.password_generation] : tostring(generation) if generation >= 1])
  passwords   = [for password in terraform_data.password : password.output]
  password    = terraform_data.password[tostring(var.password_generation)].output
  url         = "rediss${local.memorydb ? "+cluster" : ""}://${local.user}:${local.password}@${local.host}:6379?replicas=${local.copies}"

  # Copies of a write before it is acknowledged. MemoryDB's log has each. With one replica of ElastiCache, writes would
  # stop whenever that is away; of two, one is enough.
  copies = local.memorydb || local.replicas < 2 ? 0 : 1
}

# 244 random bits, drawn when it is made. They lie in the state like every password that Terraform gives to a service:
# keep the state encrypted.
resource "terraform_data" "password" {
  for_each = local.generations
  input    = sensitive(replace("${uuid()}${uuid()}", "-", ""))

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

  # Redis accepts the password before any program reads it.
  depends_on = [aws_elasticache_user.this, aws_memorydb_user.this]
}
