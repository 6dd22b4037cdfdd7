output "start" {
  description = "Statements for what starts a program: its image, its secrets, its log."
  value       = local.start
}

output "objects" {
  description = "Statements for a program that reads and writes the objects of the installation."
  value       = concat(local.objects, local.object_key)
}

output "object_key" {
  description = "The statement for the key of the objects; empty where it is that of AWS."
  value       = local.object_key
}

output "object_actions" {
  description = "Actions on objects of a program that reads and writes them."
  value       = local.object_actions
}

output "trust_ecs_tasks" {
  description = "The policy by which tasks of ECS take a role."
  value       = local.trust_ecs_tasks
}
