import { ZerofleetError } from '../../contracts/index.js';
import { ThreadPool } from '../../platform/threads/thread-pool.js';
import type { Batch, EncodedBatch, EncoderSetup } from './encode-batch.js';
import type { EncoderTasks } from './encoder-thread.js';

/** Batches that a thread has at once: one that it encodes and one that waits for it. */
const BATCHES_PER_THREAD = 2;
/** A batch is encoded in about a second; tokenizers of many tokens need some of them for themselves. */
const BATCH_MS = 5 * 60_000;
const HEAP_MB = 4096;
const IDLE_MS = 60_000;

/** Encodes batches in threads. What comes out depends on the batches alone. */
export class EncoderPool {
  private readonly threads: ThreadPool<EncoderTasks>;

  /** @param batch_ms how long a thread may compute on one batch */
  constructor(
    setup: EncoderSetup,
    private readonly num_threads: number,
    batch_ms = BATCH_MS,
  ) {
    this.threads = new ThreadPool<EncoderTasks>({
      module: new URL('encoder-thread.js', import.meta.url),
      setup,
      threads: num_threads,
      heap_mb: HEAP_MB,
      task_ms: batch_ms,
      idle_ms: IDLE_MS,
      limited: (limit) => (limit === 'memory' ? outOfMemory() : tooSlow(batch_ms)),
    });
  }

  /**
   * The tokens of each batch, in the order of the batches. No more of them are taken than the threads have work with, so that
   * memory use does not depend on how many there are.
   * @throws ZerofleetError of the first batch that cannot be encoded; what `batches` throws
   */
  async *encode(batches: AsyncIterable<Batch>): AsyncGenerator<EncodedBatch> {
    const waiting: Promise<EncodedBatch>[] = [];
    for await (const batch of batches) {
      waiting.push(this.encodeOne(batch));
      if (waiting.length < BATCHES_PER_THREAD * this.num_threads) continue;
      yield (await waiting.shift()) as EncodedBatch;
    }
    for (const encoded of waiting) yield await encoded;
  }

  /** Ends the threads, whatever they are at. */
  close(): Promise<void> {
    return this.threads.close();
  }

  private encodeOne(batch: Batch): Promise<EncodedBatch> {
    // A copy of just these bytes, which then moves to the thread.
    const encoded = this.threads.run('encode', { ...batch, bytes: new Uint8Array(batch.bytes) });
    // Whoever waits may have failed with another batch before it looks at this one.
    encoded.catch(() => undefined);
    return encoded;
  }
}

function outOfMemory(): ZerofleetError {
  return new ZerofleetError(
    'out_of_memory',
    'a thread that encodes text ran out of memory; give the worker more of it, or fewer threads',
  );
}

function tooSlow(batch_ms: number): ZerofleetError {
  return new ZerofleetError(
    'tokenizer_invalid',
    `the tokenizer has read a part of the dataset for ${batch_ms / 1000} s and come to no end: a regular expression of its ` +
      'tokenizer.json, or the chat template, goes back and forth on this text; use another tokenizer',
  );
}
