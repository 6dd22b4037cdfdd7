import { isBefore } from '../../../contracts/execution.js';
import type { Checkpoint } from '../../../contracts/index.js';
import type { SaveOrder } from '../../../formats/checkpoint/layout.js';
import { type StoredSave, saveIdOf } from './leftovers.js';

/**
 * Returns the manifests that are not in the job store and not later than every undamaged checkpoint in it, by epoch and
 * within one execution by step. They are outside the job's lineage:
 * - an earlier epoch, or the same epoch with another token: its agent had lost the job, and no object store can refuse
 *   such a write
 * - the same execution: the checkpoint was removed by a retention that was interrupted
 *
 * A later manifest belongs to the lineage: its agent died before it could record it.
 */
export function outsideLineage(saves: readonly StoredSave[], recorded: readonly Checkpoint[]): StoredSave[] {
  const known = new Set(recorded.map(({ prefix }) => prefix));
  const whole = recorded.filter(({ damaged }) => !damaged).map(({ prefix }) => saveIdOf(prefix));
  return saves.filter(({ prefix, committed }) => {
    if (!committed || known.has(prefix)) return false;
    const order = saveIdOf(prefix);
    return !whole.every((other) => isLater(order, other));
  });
}

function isLater(save: SaveOrder, than: SaveOrder): boolean {
  return (
    isBefore(than.execution, save.execution) || (save.execution === than.execution && save.step > than.step)
  );
}
