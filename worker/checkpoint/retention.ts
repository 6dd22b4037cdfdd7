import type { Checkpoint, ResolvedJobSpec } from '../../contracts/index.js';
import { checkpointsPrefix } from '../../platform/checkpoint/layout.js';
import type { AttemptContext } from '../agent/context.js';
import { codeOf } from '../errors.js';
import { listSaves, mayRemove, removeSave } from './leftovers.js';
import { outsideLineage } from './lineage.js';

const PAGE = 100;

/** Of an attempt what the reading of its checkpoints' records needs. */
interface RecordsContext {
  deps: { store: Pick<AttemptContext['deps']['store'], 'listCheckpoints'> };
  job: Pick<AttemptContext['job'], 'id'>;
}

/** Of an attempt what retention needs. */
export interface RetentionContext extends RecordsContext {
  deps: {
    store: Pick<AttemptContext['deps']['store'], 'listCheckpoints' | 'removeCheckpoint'>;
    objects: AttemptContext['deps']['objects'];
  };
  job: { id: string; spec: { checkpoint: RetentionRule } };
  lease: Pick<AttemptContext['lease'], 'call' | 'epoch'>;
}

/** Which checkpoints a job keeps. */
export type RetentionRule = Pick<ResolvedJobSpec['checkpoint'], 'keep_last' | 'keep_every'>;

/** Checkpoints that the rule gives up: all but the newest `keep_last`, those of every `keep_every`th step, and pinned ones. */
export function superseded(
  checkpoints: readonly Checkpoint[],
  { keep_last, keep_every }: RetentionRule,
): Checkpoint[] {
  const isKept = (step: number) => keep_every !== undefined && step % keep_every === 0;
  return [...checkpoints]
    .sort((a, b) => b.step - a.step || Date.parse(b.committed_at) - Date.parse(a.committed_at))
    .slice(keep_last)
    .filter(({ pinned, step }) => !pinned && !isKept(step));
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
  const kept = new Map(
    (await allCheckpoints({ deps, job })).map((checkpoint) => [checkpoint.id, checkpoint]),
  );
  for (const { id } of superseded([...kept.values()], job.spec.checkpoint)) {
    try {
      await lease.call((jobId, epoch) => deps.store.removeCheckpoint(jobId, epoch, id));
      kept.delete(id);
    } catch (error) {
      // Somebody pinned it since it was listed, or reads it now: then it goes after a later save.
      if (!['checkpoint_pinned', 'checkpoint_held'].includes(codeOf(error) ?? '')) throw error;
    }
  }
  const saves = await listSaves(deps.objects, checkpointsPrefix(job.id));
  // A save of this generation without a manifest may still be on its way; no other one writes with any right.
  const unfinished = saves.filter(
    ({ committed, prefix }) => !committed && (generation === null || !isOf(prefix, generation)),
  );
  for (const save of [...outsideLineage(saves, [...kept.values()]), ...unfinished])
    if (mayRemove(save.prefix, lease.epoch)) await removeSave(deps.objects, save);
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
