import { ulid } from 'ulid';
import type { Dataset, Job, JobSpec, ResolvedJobSpec, TraceHeaders } from '../../contracts/index.js';
import { resolveSpec } from '../../job-document/index.js';
import type { JobStore } from '../job-store.js';

/** Returns a dataset record without bytes in an object store. */
export function testDataset(): Dataset {
  return {
    id: `ds_${ulid()}`,
    name: 'test',
    description: '',
    format: 'text',
    bytes: 1000,
    digest: `sha256:${'0'.repeat(64)}`,
    num_documents: 1,
    source: null,
    num_chats: 0,
    num_preferences: 0,
    num_labelled: 0,
    num_prompts: 0,
    num_tokens: 1000,
    max_token: null,
    project: 'default',
    created_at: new Date().toISOString(),
  };
}

/** Returns a small valid job document with every default filled in. */
export function testSpec(dataset: string, changes: Partial<JobSpec> = {}): ResolvedJobSpec {
  const document: JobSpec = {
    name: 'test',
    model: { preset: 'llama-tiny' },
    data: { dataset },
    train: { steps: 100 },
    ...changes,
  };
  return resolveSpec(document, null).spec;
}

/** Stores a dataset and a queued job that uses it. */
export async function createTestJob(
  store: JobStore,
  changes: Partial<JobSpec> = {},
  trace?: TraceHeaders,
): Promise<Job> {
  const dataset = testDataset();
  await store.putDataset(dataset);
  const spec = testSpec(dataset.id, changes);
  const { job } = await store.createJob({ id: `job_${ulid()}`, spec, ...(trace && { trace }) });
  return job;
}
