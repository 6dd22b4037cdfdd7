import { distance } from 'fastest-levenshtein';

/** Longer names are not compared: no known name is longer, and the comparison would be slow. */
const MAX_LENGTH = 100;

/** The most similar known name, or undefined when none is similar. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > MAX_LENGTH) return undefined;
  let best: string | undefined;
  // Up to a third of the letters may differ, but at least two: `lr_` is near `lr`, `foo` is near nothing.
  let bestDistance = Math.max(2, Math.ceil(name.length / 3)) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue;
    const next = distance(name.toLowerCase(), candidate.toLowerCase());
    // Names that differ in every letter are not similar.
    if (next < bestDistance && next < candidate.length) {
      best = candidate;
      bestDistance = next;
    }
  }
  return best;
}
