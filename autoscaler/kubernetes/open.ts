import type { Logger } from '../../platform/logging/logging.js';
import type { AutoscalerMetrics } from '../metrics.js';
import { findCluster } from './access.js';
import { Connection } from './connection.js';
import { KubernetesCapacity } from './kubernetes-capacity.js';
import { PodsApi } from './pods-api.js';

/**
 * Opens the cluster in which this program runs, or that of KUBECONFIG.
 * @throws ZerofleetError `invalid_configuration` when there is none
 */
export async function openKubernetesCapacity(
  metrics: AutoscalerMetrics,
  log: Logger,
): Promise<KubernetesCapacity> {
  const connection = new Connection(await findCluster(process.env), (verb) => metrics.requested(verb));
  return new KubernetesCapacity({
    api: new PodsApi(connection),
    log,
    onEnded: (pool, type, cause) => metrics.machineEnded(pool, type, cause),
  });
}
