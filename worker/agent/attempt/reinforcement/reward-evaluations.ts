import { metricOf } from '../../../../contracts/evaluation-metrics.js';
import { evaluationNumber, type RolloutPlan } from '../../../../job-document/index.js';
import { type AttemptContext, emit, type TrainableJob } from '../context.js';
import { PromptSource } from './prompt-source.js';
import type { Rewards } from './rewards.js';
import type { Content, Rewarded } from './sampled-calls.js';

/** Mean rewards by evaluation. */
export type Figures = Readonly<Record<string, number>>;

interface EvaluationOptions {
  plan: RolloutPlan;
  rewards: Rewards;
  signal: AbortSignal;
}

/** Evaluations of a job with reinforcement learning: the most likely answers to prompts, and their mean rewards. */
export class RewardEvaluations {
  /** By place in `train.evaluation.datasets`. */
  private readonly sources = new Map<number, Promise<PromptSource>>();
  /** The newest evaluation. */
  private measured: { step: number; figures: Figures } | null = null;

  constructor(
    private readonly ctx: Pick<AttemptContext, 'deps' | 'lease' | 'reporter' | 'log'> & { job: TrainableJob },
    private readonly options: EvaluationOptions,
  ) {}

  /** Returns the mean rewards after a step, also those that another driver has recorded; none before its evaluation. */
  async figuresAt(step: number): Promise<Figures> {
    if (this.measured?.step === step) return this.measured.figures;
    const figures: Record<string, number> = {};
    for (const [index, { name }] of this.datasets.entries()) {
      const rewarded = await this.options.rewards.find({ ...this.callAt(step, index), prompts: [] });
      if (rewarded === null) return {};
      figures[name] = await rewardOf(await this.source(index), rewarded);
    }
    return figures;
  }

  async sampleCall(index: number): Promise<Content> {
    const { settings } = this.options.plan;
    const source = await this.source(index);
    return source.sampleCall({
      prompts: this.promptsOf(source),
      n: 1,
      max_tokens: settings.max_tokens,
      temperature: 0,
      top_p: 1,
      top_k: 0,
      seed: this.ctx.job.spec.train.seed,
    });
  }

  /** Grades the answers, and reports the mean rewards. */
  async measure(step: number): Promise<void> {
    const figures: Record<string, number> = {};
    for (const [index, { name }] of this.datasets.entries()) {
      const source = await this.source(index);
      const prompts = this.promptsOf(source);
      const rewarded = await this.options.rewards.of(source, { ...this.callAt(step, index), step, prompts });
      const reward = await rewardOf(source, rewarded);
      figures[name] = reward;
      const data = { step, name, [metricOf(name, this.ctx.job.spec.train)]: reward, prompts: prompts.length };
      await emit(this.ctx, 'evaluation.finished', data);
    }
    this.measured = { step, figures };
    await this.ctx.reporter.evaluated(step, figures);
  }

  /** Idempotent. */
  async close(): Promise<void> {
    for (const source of this.sources.values()) await (await source.catch(() => null))?.close();
  }

  private callAt(step: number, index: number): { number: number } {
    return { number: evaluationNumber(this.options.plan, step) + index };
  }

  private get datasets() {
    return this.options.plan.evaluation?.datasets ?? [];
  }

  private source(index: number): Promise<PromptSource> {
    const opened = this.sources.get(index);
    if (opened) return opened;
    const { dataset = '' } = this.datasets[index] ?? {};
    const source = PromptSource.open(this.ctx, dataset, this.options.signal);
    this.sources.set(index, source);
    source.catch(() => this.sources.delete(index));
    return source;
  }

  private promptsOf({ count }: PromptSource): number[] {
    const length = Math.min(count, this.options.plan.settings.evaluation_prompts);
    return Array.from({ length }, (_, i) => i);
  }
}

async function rewardOf(source: PromptSource, rewarded: Rewarded): Promise<number> {
  const { reward = Number.NaN } = await source.metrics(rewarded);
  return reward;
}
