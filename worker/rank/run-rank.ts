import { takesCalls } from '../../job-document/index.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { toRankError } from '../shared/errors.js';
import type { NativeCore, RankTrainer, StepResult } from '../shared/native/adapter.js';
import { SilenceWatch } from '../shared/silence-watch.js';
import { Inbox, type RankChannel } from './channel.js';
import type { Position, RankContext } from './context.js';
import { GpuListener } from './gpu-listener.js';
import { begin } from './load/begin.js';
import { NcclLog, ncclLine } from './nccl-log.js';
import { callLoop } from './session/call-loop.js';
import { SnapshotWriter } from './snapshot-writer.js';
import { trainLoop } from './train-loop.js';
import { trainedState } from './trained-state.js';
import { trainerConfig } from './trainer-config.js';

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

  const begun = await begin(ctx, trainer, state);
  const { base_digest_part, reference } = begun;
  const { step } = begun.at;
  position.step = step;
  await channel.send({ kind: 'running', step: position.step });

  trainer.prepareSnapshot();
  const send = channel.send.bind(channel);
  const writer = new SnapshotWriter({ objects, start, state, base_digest_part, reference, send });
  const onStep = ({ step: done, sent }: Pick<StepResult, 'step' | 'sent'>) => {
    position.step = done;
    position.sent_bytes += sent.reduced + sent.gathered + sent.routed;
    if (start.device === 'cuda' && position.is_sent) {
      position.gpu_bytes = allocatedBytes(trainer);
      position.is_sent = false;
    }
    if (done === step + 1) beat();
  };
  const common = { trainer, writer, start, send, onStep };
  const end = await (takesCalls(start.spec.train)
    ? callLoop({ ...common, channel, objects, state, begun, inbox })
    : trainLoop({
        ...common,
        first_step: step,
        early_stopping: begun.early_stopping,
        flags: () => inbox.flags,
        saveRequest: () => inbox.saveRequest,
        now: () => performance.now() / 1000,
      }));
  await writer.idle();
  await channel.send({ kind: 'stopped', step: end.step, flags: end.flags });
}

function allocatedBytes(trainer: RankTrainer): number {
  return Object.values(trainer.memory()).reduce((sum, bytes) => sum + bytes);
}
