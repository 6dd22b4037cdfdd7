import { setTimeout as sleep } from 'node:timers/promises';
import { collect, type Zerofleet } from '../../clients/typescript/index.js';
import {
  callResultsPrefix,
  callsPrefix,
  desiredKey,
  resultKey,
  rewardsPrefix,
  specKey,
} from '../../formats/checkpoint/layout.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { PROBES } from '../../platform/object-store/probe.js';
import type { Workload } from './workload.js';

/** Violated guarantees. Every list is empty if there are none. */
export interface Findings {
  /** Acknowledged, but missing or unfinished. */
  lost: string[];
  /** Several jobs for one idempotency key, or two checkpoints of one step. */
  doubled: string[];
  failed: string[];
  /** Ended with another digest than without faults. */
  wrong_digest: string[];
  /** Neither whole nor equal to the answer without faults. */
  wrong_answers: string[];
  /** Of calls of sessions: other than without faults. */
  wrong_results: string[];
  stray_objects: string[];
  orphan_processes: string[];
}

/** Time to collect leftovers after everything has ended. */
const COLLECTION_MS = 60_000;

export async function auditJobs(
  client: Zerofleet,
  workload: Workload,
): Promise<Pick<Findings, 'lost' | 'doubled' | 'failed' | 'wrong_digest'>> {
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

/** Number of jobs that trained on several agents at once. */
export async function countSpread(client: Zerofleet, { submitted }: Workload): Promise<number> {
  let spread = 0;
  for (const { id } of submitted) {
    const started = (await collect(client.jobs.events(id))).filter(({ type }) => type === 'training.started');
    if (started.some(({ data }) => Array.isArray(data.placements) && data.placements.length > 1)) spread++;
  }
  return spread;
}

/** Orphaned keys and unfinished uploads, after a time to collect them. */
export async function orphanedObjects(
  objects: ObjectStore,
  client: Zerofleet,
  workload: Workload,
): Promise<string[]> {
  for (const deadline = Date.now() + COLLECTION_MS; ; await sleep(1_000)) {
    const orphans = await orphansNow(objects, client, workload);
    if (orphans.length === 0 || Date.now() > deadline) {
      const uploads = await objects.abandonUploads('');
      return uploads === 0 ? orphans : [...orphans, `${uploads} unfinished uploads`];
    }
  }
}

async function orphansNow(objects: ObjectStore, client: Zerofleet, workload: Workload): Promise<string[]> {
  const prefixes = workload.datasets.map((id) => `datasets/${id}/`);
  for (const { id, job } of workload.submitted) {
    prefixes.push(specKey(id), desiredKey(id), resultKey(id));
    prefixes.push(callsPrefix(id), callResultsPrefix(id), rewardsPrefix(id));
    if (job.export) prefixes.push(job.export.prefix);
    for (const { prefix } of await collect(client.jobs.checkpoints(id)))
      prefixes.push(`${prefix.replace(/\/$/, '')}/`);
  }
  const orphans: string[] = [];
  for await (const { key } of objects.list('')) {
    if (!prefixes.some((prefix) => key.startsWith(prefix))) orphans.push(key);
  }
  return withoutCollected(orphans);
}

/**
 * Removes what garbage collection removes after its grace period, a day. These are documents of unacknowledged jobs,
 * whose API was killed between a job's document and its record, and probes of the store by an API that was killed. Any
 * other leftover is orphaned.
 */
function withoutCollected(orphans: readonly string[]): string[] {
  const jobOf = (key: string) => /^jobs\/([^/]+)\//.exec(key)?.[1] ?? '';
  return orphans
    .filter((key) => !key.startsWith(`${PROBES}/`))
    .filter(
      (key) =>
        key !== specKey(jobOf(key)) || orphans.some((other) => other !== key && jobOf(other) === jobOf(key)),
    );
}
