import { setTimeout as sleep } from 'node:timers/promises';
import { collect, type Zerofleet } from '../../client/index.js';
import { desiredKey, resultKey, specKey } from '../../platform/checkpoint/layout.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import type { Workload } from './workload.js';

/** What must not be. Every list is empty when all promises were kept. */
export interface Findings {
  /** Acknowledged, but not there or not ended. */
  lost: string[];
  /** More than one job of one idempotency key, or two checkpoints of one step. */
  doubled: string[];
  failed: string[];
  /** Ended with another digest than undisturbed. */
  wrong_digest: string[];
  stray_objects: string[];
  orphan_processes: string[];
}

/** How long leftovers may take to be swept once everything has ended. */
const SWEEP_MS = 60_000;

export async function auditJobs(
  client: Zerofleet,
  workload: Workload,
): Promise<Omit<Findings, 'stray_objects' | 'orphan_processes'>> {
  const listed = await collect(client.jobs.list());
  const findings = {
    lost: [] as string[],
    doubled: [] as string[],
    failed: [] as string[],
    wrong_digest: [] as string[],
  };
  for (const { name, id, variant } of workload.submitted) {
    const found = listed.filter((job) => job.name === name);
    const job = found.find((candidate) => candidate.id === id);
    if (found.length > 1) findings.doubled.push(`${found.length} jobs ${name}`);
    if (!job) findings.lost.push(`${name} (${id})`);
    else if (job.state === 'failed')
      findings.failed.push(`${name}: ${job.failure?.code} ${job.failure?.message}`);
    else if (job.state !== 'succeeded') findings.lost.push(`${name} is ${job.state}`);
    else if (job.export?.state_digest !== workload.digestOf(variant)) findings.wrong_digest.push(name);
    const steps = (await collect(client.jobs.checkpoints(id))).map(({ step }) => step);
    if (new Set(steps).size < steps.length)
      findings.doubled.push(`checkpoints of ${name}: ${steps.join(', ')}`);
  }
  const names = new Set(workload.submitted.map(({ name }) => name));
  for (const { name } of listed)
    if (!names.has(name)) findings.doubled.push(`${name} was never acknowledged`);
  return findings;
}

/** How many of the jobs trained on several agents at once, for a while. */
export async function countSpread(client: Zerofleet, { submitted }: Workload): Promise<number> {
  let spread = 0;
  for (const { id } of submitted) {
    const started = (await collect(client.jobs.events(id))).filter(({ type }) => type === 'training.started');
    if (started.some(({ data }) => Array.isArray(data.places) && data.places.length > 1)) spread++;
  }
  return spread;
}

/** Keys and unfinished uploads that belong to nothing, once there was time to sweep. */
export async function strayObjects(
  objects: ObjectStore,
  client: Zerofleet,
  workload: Workload,
): Promise<string[]> {
  for (const deadline = Date.now() + SWEEP_MS; ; await sleep(1_000)) {
    const strays = await straysNow(objects, client, workload);
    if (strays.length === 0 || Date.now() > deadline) {
      const uploads = await objects.abandonUploads('');
      return uploads === 0 ? strays : [...strays, `${uploads} unfinished uploads`];
    }
  }
}

async function straysNow(objects: ObjectStore, client: Zerofleet, workload: Workload): Promise<string[]> {
  const prefixes = [`datasets/${workload.datasetId}/`];
  for (const { id, job } of workload.submitted) {
    prefixes.push(specKey(id), desiredKey(id), resultKey(id));
    if (job.export) prefixes.push(job.export.prefix);
    for (const { prefix } of await collect(client.jobs.checkpoints(id)))
      prefixes.push(`${prefix.replace(/\/$/, '')}/`);
  }
  const strays: string[] = [];
  for await (const { key } of objects.list('')) {
    if (!prefixes.some((prefix) => key.startsWith(prefix))) strays.push(key);
  }
  return withoutUnrecorded(strays);
}

/**
 * An API that is killed between a job's document and its record leaves the document. Nobody was told of that job, and the whole
 * store's sweep removes it after its time of grace, a day. Whatever else lies beside such a document is a stray.
 */
function withoutUnrecorded(strays: readonly string[]): string[] {
  const jobOf = (key: string) => /^jobs\/([^/]+)\//.exec(key)?.[1] ?? '';
  return strays.filter(
    (key) =>
      key !== specKey(jobOf(key)) || strays.some((other) => other !== key && jobOf(other) === jobOf(key)),
  );
}
