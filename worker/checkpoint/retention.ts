import type { Checkpoint } from '../../contracts/index.js';
import { checkpointsPrefix } from '../../platform/checkpoint/layout.js';
import type { AttemptContext } from '../agent/context.js';
import { codeOf } from '../errors.js';
import { listSaves, removeSave } from './leftovers.js';

const PAGE = 100;

/** Checkpoints that the retention rule gives up: all but the newest `keep_last`, and never a pinned one. */
export function superseded(checkpoints: readonly Checkpoint[], keep_last: number): Checkpoint[] {
  return [...checkpoints]
    .sort((a, b) => b.step - a.step || Date.parse(b.committed_at) - Date.parse(a.committed_at))
    .slice(keep_last)
    .filter(({ pinned }) => !pinned);
}

/**
 * Removes what the rule gives up; called only after a newer checkpoint was committed. The record goes first, since one without its
 * objects would promise what is not there. Objects without a record, from a retention that was cut off, go with the next one.
 */
export async function applyRetention({ deps, job, lease }: AttemptContext): Promise<void> {
  const kept = new Map(
    (await allCheckpoints({ deps, job })).map((checkpoint) => [checkpoint.id, checkpoint]),
  );
  for (const { id } of superseded([...kept.values()], job.spec.checkpoint.keep_last)) {
    try {
      await lease.call((jobId, epoch) => deps.store.removeCheckpoint(jobId, epoch, id));
      kept.delete(id);
    } catch (error) {
      // Somebody pinned it since it was listed.
      if (codeOf(error) !== 'checkpoint_pinned') throw error;
    }
  }
  const prefixes = new Set([...kept.values()].map(({ prefix }) => prefix));
  for (const save of await listSaves(deps.objects, checkpointsPrefix(job.id))) {
    // A save without a manifest may still be on its way.
    if (save.committed && !prefixes.has(save.prefix)) await removeSave(deps.objects, save);
  }
}

async function allCheckpoints({ deps, job }: Pick<AttemptContext, 'deps' | 'job'>): Promise<Checkpoint[]> {
  const all: Checkpoint[] = [];
  for (let after: string | undefined; ; ) {
    const page = await deps.store.listCheckpoints(job.id, { limit: PAGE, ...(after && { after }) });
    all.push(...page.data);
    if (page.next_cursor === null) return all;
    after = page.next_cursor;
  }
}
