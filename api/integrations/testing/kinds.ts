/** The trackers whose cases are the same. */
import type { Integration } from '../../../contracts/index.js';
import { MlflowStore } from './mlflow.js';
import type { TrackerStore } from './server.js';
import { WandbStore } from './wandb.js';

export const TOKEN = 'a-secret-token-of-a-tracker';

export interface Kind<S extends TrackerStore = TrackerStore> {
  integration: Pick<Integration, 'type' | 'experiment' | 'project'>;
  open(): S;
  /** Header that has `TOKEN`. */
  authorization: string;
  /** Ends of the names of requests. */
  requests: { first: string; create: string; log: string; end: string };
}

export const MLFLOW: Kind<MlflowStore> = {
  integration: { type: 'mlflow', experiment: 'tests' },
  open: () => new MlflowStore(),
  authorization: `Bearer ${TOKEN}`,
  requests: { first: 'get-by-name', create: 'runs/create', log: 'runs/log-batch', end: 'runs/update' },
};

export const WANDB: Kind<WandbStore> = {
  integration: { type: 'wandb', project: 'tests' },
  open: () => new WandbStore(),
  authorization: `Basic ${Buffer.from(`api:${TOKEN}`).toString('base64')}`,
  requests: {
    first: 'RunResumeStatus',
    create: 'UpsertBucket',
    log: 'file_stream',
    end: 'file_stream complete',
  },
};

export const KINDS: readonly Kind[] = [MLFLOW, WANDB];
