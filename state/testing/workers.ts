import type { WorkerAnnouncement, WorkerGpu } from '../pools/pools.js';

export function testGpu(uuid: string, changes: Partial<WorkerGpu> = {}): WorkerGpu {
  return {
    uuid,
    name: 'NVIDIA H100 80GB HBM3',
    memory_bytes: 80 * 2 ** 30,
    driver: '580.65.06',
    problem: null,
    ...changes,
  };
}

/** Returns the announcement of a worker of the default pool. */
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
    topology: [],
    draining: false,
    problem: null,
    numerics: null,
    gpus: [],
    answer_gpus: [],
    memory_bytes: 2 ** 40,
    save_seconds: null,
    ...changes,
  };
  return worker;
}
