import { callText } from '../../../../formats/calls/call-log.js';
import {
  type CallPlace,
  callBounds,
  isEvaluated,
  lrAt,
  placeOf,
  type RolloutPlan,
  rolloutOfStep,
  rolloutPlan,
  sampleNumber,
} from '../../../../job-document/index.js';
import { mixedSeed } from '../../../../platform/seeds.js';
import { orAbort } from '../../../shared/or-abort.js';
import type { AttemptContext, TrainableJob } from '../context.js';
import type { CallWriter } from '../session/call-writer.js';
import type { JobCalls } from '../session/job-calls.js';
import { PromptSource } from './prompt-source.js';
import { type Figures, RewardEvaluations } from './reward-evaluations.js';
import { Rewards } from './rewards.js';
import type { Rewarded } from './sampled-calls.js';

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
  private readonly rewards: Rewards;
  private readonly evaluations: RewardEvaluations;
  /** The last rollout whose rewards were read. */
  private rewarded: { rollout: number; rewarded: Rewarded } | null = null;
  /** By rollout, of those whose steps the ranks have not reported. */
  private readonly metrics = new Map<number, Record<string, number>>();

  constructor(
    private readonly ctx: Pick<AttemptContext, 'deps' | 'lease' | 'reporter' | 'log'> & { job: TrainableJob },
    private readonly calls: Pick<JobCalls, 'answered' | 'append' | 'appended' | 'untilAnswered'>,
  ) {
    this.plan = rolloutPlan(ctx.job.spec.train);
    const { plan } = this;
    const { signal } = this.closed;
    this.rewards = new Rewards(ctx, { calls, settings: plan.settings, signal });
    this.evaluations = new RewardEvaluations(ctx, { plan, rewards: this.rewards, signal });
  }

  /**
   * Reads the metrics of steps that ranks run again.
   * @param step steps of their state
   * @throws the signal's reason
   */
  async prepare(step: number, signal: AbortSignal): Promise<void> {
    const next = placeOf(this.plan, this.calls.appended + 1);
    const last = rolloutOfStep(this.plan, this.plan.steps);
    for (let rollout = rolloutOfStep(this.plan, step + 1); rollout <= last; rollout += 1) {
      if (sampleNumber(this.plan, rollout) > this.calls.answered) return;
      if (next.kind === 'sample' && next.rollout === rollout) return;
      signal.throwIfAborted();
      const number = sampleNumber(this.plan, rollout);
      const found = await this.rewards.find({ number, prompts: [] });
      if (found === null) return;
      this.metrics.set(rollout, await (await orAbort(this.prompts(), signal)).metrics(found));
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

  isEvaluated(step: number): boolean {
    return isEvaluated(this.plan, step);
  }

  async figuresAt(step: number): Promise<Figures> {
    return this.isEvaluated(step) ? this.evaluations.figuresAt(step) : {};
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.closed.abort();
    await this.evaluations.close();
    const source = await this.source?.catch(() => null);
    await source?.close();
    await this.running;
  }

  private async run(): Promise<void> {
    const { signal } = this.closed;
    while (!signal.aborted && !this.isFinished()) {
      const { content, more } = await this.callAt(placeOf(this.plan, this.calls.appended + 1));
      signal.throwIfAborted();
      await this.calls.append(content, more);
    }
  }

  private isFinished(): boolean {
    const { appended } = this.calls;
    return appended > 0 && placeOf(this.plan, appended).kind === 'finish';
  }

  private async callAt(place: CallPlace): Promise<{ content: Uint8Array; more?: number }> {
    switch (place.kind) {
      case 'sample':
        return this.sampleCall(place.rollout);
      case 'pass': {
        const { begin, end } = place;
        const rewarded = await this.rewardsOf(place.rollout);
        const { content } = await (await this.prompts()).pass({ ...rewarded, begin, end });
        return { content, more: place.isFirst ? rewarded.rewards.byteLength : 0 };
      }
      case 'update':
        return { content: this.update(place.done) };
      case 'evaluation':
        return this.evaluations.sampleCall(place.index);
      case 'save':
        await this.evaluations.measure(place.step);
        return { content: Buffer.from(callText({ type: 'save_state' })) };
      case 'finish':
        return { content: Buffer.from(callText({ type: 'finish' })) };
    }
  }

  private update(done: number): Uint8Array {
    const { spec } = this.ctx.job;
    const call = { type: 'optim_step' as const, ...callBounds(spec).update, lr: lrAt(spec.train, done) };
    return Buffer.from(callText(call));
  }

  private async sampleCall(rollout: number): Promise<{ content: Uint8Array }> {
    const { group_size: n, max_tokens, temperature, top_p, top_k } = this.plan.settings;
    const source = await this.prompts();
    return source.sampleCall({
      prompts: this.promptsOf(source, rollout),
      ...{ n, max_tokens, temperature, top_p, top_k },
      seed: mixedSeed(this.ctx.job.spec.train.seed, rollout),
    });
  }

  private prompts(): Promise<PromptSource> {
    const { dataset = '' } = this.ctx.job.spec.data;
    this.source ??= PromptSource.open(this.ctx, dataset, this.closed.signal).catch((error: unknown) => {
      this.source = null;
      throw error;
    });
    return this.source;
  }

  private promptsOf(source: PromptSource, rollout: number): number[] {
    const { prompts_per_step: length } = this.plan.settings;
    return source.promptsAt(rollout * length, (rollout + 1) * length);
  }

  private async rewardsOf(rollout: number): Promise<Rewarded> {
    if (this.rewarded?.rollout !== rollout) {
      const source = await this.prompts();
      const rewarded = await this.rewards.of(source, {
        number: sampleNumber(this.plan, rollout),
        step: rollout * this.plan.settings.num_iterations + 1,
        prompts: this.promptsOf(source, rollout),
      });
      this.metrics.set(rollout, await source.metrics(rewarded));
      this.rewarded = { rollout, rewarded };
    }
    return this.rewarded.rewarded;
  }
}
