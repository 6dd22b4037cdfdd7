import { ZerofleetError } from '../../../contracts/index.js';
import { programPath } from '../../../platform/process/programs.js';
import { ThreadPool } from '../../../platform/threads/thread-pool.js';
import type { MaskRequest, MaskSetup, MaskTasks, NextTokens } from './mask-thread-main.js';

/** Compute time of one mask; the first one includes the bytes of all tokens. */
const MASK_MS = 30_000;
const HEAP_MB = 2048;
/** Idle time after which the thread ends. */
const IDLE_MS = 300_000;

/**
 * Computes which tokens the constrained answers of a variant may continue with, in a thread. A mask is a function of
 * the constraint and the tokens. When a mask exceeds a limit, its answer fails, and others continue in a new thread.
 */
export class TokenMasks {
  private readonly threads: ThreadPool<MaskTasks>;

  constructor(setup: MaskSetup) {
    this.threads = new ThreadPool<MaskTasks>({
      module: programPath('worker/tasks/serve/mask-thread-main'),
      setup,
      threads: 1,
      heap_mb: HEAP_MB,
      task_ms: MASK_MS,
      idle_ms: IDLE_MS,
      limited: (limit) =>
        new ZerofleetError(
          'content_too_complex',
          `the schema of the answer needs more than ${limit === 'time' ? `${MASK_MS / 1000} s` : `${HEAP_MB} MiB`} for a token; use a simpler one`,
        ),
    });
  }

  /** @throws ZerofleetError `tokenizer_invalid`, `content_too_complex`, `shutting_down` */
  next(request: MaskRequest): Promise<NextTokens> {
    return this.threads.run('next', request);
  }

  /** Ends the thread. Idempotent. */
  close(): Promise<void> {
    return this.threads.close();
  }
}
