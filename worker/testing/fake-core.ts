import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { CoreEngine, DrawnToken, Gpu, NativeCore, SequenceOptions } from '../shared/native/adapter.js';
import { type StoredElements, toFp32 } from '../tasks/export/base-reader.js';
import { visible } from '../tasks/inspect-machine.js';
import { FAKE_SHARDING, fakeDigest, fakeParamTable, fakeStateNames } from './fake-state.js';
import { type FakeBehaviour, FakeTrainer } from './fake-trainer.js';

/**
 * Core for tests of everything around the core: its state is that of fake-state.ts, and the ranks agree on the flags of
 * each step over the rendezvous channel. Its training is meaningless; a wrong byte anywhere changes the digest.
 */
export function fakeCore(behaviour: FakeBehaviour = {}): NativeCore {
  return {
    createEngine: () => new FakeEngine(),
    createTrainer: (config, onRendezvous) => new FakeTrainer(config, onRendezvous, behaviour),
    paramTable: fakeParamTable,
    stateNames: fakeStateNames,
    sharding: () => FAKE_SHARDING,
    fingerprint: (device) => (device === 'cpu' ? 'fake/1' : 'fake-gpu/1'),
    endWithParent: () => false,
    stayOnNode: () => false,
    gpus: fakeGpus,
    watchGpu: fakeXids,
    measureGpu: () => () => 0.5,
    cudaDevices: () =>
      (process.env.ZF_TEST_CUDA_PROBLEM ? [] : visible(fakeGpus(), process.env.CUDA_VISIBLE_DEVICES)).map(
        ({ uuid }) => ({
          uuid: uuid ?? '',
          fingerprint: 'fake-gpu/1',
        }),
      ),
    cudaProblem: () => process.env.ZF_TEST_CUDA_PROBLEM ?? null,
    castTo16Bit: (_dtype, fp32) => upperHalves(fp32),
    initialValues: () => new Uint8Array(),
    addOutputSquares: () => {
      throw new Error('the fake model has no adapters');
    },
    quantizedValues: (_, fp32) => fp32,
    digestValues: fakeDigest,
    mergeAdapter: () => {
      throw new Error('the fake model has no adapters');
    },
  };
}

/** GPU described by a test. */
export interface DescribedGpu {
  uuid: string;
  problem: string | null;
  /** XIDs that the driver reports to subscribers. */
  xids?: number[];
}

/** Returns the GPUs in the file of ZF_TEST_GPUS; none without it. */
function describedGpus(): DescribedGpu[] {
  const file = process.env.ZF_TEST_GPUS;
  return file === undefined ? [] : JSON.parse(readFileSync(file, 'utf8'));
}

/** Subscribes to XIDs; each subscriber gets each once. */
function fakeXids(uuid: string): () => number[] {
  let numHeard = 0;
  return () => {
    const xids = describedGpus().find((gpu) => gpu.uuid === uuid)?.xids ?? [];
    const fresh = xids.slice(numHeard);
    numHeard = xids.length;
    return fresh;
  };
}

function fakeGpus(): Gpu[] {
  return describedGpus().map(({ uuid, problem }, index) => ({
    uuid,
    problem,
    index,
    name: 'Fake GPU',
    memory_bytes: 80 * 2 ** 30,
    free_bytes: 79 * 2 ** 30,
    compute_capability: '9.0',
    driver: '580.65.06',
    cuda_driver: '13.1',
  }));
}

/** The answer to any prompt is a hex digest of the weights, those of the adapter included. */
class FakeEngine implements CoreEngine {
  readonly maxLength = 1_000_000;
  readonly numBytes = 1;
  private readonly hash = createHash('sha256');
  private readonly adapters = new Map<number, Uint8Array[]>();
  private readonly texts = new Map<number, { options: SequenceOptions; num_drawn: number }>();

  setParam(index: number, begin: number, dtype: StoredElements['dtype'], bytes: Uint8Array): void {
    if (begin === 0) this.hash.update(`${index}:`);
    this.hash.update(toFp32({ dtype, bytes }));
  }

  add(id: number, _prompt: readonly number[], options: SequenceOptions): void {
    this.texts.set(id, { options, num_drawn: 0 });
  }

  async addAdapter(_adapter: unknown, values: readonly Uint8Array[]) {
    this.adapters.set(this.adapters.size + 1, [...values]);
    return { adapter: this.adapters.size, num_bytes: 1 };
  }

  async removeAdapter(adapter: number): Promise<void> {
    this.adapters.set(adapter, []);
  }

  cancel(id: number): void {
    this.texts.delete(id);
  }

  allow(): void {}

  async step(): Promise<DrawnToken[]> {
    return [...this.texts].map(([id, text]) => {
      const { options } = text;
      const hash = this.hash.copy();
      for (const values of this.adapters.get(options.adapter) ?? []) hash.update(values);
      const digest = Buffer.from(hash.digest('hex'));
      const token = digest[text.num_drawn++ % digest.length] as number;
      const isLast = text.num_drawn === Math.min(options.max_tokens, digest.length);
      const finish = options.end_tokens.includes(token) ? 'end' : isLast ? 'length' : null;
      if (finish !== null) this.texts.delete(id);
      return { id, token, logprob: 0, top: [], finish, cached_tokens: 0 };
    });
  }

  close(): void {}
}

/** Returns the upper half of each fp32: its bf16 without rounding. */
function upperHalves(fp32: Uint8Array): Uint8Array {
  const out = new Uint8Array(fp32.length / 2);
  for (let i = 0; i < out.length; i += 2) {
    out[i] = fp32[2 * i + 2] as number;
    out[i + 1] = fp32[2 * i + 3] as number;
  }
  return out;
}
