import type { StartMessage } from '../../contracts/rank-protocol.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import type { NativeCore } from '../shared/native/adapter.js';
import type { Inbox, RankChannel } from './channel.js';

/** Position for the heartbeat and the last message. */
export interface Position {
  step: number;
  /** Bytes that the rank has sent to other ranks. */
  sent_bytes: number;
  /** Bytes that the trainer has allocated on its GPU; 0 on the CPU. */
  gpu_bytes: number;
  /**
   * A heartbeat has sent `gpu_bytes`. The next step measures again: one question to the driver per heartbeat, not per
   * step.
   */
  is_sent: boolean;
}

/** What the parts of one rank share. */
export interface RankContext {
  channel: RankChannel;
  inbox: Inbox;
  core: NativeCore;
  start: StartMessage;
  objects: ObjectStore;
  position: Position;
  /** Sends a heartbeat. */
  beat(): void;
  /** Rejects when waiting for the trainer is useless. */
  gpu_lost: Promise<never> | null;
}
