import { ZerofleetError } from '../../../../contracts/index.js';
import { datasetKey } from '../../../../contracts/object-keys.js';
import { readTokenizer } from '../../../../formats/encoding/tokenizer-store.js';
import { reinforcementOf, tokenizerModel } from '../../../../job-document/index.js';
import { programPath } from '../../../../platform/process/programs.js';
import { seedOf } from '../../../../platform/seeds.js';
import { ThreadPool } from '../../../../platform/threads/thread-pool.js';
import { KeyedPermutation } from '../../../tasks/data/keyed-choice.js';
import { verifiedBytes } from '../../../tasks/data/verified-bytes.js';
import { type AttemptContext, retryStorage } from '../context.js';
import type { Content, Rewarded, Sampled, SampleInput } from './sampled-calls.js';
import type { TextTasks, ThreadSetup } from './text-thread-main.js';

/** Compute time of one task; the first one includes the initialization of a large tokenizer. */
const TASK_MS = 60_000;
const HEAP_MB = 2048;
const IDLE_MS = 300_000;
/** Prompts that are checked at a time. */
const CHECKED = 1000;
/** Distance of the seeds of two epochs. */
const EPOCH = 1n << 32n;

/**
 * Prompts of a job in their order, and what is made of them and their samples. The dataset stays in memory. A thread
 * reads it, because a chat template or a regular expression of a tokenizer may never end, and samples have megabytes.
 */
export class PromptSource {
  private constructor(
    private readonly threads: ThreadPool<TextTasks>,
    private readonly seed: number,
    readonly count: number,
  ) {}

  /**
   * Reads the dataset and checks every prompt.
   * @throws ZerofleetError `dataset_not_found`, `dataset_corrupt`, `tokenizer_invalid`, `prompt_too_long`, and other
   *   errors that name a line; the signal's reason
   */
  static async open(
    ctx: Pick<AttemptContext, 'deps' | 'job' | 'lease'>,
    dataset: string,
    signal: AbortSignal,
  ): Promise<PromptSource> {
    const { seed } = ctx.job.spec.data;
    const setup = await setupOf(ctx, dataset);
    signal.throwIfAborted();
    const threads = new ThreadPool<TextTasks>({
      module: programPath('worker/agent/attempt/reinforcement/text-thread-main'),
      setup,
      threads: 1,
      heap_mb: HEAP_MB,
      task_ms: TASK_MS,
      idle_ms: IDLE_MS,
      limited: (limit) =>
        new ZerofleetError(
          'content_too_complex',
          `the chat template and the tokenizer need more than ${limit === 'time' ? `${TASK_MS / 1000} s` : `${HEAP_MB} MiB`} for the prompts of a step; use a simpler template`,
        ),
    });
    const end = () => void threads.close();
    signal.addEventListener('abort', end, { once: true });
    try {
      const count = await threads.run('check', { begin: 0, end: CHECKED });
      for (let begin = CHECKED; begin < count; begin += CHECKED)
        await threads.run('check', { begin, end: begin + CHECKED });
      return new PromptSource(threads, seed, count);
    } catch (error) {
      await threads.close();
      throw error;
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  /** Returns the prompts `[begin, end)` of the order. Each epoch has one of its own, which the seed determines. */
  promptsAt(begin: number, end: number): number[] {
    return Array.from({ length: end - begin }, (_, i) => this.indexAt(begin + i));
  }

  /** Returns the fields of prompts, for graders. */
  items(prompts: readonly number[]): Promise<Record<string, unknown>[]> {
    return this.threads.run('items', prompts);
  }

  sampleCall(input: SampleInput): Promise<Content> {
    return this.threads.run('sampleCall', input);
  }

  texts(sampled: Sampled): Promise<string[]> {
    return this.threads.run('texts', sampled);
  }

  record(input: Parameters<TextTasks['record']>[0]): Promise<Content> {
    return this.threads.run('record', input);
  }

  metrics(sampled: Rewarded): Promise<Record<string, number>> {
    return this.threads.run('metrics', sampled);
  }

  pass(input: Parameters<TextTasks['pass']>[0]): Promise<Content> {
    return this.threads.run('pass', input);
  }

  /** Idempotent. */
  close(): Promise<void> {
    return this.threads.close();
  }

  private indexAt(position: number): number {
    const epoch = Math.floor(position / this.count);
    const seed = seedOf(BigInt(this.seed) + BigInt(epoch) * EPOCH);
    return new KeyedPermutation(seed, this.count).at(position % this.count);
  }
}

async function setupOf(
  { deps, job, lease }: Pick<AttemptContext, 'deps' | 'job' | 'lease'>,
  id: string,
): Promise<ThreadSetup> {
  const { data, train } = job.spec;
  const { parse_special_tokens, chat_template, template_date } = data;
  const dataset = await lease.call(() => deps.store.getDataset(id));
  if (!dataset) throw new ZerofleetError('dataset_not_found', `dataset ${id} was deleted`);
  const content = await retryStorage({ deps, lease }, async () => {
    const read = new Uint8Array(new SharedArrayBuffer(dataset.bytes));
    let at = 0;
    const source = { dataset, object_key: datasetKey(id) };
    for await (const chunk of verifiedBytes(deps.objects, source, () => undefined)) {
      if (at + chunk.length <= read.length) read.set(chunk, at);
      at += chunk.length;
    }
    return read.buffer;
  });
  const model = tokenizerModel(data);
  const tokenizer =
    model === null ? null : await retryStorage({ deps, lease }, () => readTokenizer(deps.objects, model));
  const settings = reinforcementOf(train);
  if (settings === null) throw new ZerofleetError('internal_error', 'the job has no prompts');
  return {
    settings,
    content,
    tokenizer,
    parse_special_tokens,
    chat_template,
    template_date,
    prompt_tokens: train.sequence_length - settings.max_tokens,
  };
}
