/**
 * Imported before the API server, also into its threads: the process dies when it is about to deliver an attempt to the queue.
 * For crash-before-queue.test.ts.
 */
import { WorkerQueues } from '../../control/scheduling/worker-queues.js';

WorkerQueues.prototype.deliver = () => {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => undefined);
};
