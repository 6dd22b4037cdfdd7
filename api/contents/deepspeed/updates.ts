/**
 * Update count of an optimizer's state. There is one count because Adam uses one bias correction for all parameters.
 */
import { scalarOf, type TorchFile } from '../../../formats/torch-file/read.js';
import type { TorchValue } from '../../../formats/torch-file/values.js';
import { invalidState } from './runs.js';

/** @throws ZerofleetError `optimizer_state_invalid` */
export function countOf(file: TorchFile, value: TorchValue | undefined, name: string): number {
  const count = scalarOf(file, value);
  if (count === null || !Number.isSafeInteger(count) || count < 0)
    throw invalidState(`${name} has no step count: ${count ?? 'no number'}`);
  return count;
}

/**
 * Step counts of an optimizer's `state_dict`. The per-state counts are authoritative; `step` of a group is older, and
 * DeepSpeed's fused optimizers leave an unused 0 there.
 */
export function countsIn(file: TorchFile, optimizer: TorchValue | undefined, name: string): number[] {
  const ofStates = stepsOf(itemsOf(entryOf(optimizer, 'state') ?? optimizer));
  const found = ofStates.length > 0 ? ofStates : stepsOf(itemsOf(entryOf(optimizer, 'param_groups')));
  return found.map((step) => countOf(file, step, name));
}

/** @throws ZerofleetError `optimizer_state_invalid` */
export function oneCount(counts: readonly number[]): number {
  const different = new Set(counts);
  const [count] = different;
  if (count === undefined)
    throw invalidState(
      'the checkpoint does not say how many updates its optimizer has made (step.pt, or step in the state of the optimizer)',
    );
  if (different.size === 1) return count;
  const list = [...different].slice(0, 5).join(', ');
  throw invalidState(`its parameters have seen different numbers of updates: ${list}`);
}

export function entryOf(value: TorchValue | undefined, key: string | number): TorchValue | undefined {
  return value instanceof Map ? value.get(key) : undefined;
}

/** Entries of a list, or of a dict with numeric keys. */
export function itemsOf(value: TorchValue | undefined): TorchValue[] {
  if (Array.isArray(value)) return value;
  return value instanceof Map ? [...value.values()] : [];
}

function stepsOf(items: readonly TorchValue[]): TorchValue[] {
  return items.flatMap((item) => entryOf(item, 'step') ?? []);
}
