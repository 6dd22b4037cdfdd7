import { createHash } from 'node:crypto';
import type { Restore, StateName, TrainingPosition } from '../../contracts/rank-protocol.js';
import type {
  NativeCore,
  ParamInfo,
  RankTrainer,
  Slice,
  Snapshot,
  SnapshotSlice,
  StepResult,
  TrainerConfig,
} from '../native/adapter.js';

/**
 * A core for tests of everything around the core: the state after k steps is a function of the seed and k alone, owned
 * in blocks by the ranks, and the ranks agree on the flags of each step over the rendezvous channel. What it trains is
 * worthless; that a wrong byte anywhere changes the digest is what the tests need.
 */
export const FAKE_BLOCK = 16;
const STATES: readonly StateName[] = ['master', 'exp_avg', 'exp_avg_sq', 'momentum_buffer', 'sum'];
const ADAM: readonly StateName[] = ['master', 'exp_avg', 'exp_avg_sq'];
const STATES_OF: Record<TrainerConfig['optimizer']['type'], readonly StateName[]> = {
  adamw: ADAM,
  adam: ADAM,
  lamb: ADAM,
  lion: ['master', 'exp_avg'],
  adagrad: ['master', 'sum'],
  sgd: ['master', 'momentum_buffer'],
};
const PARAMS = [
  { name: 'model.embed_tokens.weight', shape: [8, 12] },
  { name: 'model.norm.weight', shape: [10] },
  { name: 'lm_head.weight', shape: [12, 9] },
];

export interface FakeBehaviour {
  /** Milliseconds that a step takes. */
  step_ms: number;
  /** Called before each step; may end or stop the process. */
  beforeStep?(step: number, config: TrainerConfig): void;
}

export function fakeCore(behaviour: FakeBehaviour): NativeCore {
  return {
    createTrainer: (config, onRendezvous) => new FakeTrainer(config, onRendezvous, behaviour),
    paramTable: fakeParamTable,
    stateNames: ({ type }) => [...STATES_OF[type]],
    fingerprint: () => 'fake/1',
    castToBf16: truncateToBf16,
  };
}

export function fakeParamTable(): ParamInfo[] {
  let first_block = 0;
  return PARAMS.map(({ name, shape }, index) => {
    const numel = shape.reduce((product, size) => product * size, 1);
    const num_blocks = Math.ceil(numel / FAKE_BLOCK);
    const group = shape.length > 1 ? ('decay' as const) : ('no_decay' as const);
    const info = { index, name, shape, numel, group, first_block, num_blocks };
    first_block += num_blocks;
    return info;
  });
}

/** The digest of the whole state after `step` steps, as any number of ranks must reach it. */
export function fakeStateDigest(seed: number, step: number, training: FakeTraining = ADAMW): string {
  return digestOf(fakeState(seed, step), training, { rank: 0, world_size: 1 });
}

/** The digest after `step` steps of a job that began with what another one of its seed had after `from` steps. */
export function fakeInitializedDigest(seed: number, from: number, restore: Restore, step: number): string {
  const state = fakeState(seed, from);
  restoreOnly(state, restore, seed);
  for (let done = 0; done < step; done++) advance(state, done + 1);
  return digestOf(state, ADAMW, { rank: 0, world_size: 1 });
}

/** What decides which states there are of a parameter. The arrays of the others exist, but are nobody's. */
export interface FakeTraining {
  optimizer: Pick<TrainerConfig['optimizer'], 'type'>;
  param_groups: readonly Pick<TrainerConfig['param_groups'][number], 'match' | 'frozen'>[];
}

const ADAMW: FakeTraining = { optimizer: { type: 'adamw' }, param_groups: [] };

/** The states of one parameter; a group is named by the parameter's whole name here. */
function statesOf({ optimizer, param_groups }: FakeTraining, param: number): readonly StateName[] {
  const frozen = param_groups.find(({ match }) => match === PARAMS[param]?.name)?.frozen;
  return frozen ? ['master'] : STATES_OF[optimizer.type];
}

type FakeState = Map<StateName, Float32Array[]>;

function fakeState(seed: number, step: number): FakeState {
  const values = (state: StateName) =>
    fakeParamTable().map(({ index, numel }) => {
      const salt = seed * 7 + STATES.indexOf(state) * 31 + index * 17;
      return Float32Array.from({ length: numel }, (_, element) => initialValue(salt, element));
    });
  const state: FakeState = new Map(STATES.map((name) => [name, values(name)]));
  for (let done = 0; done < step; done++) advance(state, done + 1);
  return state;
}

/** What is left of a loaded state when only its weights are wanted. */
function restoreOnly(state: FakeState, restore: Restore, seed: number): void {
  if (restore === 'full') return;
  for (const [name, arrays] of fakeState(seed, 0)) if (name !== 'master') state.set(name, arrays);
  if (restore === 'weights') return;
  for (const array of state.get('master') ?? []) {
    const words = new Uint32Array(array.buffer);
    for (let i = 0; i < words.length; i++) words[i] = (words[i] as number) & 0xffff_0000;
  }
}

