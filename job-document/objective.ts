/** Units of data that an objective reads: pairs of completions, or labelled ones. */
import type { Dataset, ResolvedJobSpec } from '../contracts/types.js';

type Train = ResolvedJobSpec['train'];

/** A unit of preferences: a pair of a chosen and a rejected completion, or one completion with its label. */
export type Unit = 'pair' | 'labelled';

/** Returns the unit that batch sizes count; null for `sft`, whose batches have sequences. */
export function unitOf({ objective }: Pick<Train, 'objective'>): Unit | null {
  if (objective === undefined) return null;
  return objective.type === 'kto' ? 'labelled' : 'pair';
}

/** Returns the number of units of a dataset that the objective can read. A pair is two labelled completions. */
export function unitsOf({ num_preferences, num_labelled }: Dataset, unit: Unit): number {
  return unit === 'pair' ? num_preferences : num_labelled + 2 * num_preferences;
}

/** Returns the number of sequences of a unit. */
export function sequencesOfUnit(train: Pick<Train, 'objective'>): 1 | 2 {
  return unitOf(train) === 'pair' ? 2 : 1;
}
