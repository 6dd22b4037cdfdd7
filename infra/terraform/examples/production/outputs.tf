output "zerofleet" {
  description = "Host name of the API, the secret with its first key, and the environment of the programs."
  value       = { api = module.zerofleet.api, groups = module.zerofleet.groups, environment = module.zerofleet.environment }
}
