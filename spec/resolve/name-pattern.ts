import { LIMITS } from '../model/families/limits.js';
import type { ParamKind } from '../model/params.js';

/** Positions in a pattern: a bit for each, in two words. */
type Positions = readonly [low: number, high: number];

const WORD_BITS = 31;
const WORD_MASK = 2 ** WORD_BITS - 1;
/** The longest pattern whose positions fit, without its stars; no name of a parameter is as long. */
export const MOST_CHARACTERS = 2 * WORD_BITS - 1;
/** Names are ASCII. */
const NUM_CODES = 128;

/**
 * A pattern for whole names that is held against all names of a kind at once: `*` stands for any run of characters, `?` for one, every
 * other character for itself.
 *
 * A name is a head, the number of a layer, a middle, the number of an expert and a tail. It matches when a position of the pattern is
 * reached by everything before the number of the expert, and everything from there on leads from this position to the end. The first
 * depends on the layer alone and the second on the expert alone, so that 256 walks forward and 256 walks backward decide 65,536 names.
 */
export class NamePattern {
  private readonly length: number;
  /** Where a star stands: the position is kept by any character. */
  private readonly stars: Positions;
  /** By the code of a character, where it may stand. */
  private readonly lows = new Int32Array(NUM_CODES);
  private readonly highs = new Int32Array(NUM_CODES);
  private readonly layersAfter = new Map<string, ReachedByLayers>();

  constructor(pattern: string) {
    const [places, length] = placesOf(pattern);
    const anywhere = places.get('?') ?? NOWHERE;
    this.lows.fill(anywhere[0]);
    this.highs.fill(anywhere[1]);
    for (const [character, [low, high]] of places) {
      const code = character.charCodeAt(0);
      this.lows[code] = anywhere[0] | low;
      this.highs[code] = anywhere[1] | high;
    }
    this.stars = places.get('*') ?? NOWHERE;
    this.length = length;
  }

  /** For each layer a bit for each expert whose parameter matches, or null where none does. Layers with the same ones share a row. */
  rowsOf({ name, layers, experts }: ParamKind): (Int32Array | null)[] {
    if (this.length > MOST_CHARACTERS) return [];
    const [head = '', ...rest] = name.split('{}');
    const toEnd = this.walkBack(rest.at(-1) ?? '', bit(this.length));
    if (isNone(toEnd)) return [];
    const { classes, classOf } = this.layersBehind(head, rest.length > 0 ? layers : null);
    const middle = rest.length > 1 ? (rest[0] as string) : '';
    const behindMiddle = classes.map((reached) => this.walk(middle, reached));
    if (behindMiddle.every(isNone)) return [];
    const fromExpert = numbers(experts).map((number) => this.walkBack(number, toEnd));
    const rows = behindMiddle.map((reached) => meeting(reached, fromExpert));
    return classOf.map((one) => rows[one] ?? null);
  }

  /** The positions that a head and the number of a layer lead to. @param layers null: the names have no number of a layer */
  private layersBehind(head: string, layers: number | null): ReachedByLayers {
    const known = this.layersAfter.get(head);
    if (known !== undefined) return known;
    const from = this.walk(head, bit(0));
    const found = grouped(numbers(layers).map((number) => this.walk(number, from)));
    this.layersAfter.set(head, found);
    return found;
  }

  /** The positions that a text leads to. */
  private walk(text: string, from: Positions): Positions {
    let [low, high] = from;
    const [keptLow, keptHigh] = this.stars;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      const [goesLow, goesHigh] = [low & (this.lows[code] as number), high & (this.highs[code] as number)];
      low = ((goesLow << 1) & WORD_MASK) | (low & keptLow);
      high = (((goesHigh << 1) | (goesLow >>> (WORD_BITS - 1))) & WORD_MASK) | (high & keptHigh);
    }
    return [low, high];
  }

  /** The positions from which a text leads to one of `to`. */
  private walkBack(text: string, to: Positions): Positions {
    let [low, high] = to;
    const [keptLow, keptHigh] = this.stars;
    for (let i = text.length - 1; i >= 0; i--) {
      const code = text.charCodeAt(i);
      const cameLow = ((low >>> 1) | ((high & 1) << (WORD_BITS - 1))) & (this.lows[code] as number);
      const cameHigh = (high >>> 1) & (this.highs[code] as number);
      low = cameLow | (low & keptLow);
      high = cameHigh | (high & keptHigh);
    }
    return [low, high];
  }
}

interface ReachedByLayers {
  /** The distinct ones: most patterns tell few layers apart. */
  classes: Positions[];
  /** Of each layer, which one. */
  classOf: number[];
}

function grouped(reached: readonly Positions[]): ReachedByLayers {
  const classes: Positions[] = [];
  const found = new Map<string, number>();
  const classOf = reached.map((positions) => {
    const key = positions.join();
    const known = found.get(key) ?? classes.push(positions) - 1;
    found.set(key, known);
    return known;
  });
  return { classes, classOf };
}

const NUMBERS = Array.from({ length: Math.max(LIMITS.layers.max, LIMITS.experts.max) }, (_, number) =>
  String(number),
);

/** The numbers of so many layers or experts as they stand in names; nothing where names have none. */
function numbers(count: number | null): string[] {
  return count === null ? [''] : NUMBERS.slice(0, count);
}

/** A bit for each expert that begins where one of the positions is; null when none does. */
function meeting([low, high]: Positions, fromExpert: readonly Positions[]): Int32Array | null {
  let row: Int32Array | null = null;
  for (const [expert, [fromLow, fromHigh]] of fromExpert.entries())
    if (((low & fromLow) | (high & fromHigh)) !== 0) {
      row ??= new Int32Array(Math.ceil(fromExpert.length / 32));
      row[expert >> 5] = (row[expert >> 5] as number) | (1 << (expert & 31));
    }
  return row;
}

function isNone([low, high]: Positions): boolean {
  return (low | high) === 0;
}

/** Where each character of a pattern stands, and where the pattern ends. A star stands where the next other character does. */
function placesOf(pattern: string): [places: Map<string, Positions>, length: number] {
  const places = new Map<string, Positions>();
  let at = 0;
  for (const character of pattern) {
    const [low, high] = places.get(character) ?? NOWHERE;
    const [here, there] = bit(at);
    places.set(character, [low | here, high | there]);
    if (character !== '*') at++;
  }
  return [places, at];
}

const NOWHERE: Positions = [0, 0];

function bit(at: number): Positions {
  return at < WORD_BITS ? [2 ** at, 0] : [0, 2 ** (at - WORD_BITS)];
}
