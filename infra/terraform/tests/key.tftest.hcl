mock_provider "aws" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  alias       = "zf-test"
  description = "Everything of zf-test"
  account_id  = "123456789012"
}

run "the_key_is_rotated_and_the_account_decides" {
  command = plan

  module {
    source = "./modules/key"
  }

  assert {
    condition     = aws_kms_key.this.enable_key_rotation && aws_kms_alias.this.name == "alias/zf-test"
    error_message = "The key is never rotated, or has another name."
  }

  assert {
    condition     = [for statement in jsondecode(aws_kms_key.this.policy).Statement : statement.Sid] == ["AccountDecidesByItsPolicies"] && jsondecode(aws_kms_key.this.policy).Statement[0].Principal.AWS == "arn:aws:iam::123456789012:root"
    error_message = "Somebody else may use the key."
  }
}

run "services_use_the_key_for_this_account_only" {
  command = plan

  module {
    source = "./modules/key"
  }

  variables {
    publishers  = ["budgets", "cloudwatch"]
    logs_region = "eu-central-1"
  }

  assert {
    condition = alltrue([
      for service in ["budgets", "cloudwatch"] : [
        for statement in jsondecode(aws_kms_key.this.policy).Statement : try(statement.Condition.StringEquals["aws:SourceAccount"], "anybody")
        if try(statement.Principal.Service, "") == "${service}.amazonaws.com" && toset(statement.Action) == toset(["kms:Decrypt", "kms:GenerateDataKey"])
      ] == ["123456789012"]
    ])
    error_message = "Alarms can't be sent into an encrypted topic, or other accounts may."
  }

  assert {
    condition = [
      for statement in jsondecode(aws_kms_key.this.policy).Statement : statement.Condition.ArnLike["kms:EncryptionContext:aws:logs:arn"]
      if try(statement.Principal.Service, "") == "logs.eu-central-1.amazonaws.com"
    ] == ["arn:aws:logs:eu-central-1:123456789012:log-group:*"]
    error_message = "Logs of other accounts may be encrypted with the key."
  }

  assert {
    condition     = alltrue(flatten([for statement in jsondecode(aws_kms_key.this.policy).Statement : [for action in statement.Action : !strcontains(action, "*")]]))
    error_message = "A wildcard among actions."
  }
}
