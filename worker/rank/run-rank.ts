import type {
  BaseLoad,
  EarlyStoppingState,
  LoadedBase,
  LoadSource,
  RangeChecksum,
  Restore,
  StartMessage,
  TrainingPosition,
} from '../../contracts/rank-protocol.js';
import { NOT_EVALUATED } from '../../job-document/index.js';
import { type ObjectStore, openObjectStore } from '../../platform/object-store/index.js';
import { baseError, toRankError } from '../shared/errors.js';
import type { NativeCore, RankTrainer } from '../shared/native/adapter.js';
import { SilenceWatch } from '../shared/silence-watch.js';
import { Inbox, type RankChannel } from './channel.js';
import { GpuListener } from './gpu-listener.js';
import type { TrainedState } from './load/fit.js';
import { loadBase } from './load/load-base.js';
import { loadCheckpoint } from './load/load-checkpoint.js';
import { loadModel } from './load/load-model.js';
import { NcclLog, ncclLine } from './nccl-log.js';
import { positionAfterLoad, positionAfterRestore } from './position.js';
import { beginReference, type ContinuedCheckpoint, type Reference } from './reference.js';
import { SnapshotWriter } from './snapshot-writer.js';
import { trainLoop } from './train-loop.js';
import { trainedState } from './trained-state.js';
import { trainerConfig } from './trainer-config.js';

