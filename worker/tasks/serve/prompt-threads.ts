import { type PromptRequest, ZerofleetError } from '../../../contracts/index.js';
import { programPath } from '../../../platform/process/programs.js';
import { ThreadPool } from '../../../platform/threads/thread-pool.js';
import type { Decoding, PromptSetup, SamplePrompt } from './prompt.js';
import type { PromptTasks } from './prompt-thread-main.js';

/** Compute time of one prompt; the first one includes the initialization of a large tokenizer. */
const PROMPT_MS = 30_000;
const HEAP_MB = 2048;
/** Idle time after which the thread ends; the next prompt initializes the tokenizer again. */
const IDLE_MS = 300_000;

/**
 * Reads the tokenizer of a variant and builds its prompts in a thread, because a chat template or a regular expression
 * of a tokenizer may never end. A prompt that exceeds a limit fails; the other requests of the process continue.
 * Answers are decoded outside of the thread by a table, which takes little time with every tokenizer (TokenDecoder).
 */
export class PromptThreads {
  private readonly threads: ThreadPool<PromptTasks>;

  /** @param promptMs maximum compute time of one prompt */
  constructor(setup: PromptSetup, promptMs = PROMPT_MS) {
    this.threads = new ThreadPool<PromptTasks>({
      module: programPath('worker/tasks/serve/prompt-thread-main'),
      setup,
      threads: 1,
      heap_mb: HEAP_MB,
      task_ms: promptMs,
      idle_ms: IDLE_MS,
      limited: (limit) =>
        new ZerofleetError(
          'content_too_complex',
          `the chat template and the tokenizer need more than ${limit === 'time' ? `${promptMs / 1000} s` : `${HEAP_MB} MiB`} for this ` +
            'prompt; send a shorter one, or use a simpler template',
        ),
    });
  }

  /**
   * @throws ZerofleetError as `buildPrompt`, `content_too_complex`; the signal's reason for a prompt that was not begun
   */
  build(request: PromptRequest, signal: AbortSignal): Promise<SamplePrompt> {
    return this.threads.run('prompt', request, { signal });
  }

  /** Returns what decodes answers. @throws ZerofleetError `tokenizer_invalid`, `content_too_complex` */
  decoding(): Promise<Decoding> {
    return this.threads.run('decoding', null);
  }

  /** Ends the thread. Idempotent. */
  close(): Promise<void> {
    return this.threads.close();
  }
}
