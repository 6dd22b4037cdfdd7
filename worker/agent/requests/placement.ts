import type { Architecture } from '../../../contracts/architecture.js';
import type { Model, SamplePayload } from '../../../contracts/index.js';
import { ZerofleetError } from '../../../contracts/index.js';
import { modelParams } from '../../../job-document/index.js';
import { documentHash } from '../../../platform/canonical-json.js';
import type { JobStore } from '../../../state/index.js';
import type { ServedBase, ServedSource, StoredWeights } from '../../tasks/protocol.js';
import { elementBytes } from '../../tasks/serve/memory.js';
import { shapeOf } from '../../tasks/serve/served-source.js';
import type { SessionOwner } from '../credentials/session-policy.js';

/** Process and variant that answer a request. */
export interface Placement {
  /** Requests with the same key share a process. */
  process_key: string;
  weights: ServedBase | ServedSource;
  /** Requests with the same key share a variant of the process. */
  variant_key: string;
  source: ServedSource;
  /** True if the adapter of the source is loaded over the weights. */
  is_adapter: boolean;
  /** Bytes of this adapter; 0 without one. */
  adapter_bytes: number;
  /** Job or model whose session reads the source. */
  owner: SessionOwner;
  /** Job or model whose session reads the weights. */
  process_owner: SessionOwner;
}

/**
 * Finds the weights for a request. Adapters that only add to products share one process with each other and with their
 * model.
 * @throws ZerofleetError `checkpoint_not_found`, `model_not_found`; errors of the store
 */
export async function placementOf(
  store: Pick<JobStore, 'getJob' | 'getModel'>,
  { source: given, request }: Pick<SamplePayload, 'source' | 'request'>,
): Promise<Placement> {
  const { source, key, owner, base } =
    'model_id' in given
      ? await findModel(store, given.model_id)
      : await findCheckpoint(store, given, request.weights);
  const { architecture, precision } = shapeOf(source);
  const isAdapter = architecture.adapter !== null;
  const variant = { variant_key: key, source, is_adapter: isAdapter, owner };
  if (base === null || (isAdapter && !canShareModel(architecture)))
    return {
      ...variant,
      process_key: key,
      weights: source,
      is_adapter: false,
      adapter_bytes: 0,
      process_owner: owner,
    };
  const model = { ...architecture, adapter: null };
  const processKey = documentHash({ base, model, precision });
  const adapterBytes = elementBytes(precision) * (numParams(architecture) - numParams(model));
  const processOwner = 'model' in base ? { id: base.model } : owner;
  return {
    ...variant,
    process_key: processKey,
    weights: { base, architecture, precision },
    adapter_bytes: adapterBytes,
    process_owner: processOwner,
  };
}

function numParams(architecture: Architecture): number {
  const numel = (shape: readonly number[]) => shape.reduce((product, size) => product * size, 1);
  return modelParams(architecture).reduce((sum, { shape }) => sum + numel(shape), 0);
}

/**
 * Returns the error of a request whose source was deleted after the request was accepted; otherwise null.
 * @throws errors of the store
 */
export async function goneError(
  store: Pick<JobStore, 'findCheckpoint' | 'getModel'>,
  source: SamplePayload['source'],
): Promise<ZerofleetError | null> {
  if ('model_id' in source) {
    const { model_id: id } = source;
    return (await store.getModel(id)) === null
      ? new ZerofleetError('model_not_found', `model ${id} was deleted`)
      : null;
  }
  const { id } = source.checkpoint;
  const found = await store.findCheckpoint(id);
  return found?.checkpoint
    ? null
    : new ZerofleetError('checkpoint_not_found', `checkpoint ${id} was removed`);
}

interface Found {
  source: ServedSource;
  key: string;
  owner: SessionOwner;
  /** Weights without the adapter; null if they are not stored separately. */
  base: StoredWeights | null;
}

async function findModel(store: Pick<JobStore, 'getModel'>, id: string): Promise<Found> {
  const model = await modelOf(store, id);
  const baseModel = model.base === undefined ? null : await modelOf(store, model.base);
  return {
    source: { model, base_model: baseModel },
    key: id,
    owner: model,
    base: { model: model.base ?? id },
  };
}

async function modelOf(store: Pick<JobStore, 'getModel'>, id: string): Promise<Model> {
  const model = await store.getModel(id);
  if (model === null) throw new ZerofleetError('model_not_found', `model ${id} is gone`);
  return model;
}

async function findCheckpoint(
  store: Pick<JobStore, 'getJob'>,
  { job_id, checkpoint: { id, prefix } }: Exclude<SamplePayload['source'], { model_id: string }>,
  weights: SamplePayload['request']['weights'],
): Promise<Found> {
  const job = await store.getJob(job_id);
  if (job === null) throw new ZerofleetError('checkpoint_not_found', `job ${job_id} is gone`);
  const source = { spec: job.spec, checkpoint: prefix, weights };
  return { source, key: `${id} ${weights}`, owner: job, base: baseOf(source) };
}

function baseOf({
  spec,
  checkpoint,
  weights,
}: Extract<ServedSource, { spec: unknown }>): StoredWeights | null {
  if (spec.train.adapter === undefined) return weights === 'trained' ? { prefix: checkpoint } : null;
  const { base } = spec.model;
  if (base === undefined || 'seed' in base) return null;
  return 'model' in base ? { model: base.model } : { prefix: base.prefix };
}

/** True if the adapter can share its model with others: the rule of native/model/layers/served_adapter.h. */
function canShareModel(architecture: Architecture): boolean {
  const { adapter } = architecture;
  if (adapter === null || adapter.type !== 'lora' || adapter.modules_to_save.length > 0) return false;
  return !modelParams(architecture).some(({ name, expert }) => expert !== null && /\.lora_[AB]\./.test(name));
}
