/**
 * Imported before the API server, into its threads as well: the process dies at the moment at which it would hand an attempt to the queue.
 * For crash-before-queue.test.ts.
 */
import { WorkerQueues } from '../../control/scheduling/worker-queues.js';

WorkerQueues.prototype.deliver = () => {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => undefined);
};
