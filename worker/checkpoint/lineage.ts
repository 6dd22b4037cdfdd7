import type { Checkpoint } from '../../contracts/index.js';
import { epochOf, type StoredSave } from './leftovers.js';

/**
 * Manifests that an agent wrote after it had lost the job: the job store never heard of them, and it knows checkpoints of a later
 * epoch. No object store can refuse such a write, so it is refused here: a job has one line of checkpoints. One of the latest
 * epoch is another matter: its agent died before it could tell.
 */
export function outsideLineage(saves: readonly StoredSave[], recorded: readonly Checkpoint[]): StoredSave[] {
  const known = new Set(recorded.map(({ prefix }) => prefix));
  const latest = Math.max(...recorded.map(({ prefix }) => epochOf(prefix) ?? 0), 0);
  return saves.filter(
    ({ prefix, committed }) => committed && !known.has(prefix) && (epochOf(prefix) ?? 0) < latest,
  );
}
