import { isBefore } from '../../contracts/execution.js';
import type { Checkpoint } from '../../contracts/index.js';
import { placeOf, type SavePlace, type StoredSave } from './leftovers.js';

/**
 * Manifests that the job store does not know, and that are not later than every whole checkpoint that it knows: by epoch, and in
 * one execution by step. One of an earlier epoch was written by an agent that had lost the job: no object store can refuse such a write, so it is
 * refused here, and a job has one line of checkpoints. So was one of the same epoch and another token. One of the same execution was given
 * up, and its removal was cut off. A later one is another matter: its agent died before it could tell.
 */
export function outsideLineage(saves: readonly StoredSave[], recorded: readonly Checkpoint[]): StoredSave[] {
  const known = new Set(recorded.map(({ prefix }) => prefix));
  const whole = recorded.filter(({ damaged }) => !damaged).map(({ prefix }) => placeOf(prefix));
  return saves.filter(({ prefix, committed }) => {
    if (!committed || known.has(prefix)) return false;
    const place = placeOf(prefix);
    return !whole.every((other) => isLater(place, other));
  });
}

function isLater(save: SavePlace, than: SavePlace): boolean {
  return (
    isBefore(than.execution, save.execution) || (save.execution === than.execution && save.step > than.step)
  );
}
