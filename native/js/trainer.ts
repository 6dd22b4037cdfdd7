import type { Restore, StateName, TrainingPosition } from '../../contracts/state-records.js';
import { addon, type RawSlice, type RawTrainer } from './addon.js';
import { native, nativeAsync } from './error.js';
import { cpuIsa } from './info.js';
import type {
  OptimStep,
  PassLoss,
  PassResult,
  PassRows,
  SampledAnswer,
  SampleRequest,
  SessionCalls,
} from './passes.js';
import type { RankMemory } from './rank-memory.js';
import type { EvalResult, StepResult } from './step-result.js';
import type { TrainerConfig } from './trainer-config.js';

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

/** A copy of the state that a rank owned after `step` steps. Training goes on while it is read. */
export interface Snapshot extends TrainingPosition {
  /** 32 hexadecimal digits: this rank's share; the sum over ranks mod 2^128 is the state digest. */
  digest_part: string;
  slices: SnapshotSlice[];
  /** Gives the buffer back. Idempotent. */
  release(): void;
}

/**
 * A rank of a training job. Operations run strictly one after the other: a call while another still runs
 * rejects with `busy`. After `comm_failed` or `comm_timeout` only close() makes sense.
 */
export class Trainer implements SessionCalls {
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

  /** Fresh parameters from the seed, from number `first` on; a load must follow where that is not 0. */
  initialize(first = 0): Promise<void> {
    return nativeAsync(() => this.raw.initialize(first));
  }

  /** The base of adapters as a training with this seed begins; `finishLoad` must follow. */
  initializeBase(seed: number): Promise<void> {
    return nativeAsync(() => this.raw.initializeBase(seed));
  }

  /**
   * Slices of each parameter of the state that this rank owns, in canonical order; all states of a parameter have the
   * same slices.
   */
  slices(): Slice[] {
    const rows = native(() => this.raw.slices());
    return rows.filter((row) => row.state === 'master').map(sliceOf);
  }

  /** Slices of the base of adapters, which is no part of the state. */
  baseSlices(): Slice[] {
    return native(() => this.raw.baseSlices()).map(sliceOf);
  }

  /** Fills owned elements from `begin` with fp32 values. Throws `slice_not_owned`. */
  load(state: StateName, param: number, begin: number, data: Uint8Array): void {
    // The addon reads floats in place, so they must be aligned; a view into a pooled Buffer may not be.
    const aligned = data.byteOffset % 4 === 0 ? data : new Uint8Array(data);
    native(() => this.raw.load(state, param, begin, aligned));
  }

  /** After all loads, on every rank together. */
  finishLoad(at: TrainingPosition & { restore: Restore }): Promise<void> {
    return nativeAsync(() => this.raw.finishLoad(at));
  }

  /**
   * Computes the log-probabilities under the initial model that some preference objectives need. Call it before the
   * first step or evaluation, with the parameters as they are, on every rank together. Returns the log-probabilities of
   * all sequences of all files; none for other trainings.
   */
  computeReference(): Promise<Float64Array> {
    return nativeAsync(() => this.raw.computeReference());
  }

  /**
   * Takes those that a trainer of the same training has computed. Throws `invalid_argument` for another number of them.
   */
  setReference(logProbs: Float64Array): void {
    native(() => this.raw.setReference(logProbs));
  }

  /**
   * Bytes that this rank has allocated, by part. Buffers of gradients and activations have their size after one step.
   */
  memory(): RankMemory {
    return native(() => this.raw.memory());
  }

  /** Learning rate of the next step. */
  lr(): number {
    return native(() => this.raw.lr());
  }

  /**
   * Runs an optimizer step. `flags` of all ranks are OR-ed and come back as `stop`, equal on every rank.
   * Rejects with `diverged` on every rank when loss scaling finds that training cannot go on.
   */
  step(flags: number): Promise<StepResult> {
    return nativeAsync(() => this.raw.step(flags));
  }

  /**
   * The loss, and with a preference objective its means, of one of `evaluation_files` with the parameters as they are,
   * on every rank together; changes nothing. Rejects with `no_evaluation_data` when the configuration has no such file.
   */
  evaluate(file: number): Promise<EvalResult> {
    return nativeAsync(() => this.raw.evaluate(file));
  }

  /**
   * Computes a pass of a session without gradients, on every rank together. Rejects with `invalid_argument` or
   * `token_out_of_vocab` on every rank for rows that do not fit the loss or the model; then nothing changes.
   */
  forward(loss: PassLoss, rows: PassRows): Promise<PassResult> {
    return nativeAsync(() => this.raw.forward(loss, rows));
  }

  /**
   * The same, and adds the gradients of the loss to those of the step. They are with their owners when the promise
   * resolves.
   */
  forwardBackward(loss: PassLoss, rows: PassRows): Promise<PassResult> {
    return nativeAsync(() => this.raw.forwardBackward(loss, rows));
  }

  /**
   * Updates the parameters of a session with the sum of the gradients since the last update, on every rank together.
   * `loss` and `tokens` of the result are sums over the passes. Rejects with `no_gradients` where there was no pass;
   * then nothing changes.
   */
  optimStep(update: OptimStep): Promise<StepResult> {
    return nativeAsync(() => this.raw.optimStep(update));
  }

  /**
   * Draws answers from the parameters of a session as they are, in the order of the requests. On every rank together:
   * each computes a share. On a CPU the log-probabilities have the bits of forward().
   */
  sample(requests: SampleRequest[]): Promise<SampledAnswer[]> {
    return nativeAsync(() => this.raw.sample(requests));
  }

  /** Gets the memory of the first snapshot ready beside the training, which otherwise waits for it then. Idempotent. */
  prepareSnapshot(): void {
    native(() => this.raw.prepareSnapshot());
  }

  /** Copies the owned state; at most two snapshots may be held. Rejects with `snapshot_busy`. */
  async snapshot(): Promise<Snapshot> {
    const raw = await nativeAsync(() => this.raw.snapshot());
    let held = true;
    const { step, optimizer_steps, skipped_steps, loss_scaler } = raw;
    return {
      step,
      optimizer_steps,
      skipped_steps,
      loss_scaler,
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

  /** Likewise of the base of adapters, rounded to the precision of the training. */
  baseDigestPart(): Promise<string> {
    return nativeAsync(() => this.raw.baseDigestPart());
  }

  /**
   * Ends waits for other ranks, and frees everything off the event loop; resolves when that is done.
   * Resources of an operation that still runs are freed when it ends. Idempotent.
   */
  close(): Promise<void> {
    return nativeAsync(() => this.raw.close());
  }
}

function sliceOf({ param, begin, end }: RawSlice): Slice {
  return { param, begin, end };
}
