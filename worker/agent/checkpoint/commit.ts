import type { TrainableJobSpec } from '../../../contracts/index.js';
import type { ConnectedMessage, RetryPolicy } from '../../../contracts/rank-protocol.js';
import { sumDigests } from '../../../formats/checkpoint/digest.js';
import { MANIFEST_FILE } from '../../../formats/checkpoint/layout.js';
import { encodeManifest, FORMAT_VERSION, type Manifest } from '../../../formats/checkpoint/manifest.js';
import { leafCount, overridesBefore } from '../../../job-document/index.js';
import { documentHash } from '../../../platform/canonical-json.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { PROGRAM_VERSION } from '../../../platform/process/version.js';
import { newUlid } from '../../../platform/random.js';
import { codeOf, retryTransient } from '../../shared/errors.js';
import type { CompleteSave } from './save-collector.js';

export interface WrittenBy {
  /** Spec that the ranks trained with. */
  spec: TrainableJobSpec;
  connected: ConnectedMessage;
  world_size: number;
  epoch: number;
  /** Id of the checkpoint before. */
  parent: string | null;
  data_digest: string;
  tokens_digest: string;
}

/** Builds the document that makes a save a checkpoint: all state that determines the further training. */
export function buildManifest(jobId: string, save: CompleteSave, by: WrittenBy): Manifest {
  const { model, train, data, zero } = by.spec;
  const { base_digest_parts } = save;
  const leaves = leafCount(train);
  return {
    format_version: FORMAT_VERSION,
    id: `ckpt_${newUlid()}`,
    job_id: jobId,
    step: save.step,
    optimizer_steps: save.optimizer_steps,
    skipped_steps: save.skipped_steps,
    world_size: by.world_size,
    epoch: by.epoch,
    params: by.connected.params,
    optimizer: train.optimizer.type,
    states: by.connected.states,
    sharding: by.connected.sharding,
    shards: save.shards,
    state_digest: sumDigests(save.digest_parts),
    base:
      model.base === undefined || base_digest_parts === null
        ? null
        : { digest: sumDigests(base_digest_parts), source: model.base },
    eval_losses: save.eval_losses,
    early_stopping: save.early_stopping,
    reference: save.reference,
    calls: save.calls,
    seed: train.seed,
    data_seed: data.seed,
    data_digest: by.data_digest,
    tokens_digest: by.tokens_digest,
    lr_schedule: { decay_steps: null, ...train.lr_schedule },
    overrides: overridesBefore(train.overrides, save.step),
    loss_scaler: { type: train.loss_scale.type, ...save.loss_scaler },
    total_steps: train.steps ?? null,
    leaves,
    // Stage 2 accumulates nothing before the exchange, so every leaf is a lane.
    lanes: zero.lanes ?? leaves,
    numerics_fingerprint: by.connected.numerics_fingerprint,
    spec_hash: documentHash(by.spec),
    parent: by.parent,
    made_from: null,
    committed_at: new Date().toISOString(),
    program_version: PROGRAM_VERSION,
  };
}

/**
 * Puts the manifest once. A lost reply may hide a successful put, so an identical existing manifest counts as success.
 * @throws ObjectStoreError `precondition_failed` when another manifest exists
 */
export async function putManifest(
  objects: ObjectStore,
  directory: string,
  manifest: Manifest,
  { policy, signal }: { policy: RetryPolicy; signal: AbortSignal },
): Promise<void> {
  const key = `${directory}/${MANIFEST_FILE}`;
  const bytes = encodeManifest(manifest);
  const put = async () => {
    try {
      await objects.put(key, bytes, { createOnly: true, contentType: 'application/json' });
    } catch (error) {
      if (codeOf(error) !== 'precondition_failed' || !bytes.equals(await objects.get(key))) throw error;
    }
  };
  await retryTransient(put, policy, signal);
}
