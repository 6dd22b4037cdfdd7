variable "account_id" {
  description = "AWS account in which it is made."
  type        = string
}

variable "region" {
  description = "AWS region in which it is made."
  type        = string
  default     = "eu-central-1"
}

variable "certificate_arn" {
  description = "Certificate of ACM, in the same region, for the name under which clients reach the API."
  type        = string
}

variable "registry" {
  description = "Where the images are, e.g. 123456789012.dkr.ecr.eu-central-1.amazonaws.com/zerofleet."
  type        = string
}

variable "release" {
  description = "Tag of the images."
  type        = string
}

variable "client_cidrs" {
  description = "Addresses from which the API may be reached."
  type        = list(string)
}

variable "machine_images" {
  description = "Machine images, as infra/ami makes them, and the version of NVIDIA's driver in them. What is left out is Amazon's newest."
  type        = object({ cuda = optional(string), cpu = optional(string), driver = optional(string) })
  default     = {}
}
