import type { Restore, StateName, TrainingPosition } from '../../contracts/rank-protocol.js';
import type {
  OptimStep,
  PassLoss,
  PassResult,
  PassRows,
  RankTrainer,
  SampledAnswer,
  SampleRequest,
  Slice,
  Snapshot,
  SnapshotSlice,
  StepResult,
  TrainerConfig,
} from '../shared/native/adapter.js';
import {
  advance,
  bytesOf,
  digestOf,
  type FakeState,
  fakeState,
  ownedSlices,
  restoreOnly,
  statesOf,
  valuesOf,
} from './fake-state.js';

export interface FakeBehaviour {
  /** Called before each step; may delay it, or end or stop the process. */
  beforeStep?(step: number, config: TrainerConfig): Promise<void>;
  /** Loss of an evaluation file after a step; 6 / step by default. */
  evalLoss?(step: number, file: number): number | undefined;
  /** Called when the trainer is closed; its promise delays the close. */
  onClose?(): Promise<void>;
}

const NO_MEMORY = {
  params: 0,
  shared_params: 0,
  grad_shard: 0,
  moments: 0,
  lane_accumulator: 0,
  staging: 0,
  activations: 0,
  packed_weights: 0,
};

export class FakeTrainer implements RankTrainer {
  private readonly mail = new Map<string, Uint8Array>();
  private readonly waiting = new Map<string, () => void>();
  private state: FakeState = new Map();
  private position: TrainingPosition = {
    step: 0,
    optimizer_steps: 0,
    skipped_steps: 0,
    loss_scaler: { scale: 1, iteration: 0, last_overflow_iteration: -1, hysteresis: 1, skipped_in_a_row: 0 },
  };
  private snapshots = 0;
  private reference: Float64Array | null = null;
  private passes = 0;

  constructor(
    private readonly config: TrainerConfig,
    private readonly publish: (key: string, value: Uint8Array) => void,
    private readonly behaviour: FakeBehaviour,
  ) {}

  deliver(key: string, value: Uint8Array): void {
    this.mail.set(key, value);
    this.waiting.get(key)?.();
  }

  async connect(): Promise<void> {
    await this.exchange('connect', 0);
  }

  async initialize(): Promise<void> {
    this.state = fakeState(this.config.seed, 0);
  }

  async initializeBase(): Promise<void> {}

  baseSlices(): Slice[] {
    return [];
  }

  async baseDigestPart(): Promise<string> {
    return '0'.repeat(32);
  }

  slices(): Slice[] {
    return ownedSlices(this.config, this.config);
  }

  load(name: StateName, param: number, begin: number, data: Uint8Array): void {
    // Starts from another state, so that unloaded values are wrong.
    if (this.state.size === 0) this.state = fakeState(this.config.seed + 1, 0);
    if (!statesOf(this.config, param).includes(name)) throw new Error(`${name} of ${param} does not exist`);
    const values = new Float32Array(new Uint8Array(data).buffer);
    valuesOf(this.state, name, param).set(values, begin);
  }

  async finishLoad({ restore, ...at }: TrainingPosition & { restore: Restore }): Promise<void> {
    this.position = at;
    restoreOnly(this.state, restore, this.config.seed);
    await this.exchange('loaded', 0);
  }

  /** The seed and its square root. */
  async computeReference(): Promise<Float64Array> {
    await this.exchange('reference', 0);
    this.reference = Float64Array.of(this.config.seed, Math.sqrt(this.config.seed));
    return this.reference;
  }

  setReference(logProbs: Float64Array): void {
    if (logProbs.length !== 2) throw new Error(`the reference has ${logProbs.length} log-probabilities`);
    this.reference = logProbs;
  }

  async step(flags: number): Promise<StepResult> {
    this.requireReference();
    const step = this.position.step + 1;
    await this.behaviour.beforeStep?.(step, this.config);
    const stop = await this.exchange(`step-${step}`, flags);
    advance(this.state, step);
    this.position = { ...this.position, step, optimizer_steps: this.position.optimizer_steps + 1 };
    const tokens = this.config.global_batch_size * this.config.sequence_length;
    const seconds = {
      total: 0.001,
      data: 0,
      forward: 0,
      backward: 0,
      exchange: 0,
      exchange_busy: 0,
      optimizer: 0,
      gather: 0,
    };
    return {
      step,
      loss: 5 / step,
      aux_loss: null,
      preference: this.means(),
      grad_norm: 1,
      lr: 0.001,
      trust_ratios: [],
      tokens,
      finite: true,
      skipped_steps: 0,
      loss_scale: 1,
      stop,
      seconds,
      sent: { reduced: 0, gathered: 0, routed: 0 },
    };
  }

