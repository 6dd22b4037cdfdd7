import { addon, type RawTrainer, type StepResult } from './addon.js';
import { native, nativeAsync } from './error.js';
import { cpuIsa } from './info.js';
import type { ModelConfig } from './model-config.js';

export type StateName = 'master' | 'exp_avg' | 'exp_avg_sq';
export type Precision = 'bf16' | 'fp32';

/** What a rank must know to train. All but rank, world size, threads and paths is the same on every rank. */
export interface TrainerConfig {
  model: ModelConfig;
  rank: number;
  world_size: number;
  threads: number;
  precision: Precision;
  reduce_dtype: Precision;
  bucket_bytes: number;
  sequence_length: number;
  global_batch_size: number;
  micro_batch_size: number;
  /** Total steps of the job: the end of the learning-rate schedule. */
  steps: number;
  seed: number;
  data_seed: number;
  optimizer: { lr: number; beta1: number; beta2: number; eps: number; weight_decay: number };
  lr_schedule: { type: 'constant' | 'linear' | 'cosine'; warmup_steps: number; min_lr: number };
  gradient_clipping: number;
  /** Flat little-endian uint16 tokens. */
  token_file: string;
  /** `solo` is for a world of one; `bind_address` is this host's address as the other ranks reach it. */
  comm: { backend: 'solo' | 'gloo'; bind_address: string; timeout_ms: number };
}

/** Elements [begin, end) of one parameter, padding left out. */
export interface Slice {
  param: number;
  begin: number;
  end: number;
}

export interface SnapshotSlice extends Slice {
  state: StateName;
  /** fp32, little endian; valid until the snapshot is released. */
  data: Uint8Array;
}

/** A copy of what a rank owned after `step` steps. Training goes on while it is read. */
export interface Snapshot {
  step: number;
  optimizer_steps: number;
  skipped_steps: number;
  /** 32 hexadecimal digits: this rank's share; the sum over ranks mod 2^128 is the state digest. */
  digest_part: string;
  slices: SnapshotSlice[];
  /** Gives the buffer back. Idempotent. */
  release(): void;
}

/**
 * One rank of a training job. Operations are strictly one after the other: a call while another still runs rejects
 * with `busy`. After `comm_failed` or `comm_timeout` only close() makes sense.
 */
export class Trainer {
  private constructor(private readonly raw: RawTrainer) {}

  /**
   * Checks the configuration; nothing is allocated yet. `onRendezvous` gets each key that this rank publishes while it
   * connects; every rank of the world must be given it through deliver().
   */
  static create(config: TrainerConfig, onRendezvous: (key: string, value: Uint8Array) => void): Trainer {
    return native(() => new Trainer(new (addon().Trainer)({ ...config, cpu_isa: cpuIsa() }, onRendezvous)));
  }

  deliver(key: string, value: Uint8Array): void {
    native(() => this.raw.deliver(key, value));
  }

  /** Meets the other ranks and allocates everything. Rejects with `comm_timeout`, `comm_failed`, `out_of_memory`, … */
  connect(): Promise<void> {
    return nativeAsync(() => this.raw.connect());
  }

  /** Fresh parameters from the seed. */
  initialize(): Promise<void> {
    return nativeAsync(() => this.raw.initialize());
  }

  /** What this rank owns of each parameter, in canonical order; every state has the same slices. */
  slices(): Slice[] {
    const rows = native(() => this.raw.slices());
    return rows
      .filter((row) => row.state === 'master')
      .map(({ param, begin, end }) => ({ param, begin, end }));
  }

  /** Fills owned elements from `begin` with fp32 values. Throws `slice_not_owned`. */
  load(state: StateName, param: number, begin: number, data: Uint8Array): void {
    // The addon reads floats in place, so they must be aligned; a view into a pooled Buffer may not be.
    const aligned = data.byteOffset % 4 === 0 ? data : new Uint8Array(data);
    native(() => this.raw.load(state, param, begin, aligned));
  }

  /** After all loads, on every rank together. */
  finishLoad(at: { step: number; optimizer_steps: number; skipped_steps: number }): Promise<void> {
    return nativeAsync(() => this.raw.finishLoad(at));
  }

  /** One optimizer step. `flags` of all ranks are OR-ed and come back as `stop`, equal on every rank. */
  step(flags: number): Promise<StepResult> {
    return nativeAsync(() => this.raw.step(flags));
  }

  /** Copies the owned state; at most two snapshots may be held. Rejects with `snapshot_busy`. */
  async snapshot(): Promise<Snapshot> {
    const raw = await nativeAsync(() => this.raw.snapshot());
    let held = true;
    return {
      step: raw.step,
      optimizer_steps: raw.optimizer_steps,
      skipped_steps: raw.skipped_steps,
      digest_part: raw.digest_part,
      slices: raw.slices.map(({ state, param, begin, end, byte_offset }) => ({
        state,
        param,
        begin,
        end,
        data: new Uint8Array(raw.buffer, byte_offset, (end - begin) * 4),
      })),
      release: () => {
        if (held) this.raw.releaseSnapshot(raw.slot);
        held = false;
      },
    };
  }

  /** This rank's share of the state digest as it is now. */
  digestPart(): string {
    return native(() => this.raw.digestPart());
  }

  /** Frees everything. Idempotent. */
  close(): void {
    this.raw.close();
  }
}
