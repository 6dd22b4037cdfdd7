import type { StoredCall } from '../../../../contracts/index.js';
import { readCallResult } from '../../../../formats/calls/call-log.js';
import {
  type CallPlace,
  callBounds,
  lrAt,
  placeOf,
  type RewardedSample,
  type RolloutPlan,
  rewardedSamples,
  rolloutOfStep,
  rolloutPlan,
  rowsOf,
  sampleNumber,
} from '../../../../job-document/index.js';
import { mixedSeed } from '../../../../platform/seeds.js';
import { type AttemptContext, retryStorage, type TrainableJob } from '../context.js';
import type { CallWriter } from '../session/call-writer.js';
import type { JobCalls } from '../session/job-calls.js';
import { PromptSource } from './prompt-source.js';
import { grade, putRewards, readRewards, rolloutMetrics, samplesIn } from './rewards.js';
import type { LinePrompt } from './sample-texts.js';

/** A rollout with its rewards. */
interface Rewarded {
  rows: ReturnType<typeof rowsOf>;
  metrics: Record<string, number>;
  /** Size of the stored rewards. */
  bytes: number;
}

type SampleCall = Extract<StoredCall, { type: 'sample' }>;

/**
 * Writes the calls of a job with reinforcement learning. Each call is a function of the document, the results before it
 * and the recorded rewards. So a driver that begins again continues after the last call, and any number of them write
 * the same log.
 */
export class RolloutDriver implements CallWriter {
  private readonly plan: RolloutPlan;
  private readonly closed = new AbortController();
  /** Null while no generation of ranks has begun, and after an error. */
  private running: Promise<void> | null = null;
  private onFailed: (error: unknown) => void = () => undefined;
  private source: Promise<PromptSource> | null = null;
  /** The last rollout whose parts were read. */
  private prompts: { rollout: number; prompts: LinePrompt[] } | null = null;
  private rewarded: { rollout: number; rewarded: Rewarded } | null = null;
  /** By rollout, of those whose steps the ranks have not reported. */
  private readonly metrics = new Map<number, Record<string, number>>();

  constructor(
    private readonly ctx: Pick<AttemptContext, 'deps' | 'lease'> & { job: TrainableJob },
    private readonly calls: Pick<JobCalls, 'answered' | 'append' | 'appended' | 'untilAnswered'>,
  ) {
    this.plan = rolloutPlan(ctx.job.spec.train);
  }

  /**
   * Reads the metrics of steps that ranks run again.
   * @param step steps of their state
   * @throws the signal's reason
   */
  async prepare(step: number, signal: AbortSignal): Promise<void> {
    const next = placeOf(this.plan, this.calls.appended + 1);
    for (let rollout = rolloutOfStep(this.plan, step + 1); ; rollout += 1) {
      if (sampleNumber(this.plan, rollout) > this.calls.answered) return;
      if (next.kind === 'sample' && next.rollout === rollout) return;
      signal.throwIfAborted();
      const number = sampleNumber(this.plan, rollout);
      const found = await this.rewardsAt(number);
      if (found === null) return;
      const samples = rewardedSamples(found.rollout, [], await this.samplesOf(number));
      this.metrics.set(rollout, rolloutMetrics(found.rollout, samples));
    }
  }

  begin(onFailed: (error: unknown) => void): void {
    this.onFailed = onFailed;
    this.running ??= this.run().catch((error: unknown) => {
      this.running = null;
      if (!this.closed.signal.aborted && !this.ctx.lease.lost.aborted) this.onFailed(error);
    });
  }

  metricsOf(step: number): Record<string, number> | null {
    const rollout = rolloutOfStep(this.plan, step);
    for (const before of this.metrics.keys()) if (before < rollout) this.metrics.delete(before);
    return this.metrics.get(rollout) ?? null;
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.closed.abort();
    const source = await this.source?.catch(() => null);
    await source?.close();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.closed;
    while (!signal.aborted) {
      const place = placeOf(this.plan, this.calls.appended + 1);
      const { call, bytes = 0 } = await this.callAt(place);
      signal.throwIfAborted();
      await this.calls.append(call, bytes);
      if (place.kind === 'finish') return;
    }
  }

