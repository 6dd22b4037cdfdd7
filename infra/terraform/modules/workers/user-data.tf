locals {
  # Steps of a machine at its first start.
  user_data = {
    for name, template in local.templates : name => templatefile("${path.module}/templates/start-worker.sh.tftpl", {
      environment   = local.environment[name]
      image         = var.images[template.machines.accelerator]
      cuda          = template.machines.accelerator == "cuda"
      region        = var.region
      log_group     = var.log_group.name
      log_stream    = "${template.pool}/$INSTANCE_ID"
      drain_seconds = template.drain_seconds
      retry         = trimspace(file("${path.module}/scripts/retry.sh"))
      store         = trimspace(file("${path.module}/scripts/instance-store.sh"))
      prepare = trimspace(templatefile("${path.module}/templates/prepare.sh.tftpl", {
        image        = var.images[template.machines.accelerator]
        registry     = split("/", var.images[template.machines.accelerator])[0]
        region       = var.region
        redis_secret = var.redis.url_secret_arn
        driver       = template.machines.accelerator == "cuda" ? var.machine_images.driver : null
      }))
    })
  }
}
