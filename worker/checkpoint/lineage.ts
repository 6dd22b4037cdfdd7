import type { Checkpoint } from '../../contracts/index.js';
import { placeOf, type StoredSave } from './leftovers.js';

/**
 * Manifests that the job store does not know, and that are no later than the newest whole checkpoint that it knows: by epoch, and in
 * one epoch by step. One of an earlier epoch was written by an agent that had lost the job: no object store can refuse such a write, so it is
 * refused here, and a job has one line of checkpoints. One of the same epoch was given up, and its removal was cut off. A later one is
 * another matter: its agent died before it could tell.
 */
export function outsideLineage(saves: readonly StoredSave[], recorded: readonly Checkpoint[]): StoredSave[] {
  const known = new Set(recorded.map(({ prefix }) => prefix));
  const whole = recorded.filter(({ damaged }) => !damaged);
  const newest = whole.map(({ prefix }) => placeOf(prefix)).reduce(later, BEFORE_ALL);
  return saves.filter(
    ({ prefix, committed }) => committed && !known.has(prefix) && later(newest, placeOf(prefix)) === newest,
  );
}

const BEFORE_ALL = { epoch: 0, step: -1 };

type Place = ReturnType<typeof placeOf>;

/** The later of two; the first when they are equal. */
function later(a: Place, b: Place): Place {
  return b.epoch > a.epoch || (b.epoch === a.epoch && b.step > a.step) ? b : a;
}
