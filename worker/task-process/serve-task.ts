import type { SessionCredentials } from '../../contracts/rank-protocol.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { toRankError } from '../common/errors.js';
import { prepareTokens } from '../data/prepare-tokens.js';
import { exportModel } from '../export/export-model.js';
import { exportUniversal } from '../export/export-universal.js';
import { lookAtMachine } from '../gpus/look-at-machine.js';
import type { NativeCore } from '../native/adapter.js';
import { sampleCheckpoint } from '../sample/sample-checkpoint.js';
import { Milestones } from '../tasks/milestones.js';
import type { TaskMessage, TaskOrder, TaskReply, TaskRequest, TaskResults } from '../tasks/protocol.js';

/** Does the one task that the agent sends, answers and ends. Without an agent the work is of no use, so it ends too. */
export function serveTask(core: NativeCore): void {
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  let credentials: SessionCredentials | null = null;
  process.on('message', (message) => {
    const order = message as TaskOrder;
    if (order.kind === 'credentials') {
      credentials = order.credentials;
      return;
    }
    const first = credentials;
    void answer(order, core, first && (() => credentials ?? first)).then((reply) => {
      // Only when the reply is on its way may the channel close.
      process.send?.(reply, undefined, undefined, () => process.exit(0));
    });
  });
}

type Credentials = (() => SessionCredentials) | null;

async function answer(request: TaskRequest, core: NativeCore, credentials: Credentials): Promise<TaskReply> {
  try {
    return { ok: true, result: await perform(request, core, credentials) };
  } catch (error) {
    return { ok: false, error: toRankError(error) };
  }
}

const EXPORTS = { safetensors: exportModel, deepspeed_universal: exportUniversal } as const;

async function perform(
  request: TaskRequest,
  core: NativeCore,
  credentials: Credentials,
): Promise<TaskResults[TaskRequest['kind']]> {
  if (request.kind === 'look_at_machine') return lookAtMachine(core, request);
  const { url, s3_endpoint } = request.object_store;
  const objects = await openObjectStore(url, { s3Endpoint: s3_endpoint, credentials });
  try {
    switch (request.kind) {
      case 'prepare_data':
        return await prepareTokens(objects, request, tellProgress(request.dataset.bytes));
      case 'sample':
        return await sampleCheckpoint(objects, core, request);
      case 'export':
        return await EXPORTS[request.format](objects, core, request);
    }
  } finally {
    await objects.close();
  }
}

function tellProgress(total_bytes: number): (done_bytes: number) => void {
  const milestones = new Milestones(total_bytes);
  return (done_bytes) => {
    if (milestones.reached(done_bytes))
      process.send?.({ progress: { done_bytes, total_bytes } } satisfies TaskMessage);
  };
}
