import { distance } from 'fastest-levenshtein';

/** Names that were meant are not longer; comparing longer ones would take long. */
const MAX_LENGTH = 100;

/** The known name that was probably meant, or undefined when none is near. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > MAX_LENGTH) return undefined;
  let best: string | undefined;
  // Up to a third of the letters may differ, but at least two: `lr_` is near `lr`, `foo` is near nothing.
  let bestDistance = Math.max(2, Math.ceil(name.length / 3)) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue;
    const next = distance(name.toLowerCase(), candidate.toLowerCase());
    // Replacing every letter is not resemblance.
    if (next < bestDistance && next < candidate.length) {
      best = candidate;
      bestDistance = next;
    }
  }
  return best;
}
