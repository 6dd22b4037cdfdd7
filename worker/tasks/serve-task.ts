import type { SessionCredentials } from '../../contracts/rank-protocol.js';
import { toRankError } from '../shared/errors.js';
import type { NativeCore } from '../shared/native/adapter.js';
import { Milestones } from './milestones.js';
import type { TaskInput, TaskMessage, TaskReply, TaskRequest, TaskResults } from './protocol.js';
import { ServeInputs } from './serve/serve-inputs.js';

/** Runs the task that the agent sends, replies and exits. Exits as well when the agent is gone. */
export function serveTask(core: NativeCore): void {
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  let credentials: SessionCredentials | null = null;
  const inputs = new ServeInputs();
  process.on('message', (message) => {
    const input = message as TaskInput;
    if (input.kind === 'credentials') {
      credentials = input.credentials;
      return;
    }
    if (input.kind === 'serve_input') return inputs.push(input.input);
    const first = credentials;
    void replyTo(input, core, first && (() => credentials ?? first), inputs).then((reply) => {
      // The channel may close only after the reply was sent.
      process.send?.(reply, undefined, undefined, () => process.exit(0));
    });
  });
}

type Credentials = (() => SessionCredentials) | null;

async function replyTo(
  request: TaskRequest,
  core: NativeCore,
  credentials: Credentials,
  inputs: ServeInputs,
): Promise<TaskReply> {
  try {
    // A busy or stopped process does not notice the end of its agent by its channel.
    core.endWithParent();
    return { ok: true, result: await perform(request, core, credentials, inputs) };
  } catch (error) {
    return { ok: false, error: toRankError(error) };
  }
}

const EXPORTS = {
  safetensors: async () => (await import('./export/export-model.js')).exportModel,
  peft: async () => (await import('./export/export-peft.js')).exportPeft,
  peft_folded: async () => (await import('./export/export-peft.js')).exportPeft,
  gguf: async () => (await import('./export/export-gguf.js')).exportGguf,
  gguf_lora: async () => (await import('./export/export-gguf-lora.js')).exportGgufLora,
  deepspeed_universal: async () => (await import('./export/export-universal.js')).exportUniversal,
} as const;

/**
 * Performs a task. A process has one task, so it loads no other's modules: loading all takes longer than many tasks do.
 */
async function perform(
  request: TaskRequest,
  core: NativeCore,
  credentials: Credentials,
  inputs: ServeInputs,
): Promise<TaskResults[TaskRequest['kind']]> {
  if (request.kind === 'inspect_machine') {
    const { inspectMachine } = await import('./inspect-machine.js');
    return inspectMachine(core, request);
  }
  const { openObjectStore } = await import('../../platform/object-store/index.js');
  const { url, s3_endpoint } = request.object_store;
  const objects = await openObjectStore(url, { s3Endpoint: s3_endpoint, credentials });
  try {
    switch (request.kind) {
      case 'prepare_data': {
        const { prepareTokens } = await import('./data/prepare-tokens.js');
        return await prepareTokens(objects, request, progressSender(request.dataset.bytes));
      }
      case 'serve': {
        const { serveModel } = await import('./serve/serve-model.js');
        return await serveModel(objects, core, request, inputs);
      }
      case 'edit': {
        const { editCheckpoint } = await import('./edit/edit-checkpoint.js');
        return await editCheckpoint(objects, core, request);
      }
      case 'export': {
        const exportAs = await EXPORTS[request.format]();
        return await exportAs(objects, core, request);
      }
    }
  } finally {
    await objects.close();
  }
}

function progressSender(totalBytes: number): (doneBytes: number) => void {
  const milestones = new Milestones(totalBytes);
  return (doneBytes) => {
    if (milestones.reached(doneBytes))
      process.send?.({ progress: { done_bytes: doneBytes, total_bytes: totalBytes } } satisfies TaskMessage);
  };
}