  private async callAt(place: CallPlace): Promise<{ call: StoredCall; bytes?: number }> {
    const { train } = this.ctx.job.spec;
    switch (place.kind) {
      case 'sample':
        return { call: await this.sampleCall(place.rollout) };
      case 'pass': {
        const { rows, bytes } = await this.rewardsOf(place.rollout);
        const { begin, end } = place;
        const loss = this.plan.settings.loss;
        const call = { type: 'forward_backward' as const, loss, rows: rows.slice(begin, end) };
        return { call, bytes: place.isFirst ? bytes : 0 };
      }
      case 'update':
        return {
          call: {
            type: 'optim_step',
            ...callBounds(this.ctx.job.spec).update,
            lr: lrAt(train, place.done),
          },
        };
      case 'finish':
        return { call: { type: 'finish' } };
    }
  }

  private async sampleCall(rollout: number): Promise<SampleCall> {
    const prompts = await this.promptsOf(rollout);
    const { settings } = this.plan;
    const { group_size: n, max_tokens, temperature, top_p, top_k } = settings;
    return {
      type: 'sample',
      prompts: prompts.map(({ tokens }) => tokens),
      ...{ n, max_tokens, temperature, top_p, top_k },
      seed: mixedSeed(this.ctx.job.spec.train.seed, rollout),
      stop_tokens: [...new Set(prompts.flatMap(({ end_tokens }) => end_tokens))].sort((a, b) => a - b),
      // Graders read a sample up to the text that ends it.
      stop_texts: [],
    };
  }

  private async promptsOf(rollout: number): Promise<LinePrompt[]> {
    if (this.prompts?.rollout !== rollout) {
      this.source ??= PromptSource.open(this.ctx, this.closed.signal).catch((error: unknown) => {
        this.source = null;
        throw error;
      });
      const prompts = await (await this.source).promptsOf(rollout, this.plan);
      this.prompts = { rollout, prompts };
    }
    return this.prompts.prompts;
  }

  private async rewardsOf(rollout: number): Promise<Rewarded> {
    if (this.rewarded?.rollout !== rollout) {
      const rewarded = (await this.recorded(rollout)) ?? (await this.grade(rollout));
      this.rewarded = { rollout, rewarded };
      this.metrics.set(rollout, rewarded.metrics);
    }
    return this.rewarded.rewarded;
  }

  /** Returns null for a rollout without rewards. */
  private async recorded(rollout: number): Promise<Rewarded | null> {
    const number = sampleNumber(this.plan, rollout);
    const found = await this.rewardsAt(number);
    if (found === null) return null;
    const prompts = (await this.promptsOf(rollout)).map(({ tokens }) => tokens);
    const samples = rewardedSamples(found.rollout, prompts, await this.samplesOf(number));
    return this.asRewarded(samples, found);
  }

  private async grade(rollout: number): Promise<Rewarded> {
    const { deps, job } = this.ctx;
    const { settings } = this.plan;
    const call = sampleNumber(this.plan, rollout);
    const prompts = await this.promptsOf(rollout);
    await this.calls.untilAnswered(call, this.closed.signal);
    const samples = await this.samplesOf(call);
    const source = await this.source;
    const drawn = samples.map(({ tokens, finish }, i) => {
      const { tokens: prompt = [], end_text = '' } = prompts[Math.floor(i / settings.group_size)] ?? {};
      return { prompt, end_text, tokens, finish };
    });
    const texts = (await source?.samples(drawn)) ?? [];
    const groups = await grade(prompts, texts, {
      settings,
      graders: deps.graders.of(job.spec.project),
      signal: this.closed.signal,
    });
    const step = rollout * settings.num_iterations + 1;
    const record = { step, call, groups };
    const stored = await retryStorage(this.ctx, () => putRewards(deps.objects, job.id, record));
    const tokens = prompts.map((prompt) => prompt.tokens);
    return this.asRewarded(rewardedSamples(stored.rollout, tokens, samples), stored);
  }

  private asRewarded(
    samples: RewardedSample[],
    { rollout, bytes }: NonNullable<Awaited<ReturnType<typeof readRewards>>>,
  ): Rewarded {
    const rows = rowsOf(samples, this.plan.settings);
    return { rows, metrics: rolloutMetrics(rollout, samples), bytes };
  }

  private rewardsAt(number: number) {
    const { deps, job } = this.ctx;
    return retryStorage(this.ctx, () => readRewards(deps.objects, job.id, number));
  }

  private async samplesOf(number: number) {
    const { deps, job } = this.ctx;
    return samplesIn(
      await retryStorage(this.ctx, () => readCallResult(deps.objects, job.id, number)),
      number,
    );
  }
}