function initialValue(salt: number, element: number): number {
  return ((salt * 131 + element * 29) % 1009) / 1009;
}

/** One step: each value depends on its history, so a load of wrong bytes is never forgotten. */
function advance(state: FakeState, step: number): void {
  for (const arrays of state.values()) {
    for (const array of arrays) {
      for (let i = 0; i < array.length; i++)
        array[i] = Math.fround((array[i] as number) * 0.75 + step * 0.125);
    }
  }
}

function ownedSlices(rank: number, world_size: number): Slice[] {
  const slices: Slice[] = [];
  for (const { index, numel, first_block, num_blocks } of fakeParamTable()) {
    for (let block = 0; block < num_blocks; block++) {
      // Runs of two blocks in turn, so that a rank owns several pieces of one parameter.
      if (Math.floor((first_block + block) / 2) % world_size !== rank) continue;
      const begin = block * FAKE_BLOCK;
      const end = Math.min(numel, begin + FAKE_BLOCK);
      const last = slices.at(-1);
      if (last && last.param === index && last.end === begin) last.end = end;
      else slices.push({ param: index, begin, end });
    }
  }
  return slices;
}

interface FakeOwner {
  rank: number;
  world_size: number;
}

function digestOf(state: FakeState, training: FakeTraining, { rank, world_size }: FakeOwner): string {
  let sum = 0n;
  for (const { param, begin, end } of ownedSlices(rank, world_size)) {
    for (const name of statesOf(training, param)) {
      for (let at = begin; at < end; at += FAKE_BLOCK) {
        const block = valuesOf(state, name, param).subarray(at, Math.min(end, at + FAKE_BLOCK));
        const hash = createHash('md5').update(`${name}/${param}/${at}/`).update(bytesOf(block)).digest('hex');
        sum += BigInt(`0x${hash}`);
      }
    }
  }
  return (sum % 2n ** 128n).toString(16).padStart(32, '0');
}

function valuesOf(state: FakeState, name: StateName, param: number): Float32Array {
  const values = state.get(name)?.[param];
  if (!values) throw new Error(`no parameter ${param} of ${name}`);
  return values;
}

function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

class FakeTrainer implements RankTrainer {
  private readonly mail = new Map<string, Uint8Array>();
  private readonly waiting = new Map<string, () => void>();
  private state: FakeState = new Map();
  private position: TrainingPosition = {
    step: 0,
    optimizer_steps: 0,
    skipped_steps: 0,
    loss_scaler: { scale: 1, iteration: 0, last_overflow_iteration: -1, hysteresis: 1, skipped_in_a_row: 0 },
    lr_override: null,
    loss_scale_override: null,
  };
  private snapshots = 0;

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

  slices(): Slice[] {
    return ownedSlices(this.config.rank, this.config.world_size);
  }

  load(name: StateName, param: number, begin: number, data: Uint8Array): void {
    // What is not loaded must not be right by chance.
    if (this.state.size === 0) this.state = fakeState(this.config.seed + 1, 0);
    if (!statesOf(this.config, param).includes(name)) throw new Error(`${name} of ${param} does not exist`);
    const values = new Float32Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
    valuesOf(this.state, name, param).set(values, begin);
  }

  async finishLoad({ restore, ...at }: TrainingPosition & { restore: Restore }): Promise<void> {
    this.position = at;
    restoreOnly(this.state, restore, this.config.seed);
    await this.exchange('loaded', 0);
  }

  async step(flags: number): Promise<StepResult> {
    const step = this.position.step + 1;
    this.behaviour.beforeStep?.(step, this.config);
    await new Promise((resolve) => setTimeout(resolve, this.behaviour.step_ms));
    const stop = await this.exchange(`step-${step}`, flags);
    advance(this.state, step);
    this.position = { ...this.position, step, optimizer_steps: this.position.optimizer_steps + 1 };
    const tokens = this.config.global_batch_size * this.config.sequence_length;
    const seconds = {
      total: 0.001,
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
      grad_norm: 1,
      lr: 0.001,
      tokens,
      finite: true,
      skipped_steps: 0,
      loss_scale: 1,
      stop,
      seconds,
      sent: { reduced: 0, gathered: 0 },
    };
  }

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

  memory(): Record<string, number> {
    return { master: this.slices().reduce((sum, { begin, end }) => sum + (end - begin) * 4, 0) };
  }

  digestPart(): string {
    return digestOf(this.state, this.config, this.config);
  }

  close(): void {
    this.state.clear();
  }

  /** Every rank publishes its bits and waits for everyone's; the OR is the same on all. */
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

function truncateToBf16(fp32: Uint8Array): Uint8Array {
  const out = new Uint8Array(fp32.length / 2);
  for (let i = 0; i < out.length; i += 2) {
    out[i] = fp32[2 * i + 2] as number;
    out[i + 1] = fp32[2 * i + 3] as number;
  }
  return out;
}
