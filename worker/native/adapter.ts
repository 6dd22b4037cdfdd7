/**
 * The only door from the worker to the native core. Everything else in `worker/` sees `NativeCore`, so that the agent
 * never loads the addon and tests can put another core in its place.
 */
import type { Restore, StateName, TrainingPosition } from '../../contracts/rank-protocol.js';
import {
  castToBf16,
  fingerprint,
  type ModelConfig,
  type SnapshotSlice as NativeSlice,
  type Snapshot as NativeSnapshot,
  type StepResult as NativeStepResult,
  type ParamInfo,
  paramTable,
  type Slice,
  Trainer,
  type TrainerConfig,
} from '../../native/js/index.js';

export type { ModelConfig, ParamInfo, Slice, TrainerConfig } from '../../native/js/index.js';

export type SnapshotSlice = Omit<NativeSlice, 'state'> & { state: StateName };
export type Snapshot = Omit<NativeSnapshot, 'slices'> & TrainingPosition & { slices: SnapshotSlice[] };
export type StepResult = NativeStepResult & { loss_scale: number };

/** One rank's trainer: the public methods of native/js' Trainer, which documents them. */
export interface RankTrainer
  extends Pick<Trainer, 'deliver' | 'connect' | 'initialize' | 'digestPart' | 'close'> {
  slices(): Slice[];
  load(state: StateName, param: number, begin: number, data: Uint8Array): void;
  finishLoad(at: TrainingPosition & { restore: Restore }): Promise<void>;
  step(flags: number): Promise<StepResult>;
  snapshot(): Promise<Snapshot>;
  memory(): Record<string, number>;
}

export interface NativeCore {
  createTrainer(config: TrainerConfig, onRendezvous: (key: string, value: Uint8Array) => void): RankTrainer;
  /** Parameters in canonical order. */
  paramTable(model: ModelConfig): ParamInfo[];
  /** States that an optimizer keeps of a parameter that it trains, `master` first. */
  stateNames(optimizer: TrainerConfig['optimizer']): StateName[];
  /** Scope of bit-exactness on this machine. */
  fingerprint(): string;
  /** fp32 bytes → bf16 bytes, rounded to nearest even. */
  castToBf16(fp32: Uint8Array): Uint8Array;
}

/** AdamW without a loss scaler, which is all that the core has: what the others would add is constant. */
class AdamwTrainer implements RankTrainer {
  constructor(private readonly native: Trainer) {}

  deliver = (key: string, value: Uint8Array) => this.native.deliver(key, value);
  connect = () => this.native.connect();
  initialize = () => this.native.initialize();
  digestPart = () => this.native.digestPart();
  close = () => this.native.close();
  slices = () => this.native.slices();
  load = (state: StateName, param: number, begin: number, data: Uint8Array) =>
    this.native.load(state as 'master', param, begin, data);
  finishLoad = (at: TrainingPosition & { restore: Restore }) => this.native.finishLoad(at);
  step = async (flags: number) => ({ ...(await this.native.step(flags)), loss_scale: 1 });
  memory = () => ({});

  async snapshot(): Promise<Snapshot> {
    const snapshot = await this.native.snapshot();
    const loss_scaler = {
      scale: 1,
      iteration: 0,
      last_overflow_iteration: -1,
      hysteresis: 1,
      skipped_in_a_row: 0,
    };
    return { ...snapshot, loss_scaler, lr_override: null, loss_scale_override: null };
  }
}

export const nativeCore: NativeCore = {
  createTrainer: (config, onRendezvous) => new AdamwTrainer(Trainer.create(config, onRendezvous)),
  paramTable,
  stateNames: () => ['master', 'exp_avg', 'exp_avg_sq'],
  fingerprint,
  castToBf16,
};