  async forward(_: PassLoss, rows: PassRows): Promise<PassResult> {
    return fakePass(rows);
  }

  async forwardBackward(_: PassLoss, rows: PassRows): Promise<PassResult> {
    this.passes++;
    return fakePass(rows);
  }

  async optimStep({ lr }: OptimStep): Promise<StepResult> {
    if (this.passes === 0) throw Object.assign(new Error('there was no pass'), { code: 'no_gradients' });
    this.passes = 0;
    return { ...(await this.step(0)), lr };
  }

  async sample(requests: SampleRequest[]): Promise<SampledAnswer[]> {
    return requests.map(fakeAnswer);
  }

  /** Every rank must call it at the same step. */
  async evaluate(file: number) {
    const { step } = this.position;
    await this.exchange(`evaluation-${step}-${file}`, 0);
    return {
      loss: this.behaviour.evalLoss?.(step, file) ?? 6 / step,
      tokens: 100,
      sequences: 10,
      preference: this.means(),
    };
  }

  /** The margin is the second number of the reference. */
  private means(): StepResult['preference'] {
    if (this.config.preference === null) return null;
    const margin = this.reference?.[1] ?? 0;
    return {
      reward_chosen: margin,
      reward_rejected: 0,
      margin,
      accuracy: 0.5,
      log_prob_chosen: -1,
      log_prob_rejected: null,
    };
  }

  private requireReference(): void {
    if (this.config.preference?.reference === 'initial' && this.reference === null)
      throw Object.assign(new Error('there is no reference'), { code: 'invalid_argument' });
  }

  prepareSnapshot(): void {}

  async snapshot(): Promise<Snapshot> {
    if (this.snapshots === 2)
      throw Object.assign(new Error('two snapshots are held'), { code: 'snapshot_busy' });
    this.snapshots++;
    const slices: SnapshotSlice[] = this.slices().flatMap(({ param, begin, end }) =>
      statesOf(this.config, param).map((state) => {
        const data = new Uint8Array(bytesOf(valuesOf(this.state, state, param).slice(begin, end)));
        return { state, param, begin, end, data };
      }),
    );
    let held = true;
    return {
      ...this.position,
      digest_part: this.digestPart(),
      slices,
      release: () => {
        if (held) this.snapshots--;
        held = false;
      },
    };
  }

  memory(): ReturnType<RankTrainer['memory']> {
    const master = this.slices().reduce((sum, { begin, end }) => sum + (end - begin) * 4, 0);
    return { ...NO_MEMORY, master };
  }

  digestPart(): string {
    return digestOf(this.state, this.config, this.config);
  }

  async close(): Promise<void> {
    this.state.clear();
    await this.behaviour.onClose?.();
  }

  /** Publishes this rank's flags and waits for those of all ranks; the OR is the same on all. */
  private async exchange(round: string, flags: number): Promise<number> {
    this.publish(`${round}/${this.config.rank}`, Uint8Array.of(flags));
    let all = 0;
    for (let rank = 0; rank < this.config.world_size; rank++) {
      const key = `${round}/${rank}`;
      if (!this.mail.has(key)) await new Promise<void>((resolve) => this.waiting.set(key, resolve));
      all |= this.mail.get(key)?.[0] ?? 0;
      this.mail.delete(key);
      this.waiting.delete(key);
    }
    return all;
  }
}

/** Every target has the log-probability -1. */
function fakePass({ targets }: PassRows): PassResult {
  const logProbs = Float32Array.from(targets, (target) => (target < 0 ? Number.NaN : -1));
  const numTargets = targets.filter((target) => target >= 0).length;
  return { loss: numTargets, num_targets: numTargets, log_probs: logProbs, metrics: {} };
}

/** The prompt from its beginning, over and over. */
function fakeAnswer({ prompt, max_tokens }: SampleRequest): SampledAnswer {
  const tokens = Int32Array.from({ length: max_tokens }, (_, i) => prompt[i % prompt.length] ?? 0);
  return { tokens, log_probs: new Float32Array(max_tokens).fill(-1), finish: 'length' };
}
