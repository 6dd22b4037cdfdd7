import type { ObjectStore } from '../../platform/object-store/index.js';
import { openObjectStore } from '../../platform/object-store/open.js';
import type { NativeCore } from '../native/adapter.js';
import type { HostInput, HostMessage } from '../tasks/protocol.js';
import type { HostInputs } from './host-inputs.js';
import { loadModel, loadVariant, type ServeTask } from './load-model.js';
import { ModelHost } from './model-host.js';

/** Loads a model and answers requests until the process is killed. @throws errors of loadModel() */
export async function serveModel(
  objects: ObjectStore,
  core: NativeCore,
  task: ServeTask,
  inputs: HostInputs,
): Promise<never> {
  const send = (message: HostMessage) => void process.send?.(message);
  const { engine, bytes } = await loadModel(objects, core, task);
  const load = async ({ credentials, ...variant }: Extract<HostInput, { kind: 'variant' }>) => {
    const { retry, object_store } = task;
    if (credentials === null) return loadVariant(objects, core, engine, { ...variant, retry });
    const { url, s3_endpoint } = object_store;
    const own = await openObjectStore(url, { s3Endpoint: s3_endpoint, credentials: () => credentials });
    try {
      return await loadVariant(own, core, engine, { ...variant, retry });
    } finally {
      await own.close();
    }
  };
  const host = new ModelHost(engine, load, send);
  send({ host: 'loaded', bytes });
  inputs.listen((input) => host.take(input));
  return new Promise(() => undefined);
}
