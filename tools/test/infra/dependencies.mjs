// Resources that have to be there before a program starts. Terraform makes independent resources at once, and a task or
// machine that finds no Redis, no route or no permission ends. Walks the graph of the plan of each example.

const READY_NETWORK = [
  'network.aws_internet_gateway.this',
  'network.aws_route.internet',
  'network.aws_route.nat',
  'network.aws_route_table_association.private',
  'network.aws_route_table_association.public',
  'network.aws_vpc_endpoint.interface',
  'network.aws_vpc_endpoint.s3',
  'network.aws_vpc_security_group_egress_rule.connection',
  'network.aws_vpc_security_group_egress_rule.internet',
  'network.aws_vpc_security_group_egress_rule.s3',
  'network.aws_vpc_security_group_ingress_rule.connection',
];

const READY_REDIS = [
  'queue.aws_elasticache_replication_group.this',
  'queue.aws_elasticache_user_group.this',
  'queue.aws_memorydb_acl.this',
  'queue.aws_memorydb_cluster.this',
  'queue.aws_secretsmanager_secret_version.url',
];

const READY_WORKERS = [
  'workers.aws_autoscaling_group.this',
  'workers.aws_autoscaling_lifecycle_hook.drain',
  'workers.aws_iam_role_policy.attempt',
  'workers.aws_iam_role_policy.worker',
  'workers.aws_launch_template.this',
];

/** For each program what it must come after, by module and resource. */
export const NEEDED = {
  'api.aws_ecs_service.api': [
    ...READY_NETWORK,
    ...READY_REDIS,
    'api.aws_iam_role_policy.execution',
    'api.aws_iam_role_policy.task',
    'api.aws_lb_listener.https',
    'api.aws_secretsmanager_secret_version.api_key',
    'network.aws_vpc_security_group_ingress_rule.clients',
    'observability.aws_cloudwatch_log_group.this',
    'storage.aws_s3_bucket.this',
  ],
  'autoscaler.aws_ecs_service.autoscaler': [
    ...READY_NETWORK,
    ...READY_REDIS,
    ...READY_WORKERS,
    'autoscaler.aws_iam_role_policy.execution',
    'autoscaler.aws_iam_role_policy.task',
    'observability.aws_cloudwatch_log_group.this',
  ],
  'workers.aws_autoscaling_group.this': [
    ...READY_NETWORK,
    ...READY_REDIS,
    'observability.aws_cloudwatch_log_group.this',
    'storage.aws_s3_bucket.this',
    'workers.aws_iam_role_policy.attempt',
    'workers.aws_iam_role_policy.worker',
  ],
};

/**
 * Reads `terraform graph`.
 * @param {string} dot
 * @returns {Map<string, string[]>} by node what it depends on
 */
export function readGraph(dot) {
  const edges = new Map();
  for (const [, from, to] of dot.matchAll(/^\s*"\[root\] ([^"]+)" -> "\[root\] ([^"]+)"/gm))
    edges.set(from, [...(edges.get(from) ?? []), to]);
  return edges;
}

/** Everything that `node` depends on, however indirectly. */
export function dependenciesOf(edges, node) {
  const found = new Set();
  const open = [node];
  while (open.length > 0) {
    for (const next of edges.get(open.pop()) ?? []) {
      if (found.has(next)) continue;
      found.add(next);
      open.push(next);
    }
  }
  return found;
}

/** One line per program that does not wait for something that it needs. */
export function missingDependencies(edges, installation = 'module.zerofleet') {
  // A module has a node that comes before its resources, and one after them: names keep what is in brackets.
  const nodeOf = (resource) => `${installation}.module.${resource} (expand)`;
  return Object.entries(NEEDED).flatMap(([program, needed]) => {
    const found = dependenciesOf(edges, nodeOf(program));
    return needed
      .filter((resource) => !found.has(nodeOf(resource)))
      .map((resource) => `${program} does not wait for ${resource}`);
  });
}

/**
 * @param {import('./terraform.mjs').Workspace} workspace
 * @param {string} directory an example whose provider answers offline
 * @returns {Promise<import('./static-checks.mjs').Result>}
 */
export async function checkDependencies(workspace, directory) {
  const name = `programs wait for what they need: ${directory}`;
  const { code, output } = await workspace.terraform(directory, ['graph', '-type=plan']);
  if (code !== 0) return { name, problem: output.trim() };
  const problems = missingDependencies(readGraph(output));
  return { name, problem: problems.length === 0 ? null : problems.join('\n') };
}
