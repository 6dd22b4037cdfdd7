import type { ResolvedJobSpec } from '../contracts/index.js';

/** Changes of learning rates or of the loss scale, with ascending `step`. */
export type Overrides = ResolvedJobSpec['train']['overrides'];

/** Returns the entries that applied to the first `step` steps. */
export function overridesBefore(overrides: Overrides, step: number): Overrides {
  return overrides.filter((entry) => entry.step < step);
}

/**
 * Fits the overrides of a job's document to the completed steps. A change may be requested after the ranks
 * have passed a step that it names. Overrides of completed steps therefore stay in the list, and differing
 * ones apply from the next step on. The result is again the list that the job was trained with, and the
 * function is idempotent.
 * @param wanted the list of the document
 * @param past the entries that applied to the completed steps
 * @param step number of completed steps
 */
export function fitOverrides(wanted: Overrides, past: Overrides, step: number): Overrides {
  const before = overridesBefore(wanted, step);
  const change: Settings = new Map();
  for (const name of new Set([...before, ...past].flatMap((entry) => [...settingsOf(entry).keys()]))) {
    const value = inForce(before, name);
    if (value !== inForce(past, name)) change.set(name, value);
  }
  const [next, ...later] = wanted.filter((entry) => entry.step >= step);
  const following =
    next?.step === step
      ? [entryOf(step, new Map([...change, ...settingsOf(next)]))]
      : [entryOf(step, change), ...(next ? [next] : [])];
  return [...past, ...following.filter((entry) => Object.keys(entry).length > 1), ...later];
}

/** Values of an entry by setting: `lr`, `loss_scale`, and the rate of each group of parameters. */
type Settings = Map<string, number | null>;
const GROUP = 'group_lr/';

function settingsOf({ step: _, group_lr = {}, ...plain }: Overrides[number]): Settings {
  const rates = Object.entries(group_lr).map(([match, rate]) => [`${GROUP}${match}`, rate] as const);
  return new Map([...Object.entries(plain), ...rates]);
}

function entryOf(step: number, settings: Settings): Overrides[number] {
  const isRate = ([name]: readonly [string, unknown]) => name.startsWith(GROUP);
  const plain = [...settings].filter((setting) => !isRate(setting));
  const rates = [...settings].filter(isRate).map(([name, rate]) => [name.slice(GROUP.length), rate] as const);
  return {
    step,
    ...Object.fromEntries(plain),
    ...(rates.length > 0 && { group_lr: Object.fromEntries(rates) }),
  };
}

/** Returns the value of the last entry that names the setting; null for the schedule or the loss scaler. */
function inForce(overrides: Overrides, name: string): number | null {
  return (
    overrides
      .map(settingsOf)
      .findLast((settings) => settings.has(name))
      ?.get(name) ?? null
  );
}
