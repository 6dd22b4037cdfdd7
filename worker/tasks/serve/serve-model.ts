import type { ObjectStore } from '../../../platform/object-store/index.js';
import { openObjectStore } from '../../../platform/object-store/open.js';
import type { NativeCore } from '../../shared/native/adapter.js';
import type { HostInput, HostMessage } from '../protocol.js';
import type { HostInputs } from './host-inputs.js';
import { loadModel, loadVariant, type ServeTask } from './load-model.js';
import { ModelHost } from './model-host.js';

/** Loads a model and answers requests until the process is killed. @throws errors of loadModel(); errors of a device that is lost */
export async function serveModel(
  objects: ObjectStore,
  core: NativeCore,
  task: ServeTask,
  inputs: HostInputs,
): Promise<never> {
  const send = (message: HostMessage) => void process.send?.(message);
  setInterval(() => send({ host: 'alive' }), task.heartbeat_ms);
  const engine = await loadModel(objects, core, task, (bytes) => send({ host: 'allocated', bytes }));
  const { retry, object_store } = task;
  const load = async ({ credentials, ...input }: Extract<HostInput, { kind: 'variant' }>) => {
    const variant = { ...input, retry };
    if (credentials === null) return loadVariant(objects, core, engine, variant);
    const { url, s3_endpoint } = object_store;
    const own = await openObjectStore(url, { s3Endpoint: s3_endpoint, credentials: () => credentials });
    try {
      return await loadVariant(own, core, engine, variant);
    } finally {
      await own.close();
    }
  };
  return new Promise((_, reject) => {
    const host = new ModelHost(engine, load, { send, onDeviceLost: reject });
    send({ host: 'loaded', bytes: engine.num_bytes });
    inputs.listen((input) => host.take(input));
  });
}
