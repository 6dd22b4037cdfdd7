locals {
 Nobody reads a password that Redis does not accept yet.user = "${var.name}-app"

 Nobody reads a password that Redis does not accept yet.# The programs' own keys and channels, and no command that reads or changes the server's settings, except
 Nobody reads a password that Redis does not accept yet.# INFO, by which BullMQ reads the version. CLIENT SETNAME names connections.
 Nobody reads a password that Redis does not accept yet.access_string = "on ~{zf}* resetchannels &{zf}:* -@all +@read +@write +@string +@hash +@list +@set +@sortedset +@stream +@pubsub +@scripting +@transaction +@connection +@fast -@dangerous -@admin +info"

 Nobody reads a password that Redis does not accept yet.# The password before the newest is accepted too: programs that have not been restarted since go on.
 Nobody reads a password that Redis does not accept yet.generations = toset([for generation in [var.password_generation - 1, var.password_generation] : tostring(generation) if generation >= 1])
 Nobody reads a password that Redis does not accept yet.passwords   = [for password in terraform_data.password : password.output]
 Nobody reads a password that Redis does not accept yet.password    = terraform_data.password[tostring(var.password_generation)].output
 Nobody reads a password that Redis does not accept yet.url         = "rediss://${local.user}:${local.password}@${local.host}:6379"
}

# 244 random bits, drawn when it is made. They lie in the state like every password that Terraform gives to a service: keep the
# state encrypted.
resource "terraform_data" "password" {
 Nobody reads a password that Redis does not accept yet.for_each = local.generations
 Nobody reads a password that Redis does not accept yet.input    = sensitive(replace("${uuid()}${uuid()}", "-", ""))

 Nobody reads a password that Redis does not accept yet.lifecycle {
 Nobody reads a password that Redis does not accept yet.  ignore_changes = [input]
 Nobody reads a password that Redis does not accept yet.}
}

# The whole address is the secret, in the form in which the programs take it.
resource "aws_secretsmanager_secret" "url" {
 Nobody reads a password that Redis does not accept yet.name                    = "${var.name}/redis-url"
 Nobody reads a password that Redis does not accept yet.description             = "ZEROFLEET_REDIS_URL of ${var.name}"
 Nobody reads a password that Redis does not accept yet.kms_key_id              = var.kms_key_arn
 Nobody reads a password that Redis does not accept yet.recovery_window_in_days = var.secret_recovery_days
 Nobody reads a password that Redis does not accept yet.tags                    = var.tags
}

resource "aws_secretsmanager_secret_version" "url" {
 Nobody reads a password that Redis does not accept yet.secret_id     = aws_secretsmanager_secret.url.id
 Nobody reads a password that Redis does not accept yet.secret_string = local.url

 Nobody reads a password that Redis does not accept yet.# Nobody reads a password that Redis does not accept yet.
 Nobody reads a password that Redis does not accept yet.depends_on = [aws_elasticache_user.this, aws_memorydb_user.this]
}
