import { figureOf, gainOf } from '../../../contracts/evaluation-metrics.js';
import type { Checkpoint, Job, ResolvedJobSpec } from '../../../contracts/index.js';
import { checkpointsPrefix } from '../../../formats/checkpoint/layout.js';
import type { ObjectStore } from '../../../platform/object-store/common/port.js';
import type { JobStore } from '../../../state/index.js';
import { codeOf } from '../../shared/errors.js';
import type { Lease } from '../lease/lease.js';
import { listSaves, mayRemove, removeSave, type StoredSave } from './leftovers.js';
import { outsideLineage } from './lineage.js';

const PAGE = 100;

/** Part of an attempt that reads the checkpoint records. */
interface RecordsContext {
  deps: { store: Pick<JobStore, 'listCheckpoints'> };
  job: Pick<Job, 'id'>;
}

/** Part of an attempt that retention uses. */
export interface RetentionContext extends RecordsContext {
  deps: {
    store: Pick<JobStore, 'listCheckpoints' | 'removeCheckpoint'>;
    objects: ObjectStore;
  };
  job: { id: string; spec: { checkpoint: RetentionRule } };
  lease: Pick<Lease, 'call' | 'execution'>;
}

/** Rule for the checkpoints that a job keeps. */
type RetentionRule = Pick<ResolvedJobSpec['checkpoint'], 'keep' | 'keep_every'>;

/**
 * Returns the checkpoints that the rule removes: all but the newest `keep.last`, the `keep.best` with the best figures,
 * the best one of early stopping, every `keep_every`th step and pinned ones. Damaged ones do not count, and are removed
 * as soon as there is an undamaged one.
 */
export function superseded(
  checkpoints: readonly Checkpoint[],
  { keep, keep_every }: RetentionRule,
): Checkpoint[] {
  const whole = checkpoints
    .filter(({ damaged }) => !damaged)
    .sort((a, b) => b.step - a.step || Date.parse(b.committed_at) - Date.parse(a.committed_at));
  const bestStep = whole[0]?.best_step;
  const isKept = (step: number) => step === bestStep || (keep_every !== undefined && step % keep_every === 0);
  const kept = new Set([
    ...whole.slice(0, keep.last),
    ...bestFirst(whole, keep.best_metric).slice(0, keep.best),
  ]);
  const older = whole.filter((checkpoint) => !kept.has(checkpoint) && !isKept(checkpoint.step));
  const damaged = whole.length > 0 ? checkpoints.filter((checkpoint) => checkpoint.damaged) : [];
  return [...older, ...damaged].filter(({ pinned }) => !pinned);
}

/** Returns the checkpoints that have the metric, by its value; the earlier step comes first among equal ones. */
function bestFirst(checkpoints: readonly Checkpoint[], metric = ''): Checkpoint[] {
  const measured = checkpoints.flatMap((checkpoint) => {
    const figure = figureOf(checkpoint.eval_losses, metric);
    return figure == null ? [] : [{ checkpoint, figure }];
  });
  return measured
    .sort((a, b) => gainOf(metric, b.figure, a.figure) || a.checkpoint.step - b.checkpoint.step)
    .map(({ checkpoint }) => checkpoint);
}

/**
 * Removes superseded checkpoints. The record is removed first, because a record without objects would promise a missing
 * checkpoint. Objects without a record, from an interrupted retention, are removed by the next one, and so are
 * unfinished saves of other generations. May be interrupted and repeated.
 * @param generation name of the directory of the generation's last save; null when no rank runs
 */
export async function applyRetention(
  { deps, job, lease }: RetentionContext,
  generation: string | null,
): Promise<void> {
  const recorded = await allCheckpoints({ deps, job });
  const removable = superseded(recorded, job.spec.checkpoint);
  // The objects of a damaged checkpoint are removed first: its manifest may be later than every record that is left,
  // and would join the lineage again.
  const damaged = new Set(removable.filter((checkpoint) => checkpoint.damaged).map(({ prefix }) => prefix));
  if (damaged.size > 0)
    await removeSaves({ deps, job, lease }, (saves) => saves.filter((save) => damaged.has(save.prefix)));
  const kept = new Set(recorded);
  const removed = new Set<string>();
  for (const checkpoint of removable) {
    try {
      await lease.call((jobId, execution) => deps.store.removeCheckpoint(jobId, execution, checkpoint.id));
      kept.delete(checkpoint);
      removed.add(checkpoint.prefix);
    } catch (error) {
      // It was pinned or held since it was listed; a later retention removes it.
      if (!['checkpoint_pinned', 'checkpoint_held'].includes(codeOf(error) ?? '')) throw error;
    }
  }
  const choose = (saves: readonly StoredSave[]) => [
    ...outsideLineage(saves, [...kept]),
    // A save of this generation without a manifest may be in progress. No other generation may write.
    ...saves.filter(
      ({ committed, prefix }) => !committed && (generation === null || !isOf(prefix, generation)),
    ),
  ];
  // Objects of records removed above go whatever worker wrote them: they were part of this job's lineage.
  await removeSaves({ deps, job, lease }, choose, removed);
}

async function removeSaves(
  { deps, job, lease }: RetentionContext,
  choose: (saves: readonly StoredSave[]) => StoredSave[],
  removed: ReadonlySet<string> = new Set(),
): Promise<void> {
  const saves = choose(await listSaves(deps.objects, checkpointsPrefix(job.id)));
  for (const save of saves)
    if (removed.has(save.prefix) || mayRemove(save.prefix, lease.execution))
      await removeSave(deps.objects, save);
}

/** Returns all checkpoint records of the job. */
export async function allCheckpoints({ deps, job }: RecordsContext): Promise<Checkpoint[]> {
  const all: Checkpoint[] = [];
  for (let after: string | undefined; ; ) {
    const page = await deps.store.listCheckpoints(job.id, { limit: PAGE, ...(after && { after }) });
    all.push(...page.data);
    if (page.next_cursor === null) return all;
    after = page.next_cursor;
  }
}

/** Returns true when one generation wrote both directories: their names differ only in the step. */
function isOf(prefix: string, generation: string): boolean {
  return prefix.endsWith(generation.slice(generation.indexOf('-')));
}
