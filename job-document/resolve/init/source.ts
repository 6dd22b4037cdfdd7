import type { Checkpoint, Model, ResolvedJobSpec } from '../../../contracts/index.js';

/** Checkpoint as initial state, and the document of the job that made it. */
export interface CheckpointSource {
  checkpoint: Checkpoint;
  spec: ResolvedJobSpec;
}

/** Uploaded model as initial state. */
export interface ModelSource {
  model: Model;
}

/** Source of a job's initial state. */
export type InitSource = CheckpointSource | ModelSource;

/** Returns the adapter that a source has the parameters of; undefined without. */
export function adapterIn(source: InitSource): ResolvedJobSpec['train']['adapter'] {
  return 'model' in source ? source.model.adapter : source.spec.train.adapter;
}
