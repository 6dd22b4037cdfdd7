import type { Checkpoint, Job, ResolvedJobSpec } from '../../contracts/index.js';
import { checkpointsPrefix } from '../../platform/checkpoint/layout.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import type { JobStorePort } from '../../state/index.js';
import { codeOf } from '../common/errors.js';
import type { Lease } from '../lease/lease.js';
import { listSaves, mayRemove, removeSave, type StoredSave } from './leftovers.js';
import { outsideLineage } from './lineage.js';

const PAGE = 100;

/** Of an attempt what the reading of its checkpoints' records needs. */
interface RecordsContext {
  deps: { store: Pick<JobStorePort, 'listCheckpoints'> };
  job: Pick<Job, 'id'>;
}

/** Of an attempt what retention needs. */
export interface RetentionContext extends RecordsContext {
  deps: {
    store: Pick<JobStorePort, 'listCheckpoints' | 'removeCheckpoint'>;
    objects: ObjectStore;
  };
  job: { id: string; spec: { checkpoint: RetentionRule } };
  lease: Pick<Lease, 'call' | 'execution'>;
}

/** Which checkpoints a job keeps. */
export type RetentionRule = Pick<ResolvedJobSpec['checkpoint'], 'keep_last' | 'keep_every'>;

/**
 * Checkpoints that the rule gives up: all but the newest `keep_last`, those of every `keep_every`th step, and pinned ones. Damaged ones
 * take no place of whole ones, and go as soon as there is one.
 */
export function superseded(
  checkpoints: readonly Checkpoint[],
  { keep_last, keep_every }: RetentionRule,
): Checkpoint[] {
  const isKept = (step: number) => keep_every !== undefined && step % keep_every === 0;
  const whole = checkpoints
    .filter(({ damaged }) => !damaged)
    .sort((a, b) => b.step - a.step || Date.parse(b.committed_at) - Date.parse(a.committed_at));
  const older = whole.slice(keep_last).filter(({ step }) => !isKept(step));
  const damaged = whole.length > 0 ? checkpoints.filter((checkpoint) => checkpoint.damaged) : [];
  return [...older, ...damaged].filter(({ pinned }) => !pinned);
}

/**
 * Removes what the rule gives up. The record goes first, since one without its objects would promise what is not there. Objects
 * without a record, from a retention that was cut off, go with the next one, and so does what others than this generation left
 * unfinished. May be cut off and repeated.
 * @param generation name of its last save's directory; null when no rank runs
 */
export async function applyRetention(
  { deps, job, lease }: RetentionContext,
  generation: string | null,
): Promise<void> {
  const recorded = await allCheckpoints({ deps, job });
  const given_up = superseded(recorded, job.spec.checkpoint);
  // Of a damaged one the objects go first: its manifest may be later than every record that is left, and would count again.
  const damaged = new Set(given_up.filter((checkpoint) => checkpoint.damaged).map(({ prefix }) => prefix));
  if (damaged.size > 0)
    await removeSaves({ deps, job, lease }, (saves) => saves.filter((save) => damaged.has(save.prefix)));
  const kept = new Set(recorded);
  const forgotten = new Set<string>();
  for (const checkpoint of given_up) {
    try {
      await lease.call((jobId, execution) => deps.store.removeCheckpoint(jobId, execution, checkpoint.id));
      kept.delete(checkpoint);
      forgotten.add(checkpoint.prefix);
    } catch (error) {
      // Somebody pinned it since it was listed, or reads it now: then it goes after a later save.
      if (!['checkpoint_pinned', 'checkpoint_held'].includes(codeOf(error) ?? '')) throw error;
    }
  }
  const choose = (saves: readonly StoredSave[]) => [
    ...outsideLineage(saves, [...kept]),
    // A save of this generation without a manifest may still be on its way; no other one writes with any right.
    ...saves.filter(
      ({ committed, prefix }) => !committed && (generation === null || !isOf(prefix, generation)),
    ),
  ];
  // Whoever wrote what it has just forgotten: the job store knew it as a checkpoint of this job's line.
  await removeSaves({ deps, job, lease }, choose, forgotten);
}

async function removeSaves(
  { deps, job, lease }: RetentionContext,
  choose: (saves: readonly StoredSave[]) => StoredSave[],
  forgotten: ReadonlySet<string> = new Set(),
): Promise<void> {
  const saves = choose(await listSaves(deps.objects, checkpointsPrefix(job.id)));
  for (const save of saves)
    if (forgotten.has(save.prefix) || mayRemove(save.prefix, lease.execution))
      await removeSave(deps.objects, save);
}

/** Everything that the job store knows of the job's checkpoints. */
export async function allCheckpoints({ deps, job }: RecordsContext): Promise<Checkpoint[]> {
  const all: Checkpoint[] = [];
  for (let after: string | undefined; ; ) {
    const page = await deps.store.listCheckpoints(job.id, { limit: PAGE, ...(after && { after }) });
    all.push(...page.data);
    if (page.next_cursor === null) return all;
    after = page.next_cursor;
  }
}

/** Returns true when one generation wrote both directories: their names differ in the step alone. */
function isOf(prefix: string, generation: string): boolean {
  return prefix.endsWith(generation.slice(generation.indexOf('-')));
}
