/** Which machines to add for some ranks. */
import type { MachineType } from '../../platform/config/autoscale-pools.js';

/** A type, and how many more of it there may be. */
export interface Supply {
  type: MachineType;
  machines: number;
}

const perSlot = ({ type }: Supply) => type.price_per_hour / type.slots;

/** The cheapest ranks first; of equal ones the largest machines, which keep a job together. */
function byPrice(supplies: readonly Supply[]): Supply[] {
  return [...supplies].sort((a, b) => perSlot(a) - perSlot(b) || b.type.slots - a.type.slots);
}

/** How many of each type a budget can pay, the cheapest ranks first. */
export function affordable(supplies: readonly Supply[], per_hour: number): Supply[] {
  let left = per_hour;
  return byPrice(supplies).map(({ type, machines }) => {
    const price = type.price_per_hour;
    const paid = price === 0 ? machines : Math.max(0, Math.min(machines, Math.floor(left / price)));
    left -= paid * price;
    return { type, machines: paid };
  });
}

export const ranksOf = (supplies: readonly Supply[]): number =>
  supplies.reduce((sum, { type, machines }) => sum + type.slots * machines, 0);

/**
 * Machines for `ranks` ranks, as cheap as can be had simply: of the cheapest ranks as many whole machines as are filled, and then
 * either one more of them or, if that costs less, the same with the next type for the rest. None is superfluous. Where they don't
 * suffice it is all of them; for no ranks, or fewer, it is none.
 */
export function chooseMachines(ranks: number, supplies: readonly Supply[]): Map<string, number> {
  const order = byPrice(supplies);
  const chosen = fill(ranks, order);
  let surplus = -missingAfter(ranks, chosen);
  for (const part of chosen) {
    const superfluous = Math.max(0, Math.min(part.machines, Math.floor(surplus / part.type.slots)));
    part.machines -= superfluous;
    surplus -= superfluous * part.type.slots;
  }
  return new Map(
    chosen.filter(({ machines }) => machines > 0).map(({ type, machines }) => [type.name, machines]),
  );
}

const missingAfter = (ranks: number, chosen: readonly Supply[]) => ranks - ranksOf(chosen);

const costOf = (chosen: readonly Supply[]) =>
  chosen.reduce((sum, { type, machines }) => sum + type.price_per_hour * machines, 0);

function fill(ranks: number, [first, ...others]: readonly Supply[]): Supply[] {
  if (!first || ranks <= 0) return [];
  const { type, machines } = first;
  const whole = { type, machines: Math.min(machines, Math.floor(ranks / type.slots)) };
  const mixed = [...fill(ranks - ranksOf([whole]), others), whole];
  const alone = [{ type, machines: Math.min(machines, Math.ceil(ranks / type.slots)) }];
  if (missingAfter(ranks, alone) > 0) return mixed;
  return missingAfter(ranks, mixed) > 0 || costOf(alone) <= costOf(mixed) ? alone : mixed;
}
