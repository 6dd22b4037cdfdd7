import type { WorkerAnnouncement } from '../job-store/index.js';

/** What a worker of the default pool says of itself. */
export function testWorker(id: string, slots: number, changes: Partial<WorkerAnnouncement> = {}) {
  const worker: WorkerAnnouncement = {
    id,
    pool: 'default',
    host: 'host',
    pid: 1,
    slots,
    version: '0.0.0',
    address: '127.0.0.1',
    machine: null,
    draining: false,
    ...changes,
  };
  return worker;
}
