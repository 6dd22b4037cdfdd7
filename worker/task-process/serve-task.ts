import type { SessionCredentials } from '../../contracts/rank-protocol.js';
import { openObjectStore } from '../../platform/object-store/index.js';
import { toRankError } from '../common/errors.js';
import { prepareTokens } from '../data/prepare-tokens.js';
import { exportModel } from '../export/export-model.js';
import { exportPeft } from '../export/export-peft.js';
import { exportUniversal } from '../export/export-universal.js';
import { inspectMachine } from '../gpus/inspect-machine.js';
import type { NativeCore } from '../native/adapter.js';
import { HostInputs } from '../serve/host-inputs.js';
import { serveModel } from '../serve/serve-model.js';
import { Milestones } from '../tasks/milestones.js';
import type { TaskInput, TaskMessage, TaskReply, TaskRequest, TaskResults } from '../tasks/protocol.js';

/** Runs the task that the agent sends, replies and exits. Exits as well when the agent is gone. */
export function serveTask(core: NativeCore): void {
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  let credentials: SessionCredentials | null = null;
  const inputs = new HostInputs();
  process.on('message', (message) => {
    const input = message as TaskInput;
    if (input.kind === 'credentials') {
      credentials = input.credentials;
      return;
    }
    if (input.kind === 'host') return inputs.push(input.input);
    const first = credentials;
    void answer(input, core, first && (() => credentials ?? first), inputs).then((reply) => {
      // The channel may close only after the reply was sent.
      process.send?.(reply, undefined, undefined, () => process.exit(0));
    });
  });
}

type Credentials = (() => SessionCredentials) | null;

async function answer(
  request: TaskRequest,
  core: NativeCore,
  credentials: Credentials,
  inputs: HostInputs,
): Promise<TaskReply> {
  try {
    return { ok: true, result: await perform(request, core, credentials, inputs) };
  } catch (error) {
    return { ok: false, error: toRankError(error) };
  }
}

const EXPORTS = {
  safetensors: exportModel,
  peft: exportPeft,
  deepspeed_universal: exportUniversal,
} as const;

async function perform(
  request: TaskRequest,
  core: NativeCore,
  credentials: Credentials,
  inputs: HostInputs,
): Promise<TaskResults[TaskRequest['kind']]> {
  if (request.kind === 'inspect_machine') return inspectMachine(core, request);
  const { url, s3_endpoint } = request.object_store;
  const objects = await openObjectStore(url, { s3Endpoint: s3_endpoint, credentials });
  try {
    switch (request.kind) {
      case 'prepare_data':
        return await prepareTokens(objects, request, progressSender(request.dataset.bytes));
      case 'serve':
        return await serveModel(objects, core, request, inputs);
      case 'export':
        return await EXPORTS[request.format](objects, core, request);
    }
  } finally {
    await objects.close();
  }
}

function progressSender(total_bytes: number): (done_bytes: number) => void {
  const milestones = new Milestones(total_bytes);
  return (done_bytes) => {
    if (milestones.reached(done_bytes))
      process.send?.({ progress: { done_bytes, total_bytes } } satisfies TaskMessage);
  };
}
