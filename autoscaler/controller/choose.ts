/** Choice of the machines to add for a number of ranks. */
import type { MachineType } from '../../platform/config/autoscale-pools.js';

/** Machine type and how many more machines of it are possible. */
export interface Supply {
  type: MachineType;
  machines: number;
}

const perSlot = ({ type }: Supply) => type.price_per_hour / type.slots;

/** Sorts by price per rank, then by size: large machines keep a job together. */
function byPrice(supplies: readonly Supply[]): Supply[] {
  return [...supplies].sort((a, b) => perSlot(a) - perSlot(b) || b.type.slots - a.type.slots);
}

/** Limits each type to the machines that the budget can pay, the cheapest ranks first. */
export function affordable(supplies: readonly Supply[], perHour: number): Supply[] {
  let left = perHour;
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
 * Chooses machines for `ranks` ranks by a simple greedy rule. Takes whole machines of the cheapest ranks. For
 * the remainder, takes either one more of them or, if cheaper, the machines that the same rule chooses from
 * the next types. No machine is superfluous. Returns all machines where they do not suffice, and none for
 * zero or negative ranks.
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
