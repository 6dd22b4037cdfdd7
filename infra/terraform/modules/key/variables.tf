variable "alias" {
  description = "Name of the key, without \"alias/\"."
  type        = string
}

variable "description" {
  description = "What the key encrypts."
  type        = string
}

variable "account_id" {
  description = "AWS account whose policies say who may use the key."
  type        = string

  validation {
    condition     = can(regex("^[0-9]{12}$", var.account_id))
    error_message = "account_id: 12 digits."
  }
}

variable "publishers" {
  description = "Services of AWS that send into topics of this account that are encrypted with the key, such as \"cloudwatch\"."
  type        = set(string)
  default     = []
}

variable "logs_region" {
  description = "Region whose log groups of this account are encrypted with the key; null where none are."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of the key."
  type        = map(string)
  default     = {}
}
