/** What an objective reads: units of preferences, or prompts that are sampled. */
import type { Dataset, ResolvedJobSpec } from '../contracts/types.js';

type Train = ResolvedJobSpec['train'];
type Objective = NonNullable<Train['objective']>;

export type Reinforcement = Extract<Objective, { type: 'grpo' }>;
export type Preferences = Exclude<Objective, { type: 'grpo' }>;

/** Returns the settings of reinforcement learning; null for other jobs. */
export function reinforcementOf({ objective }: Pick<Train, 'objective'>): Reinforcement | null {
  return objective?.type === 'grpo' ? objective : null;
}

/** Returns the objective of preferences; null for other jobs. */
export function preferencesOf({ objective }: Pick<Train, 'objective'>): Preferences | null {
  return objective === undefined || objective.type === 'grpo' ? null : objective;
}

/** Returns whether the steps of a job come from a log of calls: of a client, or of its objective. */
export function takesCalls(train: {
  session?: object | undefined;
  objective?: { type: string } | undefined;
}): boolean {
  return train.session !== undefined || train.objective?.type === 'grpo';
}

/** A unit of preferences: a pair of a chosen and a rejected completion, or one completion with its label. */
export type Unit = 'pair' | 'labelled';

/** Returns the unit that batch sizes count; null for objectives whose batches have sequences. */
export function unitOf(train: Pick<Train, 'objective'>): Unit | null {
  const preferences = preferencesOf(train);
  if (preferences === null) return null;
  return preferences.type === 'kto' ? 'labelled' : 'pair';
}

/** Returns the number of units of a dataset that the objective can read. A pair is two labelled completions. */
export function unitsOf({ num_preferences, num_labelled }: Dataset, unit: Unit): number {
  return unit === 'pair' ? num_preferences : num_labelled + 2 * num_preferences;
}

/** Returns the number of sequences of a unit. */
export function sequencesOfUnit(train: Pick<Train, 'objective'>): 1 | 2 {
  return unitOf(train) === 'pair' ? 2 : 1;
}
