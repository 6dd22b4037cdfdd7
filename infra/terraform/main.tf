# Everything that zerofleet needs in production, in one AWS account and region. Each module can be used alone; here they
# are only put together.

locals {
  tags = merge({ "zerofleet:installation" = var.name }, var.tags)

  pool_names = toset(keys(var.pools))

  # Machines that the groups of a pool may have together.
  max_machines = { for name, pool in var.pools : name => sum(flatten([
    for kind in values(pool.machines) : [for terms in [kind.spot, kind.on_demand, kind.reserved] : terms == null ? 0 : terms.max]
  ])) }

  storage = {
    object_store_url = module.storage.object_store_url
    bucket_arn       = module.storage.bucket.arn
    objects_arn      = module.storage.objects_arn
    kms_key_arn      = module.storage.kms_key_arn
  }

  redis = {
    url_secret_arn = module.queue.url_secret_arn
    kms_key_arn    = local.key_arn
  }

  make_key = var.encryption_key != null && try(var.encryption_key.arn, null) == null
  key_arn  = local.make_key ? module.key[0].arn : try(var.encryption_key.arn, null)
}

module "key" {
  source = "./modules/key"
  count  = local.make_key ? 1 : 0

  alias       = var.name
  description = "Secrets, Redis, alarms and logs of ${var.name}"
  account_id  = var.account_id
  publishers  = ["budgets", "cloudwatch"]
  logs_region = var.region
  tags        = local.tags
}

module "network" {
  source = "./modules/network"

  name         = var.name
  region       = var.region
  account_id   = var.account_id
  client_cidrs = var.api.client_cidrs
  pools        = local.pool_names
  ports        = { api = var.api.service.port }
  shell_access = var.shell_access
  tags         = local.tags

  permissions_boundary = var.permissions_boundary

  vpc = merge(var.network, {
    flow_log = var.observability.flow_log ? { log_group_arn = module.observability.log_groups["network"].arn } : null
  })
}

module "storage" {
  source = "./modules/storage"

  bucket     = var.storage.bucket
  encryption = merge(var.storage.encryption, { account_id = var.account_id })
  tags       = local.tags
}

module "queue" {
  source = "./modules/queue"

  name                 = var.name
  redis                = var.queue
  password_generation  = var.secrets.redis_password_generation
  secret_recovery_days = var.secrets.recovery_days
  subnet_ids           = values(module.network.private_subnet_ids)
  security_group_id    = module.network.security_group_ids.queue
  kms_key_arn          = local.key_arn
  tags                 = local.tags
}

module "api" {
  source = "./modules/api"

  name                 = var.name
  region               = var.region
  image                = var.images.api
  service              = var.api.service
  balancer             = var.api.balancer
  dataset_buckets      = var.api.dataset_buckets
  storage              = local.storage
  redis_url_secret_arn = module.queue.url_secret_arn
  log_group            = module.observability.log_groups["api"]
  permissions_boundary = var.permissions_boundary
  tags                 = local.tags

  secrets = {
    kms_key_arn    = local.key_arn
    recovery_days  = var.secrets.recovery_days
    key_generation = var.secrets.api_key_generation
  }

  network = {
    vpc_id             = module.network.vpc_id
    public_subnet_ids  = values(module.network.public_subnet_ids)
    private_subnet_ids = values(module.network.private_subnet_ids)
    security_group_ids = module.network.security_group_ids
  }
}

module "workers" {
  source = "./modules/workers"

  name           = var.name
  region         = var.region
  account_id     = var.account_id
  pools          = var.pools
  images         = { cuda = var.images.worker_cuda, cpu = var.images.worker_cpu }
  machine_images = var.machine_images
  storage        = local.storage
  redis          = local.redis
  log_group      = module.observability.log_groups["workers"]
  shell_access   = var.shell_access
  tags           = local.tags

  permissions_boundary = var.permissions_boundary

  network = {
    private_subnet_ids      = module.network.private_subnet_ids
    worker_security_group   = module.network.security_group_ids.worker
    pool_security_group_ids = module.network.pool_security_group_ids
  }
}

module "autoscaler" {
  source = "./modules/autoscaler"

  name        = var.name
  region      = var.region
  image       = var.images.autoscaler
  groups      = module.workers.groups
  group_arns  = module.workers.group_arns
  pools       = { for name, pool in var.pools : name => pool.scaling }
  service     = var.autoscaler
  cluster_arn = module.api.cluster.arn
  redis       = local.redis
  log_group   = module.observability.log_groups["autoscaler"]
  tags        = local.tags

  permissions_boundary = var.permissions_boundary

  network = {
    private_subnet_ids = values(module.network.private_subnet_ids)
    security_group_id  = module.network.security_group_ids.autoscaler
  }
}

module "observability" {
  source = "./modules/observability"

  name             = var.name
  region           = var.region
  account_id       = var.account_id
  logs             = merge(var.observability.logs, { network = var.observability.flow_log })
  alarms           = merge(var.observability.alarms, { cost_tag = { key = "zerofleet:installation", value = var.name } })
  pools            = { for pool in local.pool_names : pool => { max_machines = lookup(var.observability.alarms.max_machines, pool, local.max_machines[pool]) } }
  metric_namespace = module.autoscaler.metric_namespace
  balancer         = module.api.balancer
  redis            = module.queue.metrics
  kms_key_arn      = local.key_arn
  tags             = local.tags

  services = {
    cluster    = module.api.cluster.name
    api        = module.api.service_name
    autoscaler = module.autoscaler.service_name
  }
}
