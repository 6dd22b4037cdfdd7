import type { ResolvedJobSpec } from '../contracts/index.js';

/** Changes of the learning rate or of the loss scale, with ascending `step`. */
export type Overrides = ResolvedJobSpec['train']['overrides'];
type Setting = 'lr' | 'loss_scale';

/** The entries that took part in the first `step` steps. */
export function overridesBefore(overrides: Overrides, step: number): Overrides {
  return overrides.filter((entry) => entry.step < step);
}

/**
 * Fits the overrides of a job's document to the steps that are done. A request to change them may come after the ranks have passed a
 * step that it names: what was in force in those steps stays in the list, and what differs from it counts from the next step on.
 * The list that comes out is again what the job was trained with, and applying the function twice changes nothing.
 * @param wanted the list of the document
 * @param past the entries that took part in the steps that are done
 * @param step how many these are
 */
export function fitOverrides(wanted: Overrides, past: Overrides, step: number): Overrides {
  const change: Overrides[number] = { step };
  for (const setting of ['lr', 'loss_scale'] as const) {
    const value = inForce(overridesBefore(wanted, step), setting);
    if (value !== inForce(past, setting)) change[setting] = value;
  }
  const [next, ...later] = wanted.filter((entry) => entry.step >= step);
  const following = next?.step === step ? [{ ...change, ...next }] : [change, ...(next ? [next] : [])];
  return [...past, ...following.filter((entry) => Object.keys(entry).length > 1), ...later];
}

/** What the last entry that names the setting says; null: the schedule or the loss scaler. */
function inForce(overrides: Overrides, setting: Setting): number | null {
  return overrides.findLast((entry) => entry[setting] !== undefined)?.[setting] ?? null;
}