/** Position for the heartbeat and the last message. */
interface Position {
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

/**
 * Runs one rank, from its start message to its exit.
 * @param open opens the object store; tests inject faults
 * @returns exit code: 0 after the agent's `exit`, 1 after `failed`
 */
export async function runRank(
  channel: RankChannel,
  core: NativeCore,
  open = openObjectStore,
): Promise<number> {
  // Without an agent no save can be committed, and a new agent starts its own ranks. A native thread may be running, so
  // nothing is cleaned up.
  const end = () => process.kill(process.pid, 'SIGKILL');
  channel.onDisconnect(end);
  const inbox = new Inbox(channel);
  const start = await inbox.started;
  const position: Position = { step: 0, sent_bytes: 0, gpu_bytes: 0, is_sent: true };
  // An agent that is stopped for longer than its lease has lost it without being able to tell.
  const agent = new SilenceWatch(start.agent_silence_ms, start.agent_silence_ms, end);
  inbox.onAnyMessage = () => agent.heard();
  let gpu: GpuListener | null = null;
  let measureGpu = (): number | null => null;
  const beat = () => {
    gpu?.listen(position.step);
    const { step, sent_bytes, gpu_bytes } = position;
    const { user, system } = process.cpuUsage();
    position.is_sent = true;
    const message = {
      kind: 'heartbeat',
      step,
      memory_bytes: start.device === 'cpu' ? process.memoryUsage.rss() : gpu_bytes,
      cpu_seconds: (user + system) / 1e6,
      sent_bytes,
      gpu_busy: measureGpu(),
      uptime_seconds: performance.now() / 1000,
    } as const;
    void channel.send(message).catch(() => undefined);
  };
  const heartbeat = setInterval(beat, start.heartbeat_ms);
  beat();
  try {
    const uuid = start.device === 'cpu' ? undefined : core.cudaDevices()?.[0]?.uuid;
    if (uuid !== undefined) {
      gpu = GpuListener.forGpu(core, uuid);
      measureGpu = core.measureGpu(uuid);
    }
    const objects = await open(start.object_store.url, {
      s3Endpoint: start.object_store.s3_endpoint,
      credentials: inbox.credentials(),
    });
    try {
      await train({ channel, inbox, core, start, objects, position, beat, gpu_lost: gpu?.lost ?? null });
    } finally {
      await objects.close();
    }
    await inbox.exit;
    return 0;
  } catch (error) {
    const rankError = toRankError(error);
    await channel
      .send({ kind: 'failed', error: gpu?.explain(rankError) ?? rankError, step: position.step })
      .catch(() => undefined);
    return 1;
  } finally {
    clearInterval(heartbeat);
    agent.close();
  }
}

interface RankContext {
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

async function train(ctx: RankContext): Promise<void> {
  const { channel, core, start, gpu_lost } = ctx;
  const publish = (key: string, value: Uint8Array) => void channel.send({ kind: 'publish', key, value });
  const config = trainerConfig(start);
  const state = trainedState(core, config, start.spec);
  // Must precede the allocation of memory, which would lie on another node.
  if (start.device === 'cpu')
    core.stayOnNode(start.rank % start.local_ranks, start.local_ranks, start.threads);
  const trainer = core.createTrainer(config, publish);
  try {
    const trained = trainWith(trainer, state, ctx);
    await (gpu_lost ? Promise.race([trained, gpu_lost]) : trained);
  } finally {
    // Not awaited: the error is reported first, while this process still responds.
    void trainer.close();
  }
}

async function trainWith(
  trainer: RankTrainer,
  state: ReturnType<typeof trainedState>,
  ctx: RankContext,
): Promise<void> {
  const { channel, inbox, core, start, objects, position, beat } = ctx;
  inbox.onDeliver((key, value) => trainer.deliver(key, value));
  const ncclLog = start.device === 'cuda' && start.world_size > 1 ? await NcclLog.begin() : null;
  await trainer.connect();
  if (ncclLog) console.log(ncclLine(await ncclLog.end()));
  await channel.send({
    kind: 'connected',
    params: [...state.params],
    states: [...state.states],
    sharding: state.sharding,
    numerics_fingerprint: core.fingerprint(start.device),
  });

  const { step, early_stopping, base_digest_part, reference } = await begin(ctx, trainer, state);
  position.step = step;
  await channel.send({ kind: 'running', step: position.step });

  trainer.prepareSnapshot();
  const send = channel.send.bind(channel);
  const writer = new SnapshotWriter({ objects, start, state, base_digest_part, reference, send });
  const end = await trainLoop({
    trainer,
    writer,
    start,
    first_step: step,
    early_stopping,
    flags: () => inbox.flags,
    saveRequest: () => inbox.saveRequest,
    now: () => performance.now() / 1000,
    send,
    onStep: ({ step: done, sent }) => {
      position.step = done;
      position.sent_bytes += sent.reduced + sent.gathered + sent.routed;
      if (start.device === 'cuda' && position.is_sent) {
        position.gpu_bytes = allocatedBytes(trainer);
        position.is_sent = false;
      }
      if (done === step + 1) beat();
    },
  });
  await writer.idle();
  await channel.send({ kind: 'stopped', step: end.step, flags: end.flags });
}

function allocatedBytes(trainer: RankTrainer): number {
  return Object.values(trainer.memory()).reduce((sum, bytes) => sum + bytes);
}

interface Begun {
  /** Steps done. */
  step: number;
  early_stopping: EarlyStoppingState | null;
  /** This rank's share of the digest of the base; null without adapters. */
  base_digest_part: string | null;
  reference: Reference | null;
}

/** Initializes or loads the state. */
async function begin(ctx: RankContext, trainer: RankTrainer, state: TrainedState): Promise<Begun> {
  const { channel, inbox, start } = ctx;
  const source = start.load;
  const fresh = start.spec.train.early_stopping === undefined ? null : NOT_EVALUATED;
  if (source === null) {
    await trainer.initialize();
    const reference = await beginReference(ctx, trainer, null);
    const baseDigestPart = start.base === null ? null : await trainer.baseDigestPart();
    return { step: 0, early_stopping: fresh, base_digest_part: baseDigestPart, reference };
  }
  // The source may have no adapters. A base would take long, and is loaded.
  if (state.num_base < state.params.length) await trainer.initialize(state.num_base);
  const base = start.base === null ? null : await openBase(ctx, start.base, trainer, state);
  const { ranges, at, restore, early_stopping, continued } = await load(ctx, source, trainer, state);
  await channel.send({ kind: 'loaded', ranges, base });
  // A checksum covers bytes of several ranks, so only the agent can verify it.
  await inbox.proceed;
  await trainer.finishLoad({ ...at, restore });
  const reference = await beginReference(ctx, trainer, continued);
  return {
    step: at.step,
    early_stopping: early_stopping ?? fresh,
    base_digest_part: base?.digest_part ?? null,
    reference,
  };
}

/** Loads the base of adapters. @throws ZerofleetError `base_damaged`: the job's own checkpoint may be whole */
async function openBase(
  { start, objects }: RankContext,
  source: BaseLoad,
  trainer: RankTrainer,
  { params }: TrainedState,
): Promise<LoadedBase> {
  try {
    const ranges = await loadBase({ objects, source, trainer, params, retry: start.save.final });
    return { ranges, digest_part: await trainer.baseDigestPart() };
  } catch (error) {
    throw baseError(error);
  }
}

interface Loaded {
  /** Checksums of all bytes read. */
  ranges: RangeChecksum[];
  at: TrainingPosition;
  restore: Restore;
  /** State of early stopping in the job's own checkpoint; null for another source. */
  early_stopping: EarlyStoppingState | null;
  /** Null if a new training begins. */
  continued: ContinuedCheckpoint | null;
}

async function load(
  { start, objects }: RankContext,
  source: LoadSource,
  trainer: RankTrainer,
  state: TrainedState,
): Promise<Loaded> {
  const retry = start.save.final;
  const { loss_scale } = start.spec.train;
  if (source.kind === 'model') {
    const model = await loadModel({ objects, source, trainer, state, retry });
    const { ranges, optimizer } = model;
    const at = positionAfterRestore(optimizer, loss_scale);
    return { ranges, at, restore: source.restore, early_stopping: null, continued: null };
  }
  const { manifest, ranges } = await loadCheckpoint({ objects, source, trainer, state, retry });
  const at = positionAfterLoad(manifest, source, loss_scale);
  // A fork saves and exports its own best checkpoint, so it does not continue with the evaluations of the other job.
  const earlyStopping = manifest.job_id === start.job_id ? manifest.early_stopping : null;
  const { restore, directory } = source;
  return {
    ranges,
    at,
    restore,
    early_stopping: earlyStopping,
    continued: restore === 'weights' ? null : { directory, manifest },
  };
}
