variable "region" {
  description = "AWS region of the images and logs."
  type        = string
}

variable "log_group" {
  description = "Log group that the program writes to."
  type        = object({ arn = string })
}

variable "secrets" {
  description = "Secrets that the program is started with, and the key that they are encrypted with, if not that of AWS."
  type = object({
    arns        = list(string)
    kms_key_arn = optional(string)
  })
}

variable "storage" {
  description = "The object store, for a program that reads and writes it."
  type = object({
    bucket_arn  = string
    objects_arn = string
    kms_key_arn = optional(string)
  })
  default = null
}
