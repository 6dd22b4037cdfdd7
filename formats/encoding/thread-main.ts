/** Main module of a thread of the encoder pool. */
import { workerData } from 'node:worker_threads';
import { serveTasks } from '../../platform/threads/serve-tasks.js';
import { type Batch, BatchEncoder, type EncodedBatch, type EncoderSetup } from './encode-batch.js';

export type EncoderTasks = typeof tasks;

let encoder: BatchEncoder | null = null;

const tasks = {
  encode(batch: Batch): EncodedBatch {
    encoder ??= new BatchEncoder(workerData as EncoderSetup);
    return encoder.encode(batch);
  },
};

serveTasks(tasks);
