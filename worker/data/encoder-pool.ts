import { Worker } from 'node:worker_threads';
import { ZerofleetError } from '../../contracts/index.js';
import { type Deferred, deferred } from '../deferred.js';
import { codeOf, fromRankError } from '../errors.js';
import type { Batch, EncodedBatch, EncoderSetup } from './encode-batch.js';
import type { ThreadReply } from './encoder-thread.js';

/** Batches that a thread has at once: one that it encodes and one that waits for it. */
const BATCHES_PER_THREAD = 2;

/** Encodes batches in threads. What comes out depends on the batches alone. */
export class EncoderPool {
  private readonly threads: EncoderThread[];

  constructor(setup: EncoderSetup, num_threads: number) {
    this.threads = Array.from({ length: num_threads }, () => new EncoderThread(setup));
  }

  /**
   * The tokens of each batch, in the order of the batches. No more of them are taken than the threads have work with, so that
   * memory use does not depend on how many there are.
   * @throws ZerofleetError of the first batch that cannot be encoded; what `batches` throws
   */
  async *encode(batches: AsyncIterable<Batch>): AsyncGenerator<EncodedBatch> {
    const waiting: Promise<EncodedBatch>[] = [];
    let next = 0;
    for await (const batch of batches) {
      const thread = this.threads[next++ % this.threads.length] as EncoderThread;
      waiting.push(thread.encode(batch));
      if (waiting.length < BATCHES_PER_THREAD * this.threads.length) continue;
      yield (await waiting.shift()) as EncodedBatch;
    }
    for (const encoded of waiting) yield await encoded;
  }

  /** Ends the threads, whatever they are at. */
  async close(): Promise<void> {
    await Promise.all(this.threads.map((thread) => thread.close()));
  }
}

/** Answers come in the order of the batches. */
class EncoderThread {
  private readonly worker: Worker;
  private readonly asked: Deferred<EncodedBatch>[] = [];
  private ended: Error | null = null;

  constructor(setup: EncoderSetup) {
    // Settings of the process, such as a test runner's loaders, would be carried out again in every thread.
    this.worker = new Worker(new URL('encoder-thread.js', import.meta.url), {
      workerData: setup,
      env: {},
      execArgv: [],
    });
    this.worker.on('message', (reply: ThreadReply) => {
      const answer = this.asked.shift();
      if (reply.ok) answer?.resolve(reply.encoded);
      else answer?.reject(fromRankError(reply.error));
    });
    this.worker.on('error', (error) => this.end(describe(error)));
    this.worker.on('exit', (code) =>
      this.end(new Error(`a thread that encodes text exited with code ${code}`)),
    );
  }

  encode(batch: Batch): Promise<EncodedBatch> {
    const answer = deferred<EncodedBatch>();
    // Whoever waits may have failed with another batch before it looks at this one.
    answer.promise.catch(() => undefined);
    if (this.ended) answer.reject(this.ended);
    else this.asked.push(answer);
    // A copy of just these bytes, which then moves to the thread.
    const bytes = new Uint8Array(batch.bytes);
    this.worker.postMessage({ ...batch, bytes }, [bytes.buffer]);
    return answer.promise;
  }

  async close(): Promise<void> {
    await this.worker.terminate();
  }

  private end(error: Error): void {
    this.ended ??= error;
    for (const answer of this.asked.splice(0)) answer.reject(this.ended);
  }
}

function describe(error: Error): Error {
  if (codeOf(error) !== 'ERR_WORKER_OUT_OF_MEMORY') return error;
  return new ZerofleetError(
    'out_of_memory',
    'a thread that encodes text ran out of memory; give the worker more of it, or fewer threads',
  );
}
