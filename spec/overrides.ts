import type { ResolvedJobSpec } from '../contracts/index.js';

/** Changes of the learning rate or of the loss scale, with ascending `step`. */
export type Overrides = ResolvedJobSpec['train']['overrides'];
type Setting = 'lr' | 'loss_scale';

/** Returns the entries that applied to the first `step` steps. */
export function overridesBefore(overrides: Overrides, step: number): Overrides {
  return overrides.filter((entry) => entry.step < step);
}

/**
 * Fits the overrides of a job's document to the completed steps. A change may be requested after the ranks
 * have passed a step that it names: overrides of completed steps stay in the list, and differing ones apply
 * from the next step on. The result is again the list that the job was trained with, and the function is
 * idempotent.
 * @param wanted the list of the document
 * @param past the entries that applied to the completed steps
 * @param step number of completed steps
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

/** Returns the value of the last entry that names the setting; null for the schedule or the loss scaler. */
function inForce(overrides: Overrides, setting: Setting): number | null {
  return overrides.findLast((entry) => entry[setting] !== undefined)?.[setting] ?? null;
}
