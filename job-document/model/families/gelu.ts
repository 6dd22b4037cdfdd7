/** Common part of the families with LayerNorm and GELU. */
import type { ConfigReader } from '../reader.js';
import { nearestMultiple } from './decoder.js';
import { LIMITS } from './limits.js';

export const GELU = {
  gelu_new: 'gelu_new',
  gelu_pytorch_tanh: 'gelu_new',
  gelu_fast: 'gelu_new',
  gelu: 'gelu',
} as const;

/** Reads the width of the model and the number of its heads, which have the same, even width. */
export function readEvenHeads(
  reader: ConfigReader,
  names: { hidden: string; heads: string; aliases?: readonly [hidden: string, heads: string] },
): { hidden: number; heads: number } {
  const [hiddenAlias, headsAlias] = names.aliases ?? [];
  const named = (alias: string | undefined) => (alias === undefined ? {} : { aliases: [alias] });
  const hidden = reader.integer(names.hidden, { ...LIMITS.hidden, ...named(hiddenAlias) });
  const heads = reader.integer(names.heads, { ...LIMITS.heads, ...named(headsAlias) });
  if (hidden % (2 * heads) === 0 || !reader.isSound(names.hidden, names.heads)) return { hidden, heads };
  const nearest = nearestMultiple(hidden, 2 * heads);
  reader.fail(
    names.hidden,
    'hidden_size_not_divisible',
    `${names.hidden} ${hidden} is not a multiple of twice ${names.heads} ${heads}: heads have the same, even width`,
    String(nearest),
  );
  return { hidden: nearest, heads };
}
