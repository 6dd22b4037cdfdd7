/** Drafts that begin with something: a dataset, a model, a checkpoint, another run. */
import { forkDocument } from '../../typescript/fork-document.js';
import { collect } from '../../typescript/index.js';
import { client } from '../app/connection.js';
import { type Draft, forkOf, withBase, withCheckpoint } from './draft.js';
import { withData } from './sample-prompts.js';

const NAMES = ['dataset', 'model', 'fork', 'weights'] as const;

export const hasSource = (query: URLSearchParams) => NAMES.some((name) => query.has(name));

/**
 * Returns how a draft changes, which may be edited in the meantime.
 * @throws errors of the client; Error for a run without a checkpoint
 */
export async function changeOf(query: URLSearchParams): Promise<(draft: Draft) => Draft> {
  const [dataset, model, fork, weights] = NAMES.map((name) => query.get(name));
  if (fork) {
    const forked = await forkFrom(fork);
    return () => forked;
  }
  if (weights) {
    const { job, checkpoint } = await checkpointOf(weights);
    return (draft) => withCheckpoint(draft, job, checkpoint.id, 'weights');
  }
  if (dataset) {
    const chosen = await client.datasets.get(dataset);
    return (draft) => withData(draft, chosen);
  }
  return (draft) => (model ? withBase(draft, model) : draft);
}

/** @param id of a checkpoint, or of a run, whose newest checkpoint it is then */
async function checkpointOf(id: string) {
  const checkpoint = id.startsWith('ckpt_')
    ? await client.checkpoints.get(id)
    : (await collect(client.jobs.checkpoints(id), 1))[0];
  if (checkpoint === undefined) throw new Error(`The run ${id} has no checkpoint to begin with.`);
  return { checkpoint, job: await client.jobs.get(checkpoint.job_id) };
}

async function forkFrom(id: string): Promise<Draft> {
  const { checkpoint, job } = await checkpointOf(id);
  // A resolved document has nulls, which the API does not accept.
  const given = (await client.jobs.document(job.id)) ?? forkDocument(job.spec, checkpoint, {});
  return forkOf(given as unknown as Draft, job, checkpoint);
}
