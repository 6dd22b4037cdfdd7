/** The main module of a thread of the encoder pool: batches come in, their tokens or an error go out, in the same order. */
import { parentPort, workerData } from 'node:worker_threads';
import type { RankError } from '../../contracts/rank-protocol.js';
import { toRankError } from '../errors.js';
import { type Batch, BatchEncoder, type EncodedBatch, type EncoderSetup } from './encode-batch.js';

export type ThreadReply = { ok: true; encoded: EncodedBatch } | { ok: false; error: RankError };

let encoder: BatchEncoder | null = null;

parentPort?.on('message', (batch: Batch) => {
  try {
    encoder ??= new BatchEncoder(workerData as EncoderSetup);
    const encoded = encoder.encode(batch);
    const buffers = [encoded.tokens, ...(encoded.counts ? [encoded.counts] : [])].map(({ buffer }) => buffer);
    reply({ ok: true, encoded }, buffers as ArrayBuffer[]);
  } catch (error) {
    reply({ ok: false, error: toRankError(error) }, []);
  }
});

function reply(message: ThreadReply, transfer: ArrayBuffer[]): void {
  parentPort?.postMessage(message, transfer);
}
