import { ZerofleetError } from '../../contracts/index.js';
import { programPath } from '../../platform/process/programs.js';
import { ThreadPool } from '../../platform/threads/thread-pool.js';
import type { Batch, EncodedBatch, EncoderSetup } from './encode-batch.js';
import type { EncoderTasks } from './thread-main.js';

/** Batches per thread: one in progress and one queued. */
const BATCHES_PER_THREAD = 2;
/** Timeout of a batch. A batch takes about a second; initializing a large tokenizer takes several. */
const BATCH_MS = 5 * 60_000;
const HEAP_MB = 4096;
const IDLE_MS = 60_000;

/** Encodes batches in threads. The result depends only on the batches. */
export class EncoderPool {
  private readonly threads: ThreadPool<EncoderTasks>;

  /** Creates the threads. @param batchMs timeout of one batch */
  constructor(
    setup: EncoderSetup,
    private readonly numThreads: number,
    batchMs = BATCH_MS,
  ) {
    this.threads = new ThreadPool<EncoderTasks>({
      module: programPath('formats/encoding/thread-main'),
      setup,
      threads: numThreads,
      heap_mb: HEAP_MB,
      task_ms: batchMs,
      idle_ms: IDLE_MS,
      limited: (limit) => (limit === 'memory' ? outOfMemory() : tooSlow(batchMs)),
    });
  }

  /**
   * Returns the tokens of each batch, in order. The number of batches in progress is bounded, so that memory use does
   * not depend on their total.
   * @throws ZerofleetError of the first batch that cannot be encoded; errors of `batches`
   */
  async *encode(batches: AsyncIterable<Batch>): AsyncGenerator<EncodedBatch> {
    const waiting: Promise<EncodedBatch>[] = [];
    for await (const batch of batches) {
      waiting.push(this.encodeOne(batch));
      if (waiting.length < BATCHES_PER_THREAD * this.numThreads) continue;
      yield (await waiting.shift()) as EncodedBatch;
    }
    for (const encoded of waiting) yield await encoded;
  }

  /** Ends the threads and aborts their work. */
  close(): Promise<void> {
    return this.threads.close();
  }

  private encodeOne(batch: Batch): Promise<EncodedBatch> {
    // Copies just these bytes, because the copy moves to the thread.
    const encoded = this.threads.run('encode', { ...batch, bytes: new Uint8Array(batch.bytes) });
    // Prevents an unhandled rejection: the caller may fail with another batch first.
    encoded.catch(() => undefined);
    return encoded;
  }
}

function outOfMemory(): ZerofleetError {
  return new ZerofleetError(
    'out_of_memory',
    'a thread that encodes text ran out of memory; give the worker more memory, or use fewer threads',
  );
}

function tooSlow(batchMs: number): ZerofleetError {
  return new ZerofleetError(
    'tokenizer_invalid',
    `the tokenizer worked on a part of the dataset for ${batchMs / 1000} s without finishing: a regular expression of its ` +
      'tokenizer.json, or the chat template, backtracks on this text; use another tokenizer',
  );
}
