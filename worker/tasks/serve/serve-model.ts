import type { ObjectStore } from '../../../platform/object-store/index.js';
import { openObjectStore } from '../../../platform/object-store/open.js';
import type { NativeCore } from '../../shared/native/adapter.js';
import type { ServeInput, ServeMessage } from '../protocol.js';
import { loadModel, loadVariant, type ServeTask } from './load-model.js';
import type { ServeInputs } from './serve-inputs.js';
import { ServeLoop } from './serve-loop.js';

/**
 * Loads a model and answers requests until the process is killed.
 * @throws errors of loadModel(); the error of a lost device
 */
export async function serveModel(
  objects: ObjectStore,
  core: NativeCore,
  task: ServeTask,
  inputs: ServeInputs,
): Promise<never> {
  const send = (message: ServeMessage) => void process.send?.(message);
  setInterval(() => send({ event: 'alive' }), task.heartbeat_ms);
  const engine = await loadModel(objects, core, task, (bytes) => send({ event: 'allocated', bytes }));
  const { retry, object_store } = task;
  const load = async ({ credentials, ...input }: Extract<ServeInput, { kind: 'load_variant' }>) => {
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
    const loop = new ServeLoop(engine, load, { send, onDeviceLost: reject });
    send({ event: 'loaded', bytes: engine.numBytes });
    inputs.listen((input) => loop.take(input));
  });
}
