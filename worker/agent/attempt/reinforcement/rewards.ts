/** Rewards of the samples of a call: graded once, and read from then on. */
import { type Grade, type Grader, ZerofleetError } from '../../../../contracts/index.js';
import { putOnce } from '../../../../formats/calls/call-log.js';
import { callResultKey, rewardsKey } from '../../../../formats/checkpoint/layout.js';
import type { Graders } from '../../../../graders/grader.js';
import type { Reinforcement } from '../../../../job-document/index.js';
import { getIfExists } from '../../../../platform/object-store/common/get-if-exists.js';
import { type AttemptContext, retryStorage } from '../context.js';
import type { JobCalls } from '../session/job-calls.js';
import type { PromptSource } from './prompt-source.js';
import type { Rewarded, Sampled } from './sampled-calls.js';

interface RewardsOptions {
  calls: Pick<JobCalls, 'untilAnswered'>;
  settings: Reinforcement;
  signal: AbortSignal;
}

/** A `sample` call whose samples are graded. */
interface GradedCall {
  /** Number of the call. */
  number: number;
  /** First step that uses the samples. */
  step: number;
  /** Indices of its prompts. */
  prompts: readonly number[];
}

/** Rewards of a job. They are stored before anything depends on them, and rewards that are stored stay. */
export class Rewards {
  constructor(
    private readonly ctx: Pick<AttemptContext, 'deps' | 'lease' | 'job'>,
    private readonly options: RewardsOptions,
  ) {}

  /** Returns the samples with their rewards; null for a call whose samples have none yet. */
  async find({ number, prompts }: Omit<GradedCall, 'step'>): Promise<Rewarded | null> {
    const { deps, job } = this.ctx;
    const key = rewardsKey(job.id, number);
    const rewards = await retryStorage(this.ctx, () => getIfExists(deps.objects, key));
    return rewards && { ...(await this.sampled({ number, prompts })), rewards: shared(rewards) };
  }

  /**
   * Waits for the samples, and grades them unless they have rewards.
   * @throws ZerofleetError `grading_failed`, `diverged`; the signal's reason
   */
  async of(source: PromptSource, { step, ...call }: GradedCall): Promise<Rewarded> {
    const found = await this.find(call);
    if (found !== null) return found;
    const { deps, job } = this.ctx;
    const { calls, signal } = this.options;
    await calls.untilAnswered(call.number, signal);
    const sampled = await this.sampled(call);
    const grades = await this.grade(await source.items(call.prompts), await source.texts(sampled));
    const { content } = await source.record({ ...sampled, step, grades });
    const record = Buffer.from(content.buffer);
    const key = rewardsKey(job.id, call.number);
    const before = await retryStorage(this.ctx, () => putOnce(deps.objects, key, record));
    return { ...sampled, rewards: shared(before ?? record) };
  }

  private async sampled(call: Pick<Sampled, 'number' | 'prompts'>): Promise<Sampled> {
    const { deps, job } = this.ctx;
    const key = callResultKey(job.id, call.number);
    return { ...call, result: shared(await retryStorage(this.ctx, () => deps.objects.get(key))) };
  }

  /** Grades texts; those of an item stand behind each other. */
  private async grade(items: readonly Record<string, unknown>[], texts: readonly string[]): Promise<Grade[]> {
    const { deps, job } = this.ctx;
    const { settings, signal } = this.options;
    const graders: Pick<Graders, 'grade'> = deps.graders.of(job.spec.project);
    const grader = settings.grader as Grader;
    // An error that is none of a grader ends the other grades.
    const ended = new AbortController();
    const either = AbortSignal.any([signal, ended.signal]);
    const gradeOf = async (text: string, i: number) => {
      const item = items[Math.floor((i * items.length) / texts.length)] ?? {};
      return graders.grade(grader, { item, sample: { output_text: text } }, either);
    };
    const grades = await Promise.all(texts.map(gradeOf)).finally(() => ended.abort());
    checkFailures(grades, settings);
    return grades;
  }
}

function checkFailures(grades: readonly Grade[], { max_failed_share: limit }: Reinforcement): void {
  const failed = grades.flatMap(({ errors }) => errors.slice(0, 1));
  if (failed.length <= limit * grades.length) return;
  const [{ grader: name, code, message } = { grader: '', code: '', message: '' }] = failed;
  throw new ZerofleetError(
    'grading_failed',
    `grading failed for ${failed.length} of ${grades.length} samples of a step, more than ` +
      `train.objective.max_failed_share ${limit} allows; the first by ${name}: ${code}: ${message}`,
  );
}

/** Threads read shared memory without a copy. */
function shared(content: Uint8Array): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(content.length);
  new Uint8Array(memory).set(content);
  return memory;
}
