/** The API server, which dies at the moment at which it would hand a recorded job to the queue: for crash-before-queue.test.ts. */
import { WorkerQueues } from '../../platform/scheduling/worker-queues.js';

WorkerQueues.prototype.deliver = () => {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => undefined);
};
await import('../../api/main.js');
