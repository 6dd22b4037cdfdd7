/** Drafts that begin with something: a dataset, a model, a checkpoint, another run. */
import { forkDocument } from '../../typescript/fork-document.js';
import { collect } from '../../typescript/index.js';
import { client } from '../app/connection.js';
import { type Draft, withBase, withDataset } from './draft.js';

const NAMES = ['dataset', 'model', 'fork'] as const;

export const hasSource = (query: URLSearchParams) => NAMES.some((name) => query.has(name));

/** @throws errors of the client; Error for a run without a checkpoint */
export async function draftOf(query: URLSearchParams, draft: Draft): Promise<Draft> {
  const [dataset, model, fork] = NAMES.map((name) => query.get(name));
  if (fork) return forkOf(fork);
  if (dataset) return withDataset(draft, await client.datasets.get(dataset));
  return model ? withBase(draft, model) : draft;
}

/** @param id of a checkpoint, or of a run, whose newest checkpoint it is then */
async function forkOf(id: string): Promise<Draft> {
  const checkpoint = id.startsWith('ckpt_')
    ? await client.checkpoints.get(id)
    : (await collect(client.jobs.checkpoints(id), 1))[0];
  if (checkpoint === undefined) throw new Error(`The run ${id} has no checkpoint to begin with.`);
  const { spec } = await client.jobs.get(checkpoint.job_id);
  return forkDocument(spec, checkpoint, {}) as Draft;
}
