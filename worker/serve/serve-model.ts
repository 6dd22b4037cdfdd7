import type { ObjectStore } from '../../platform/object-store/index.js';
import type { NativeCore } from '../native/adapter.js';
import type { HostMessage, TaskRequest } from '../tasks/protocol.js';
import type { HostInputs } from './host-inputs.js';
import { loadModel } from './load-model.js';
import { ModelHost } from './model-host.js';

/** Loads a model and answers requests until the process is killed. @throws errors of loadModel() */
export async function serveModel(
  objects: ObjectStore,
  core: NativeCore,
  request: Extract<TaskRequest, { kind: 'serve' }>,
  inputs: HostInputs,
): Promise<never> {
  const send = (message: HostMessage) => void process.send?.(message);
  const { bytes, ...model } = await loadModel(objects, core, request);
  const host = new ModelHost(model, send);
  send({ host: 'loaded', bytes });
  inputs.listen((input) => host.take(input));
  return new Promise(() => undefined);
}
