/** Main module of the scheduler thread: see thread.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { createLogger } from '../../platform/logging/logging.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { connectJobStore } from '../../state/index.js';
import { startScheduler } from './start.js';
import type { SchedulerThreadOptions, ThreadMessage } from './thread.js';

const { redisUrl, objectStoreUrl, s3Endpoint, level } = workerData as SchedulerThreadOptions;
const tell = (message: ThreadMessage) => parentPort?.postMessage(message);
const log = createLogger({
  level,
  name: 'scheduler',
  destination: { write: (line: string) => tell({ kind: 'log', line }) },
});

const store = connectJobStore({ url: redisUrl, log });
const objects = await openObjectStore(objectStoreUrl, { s3Endpoint });
const scheduler = startScheduler({ redisUrl, store, objects, log });

parentPort?.once('message', async () => {
  await scheduler.close();
  await objects.close();
  await store.close();
  parentPort?.close();
});
tell({ kind: 'ready' });
