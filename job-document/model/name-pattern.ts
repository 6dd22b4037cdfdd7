import { LIMITS } from './families/limits.js';
import type { ParamKind } from './params.js';

/** Positions in a pattern: a bit for each, in two words. */
type Positions = readonly [low: number, high: number];

const WORD_BITS = 31;
const WORD_MASK = 2 ** WORD_BITS - 1;
/**
 * Maximum length of a pattern without its stars, so that its positions fit; every parameter name is shorter.
 */
export const MAX_CHARACTERS = 2 * WORD_BITS - 1;
/** Names are ASCII. */
const NUM_CODES = 128;

/**
 * Pattern for whole names, matched against all names of a kind at once: `*` stands for any run of characters,
 * `?` for one, every other character for itself.
 *
 * A name is a head, a layer number, a middle, an expert number and a tail. It matches if some position of the
 * pattern is reached from the start by everything before the expert number, and the rest leads from this
 * position to the end. The first depends on the layer alone and the second on the expert alone, so that 256
 * walks forward and 256 walks backward decide 65,536 names.
 */
export class NamePattern {
  private readonly length: number;
  /** Positions of stars, which any character keeps. */
  private readonly stars: Positions;
  /** Positions of each character, by its code. */
  private readonly lows = new Int32Array(NUM_CODES);
  private readonly highs = new Int32Array(NUM_CODES);
  private readonly layersAfter = new Map<string, ReachedByLayers>();

  constructor(pattern: string) {
    const [positions, length] = positionsOf(pattern);
    const anywhere = positions.get('?') ?? NOWHERE;
    this.lows.fill(anywhere[0]);
    this.highs.fill(anywhere[1]);
    for (const [character, [low, high]] of positions) {
      const code = character.charCodeAt(0);
      this.lows[code] = anywhere[0] | low;
      this.highs[code] = anywhere[1] | high;
    }
    this.stars = positions.get('*') ?? NOWHERE;
    this.length = length;
  }

  /**
   * Returns, for each layer, a bit for each matching expert, or null if none matches. Layers with equal bits
   * share a row.
   */
  rowsOf({ name, layers, experts }: ParamKind): (Int32Array | null)[] {
    if (this.length > MAX_CHARACTERS) return [];
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

  /**
   * Returns the positions reached by a head and the layer numbers. @param layers null: the names have no
   * layer number
   */
  private layersBehind(head: string, layers: number | null): ReachedByLayers {
    const known = this.layersAfter.get(head);
    if (known !== undefined) return known;
    const from = this.walk(head, bit(0));
    const found = grouped(numbers(layers).map((number) => this.walk(number, from)));
    this.layersAfter.set(head, found);
    return found;
  }

  /** Returns the positions reached by a text. */
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

  /** Returns the positions from which a text leads to one of `to`. */
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
  /** Distinct sets: most patterns distinguish few layers. */
  classes: Positions[];
  /** Index of the set of each layer. */
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

/** Returns the numbers of layers or experts as in names; an empty text if names have none. */
function numbers(count: number | null): string[] {
  return count === null ? [''] : NUMBERS.slice(0, count);
}

/** Returns a bit for each expert that starts at one of the positions; null if none does. */
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

/**
 * Returns the positions of each character and of the end. A star has the position of the next other
 * character.
 */
function positionsOf(pattern: string): [positions: Map<string, Positions>, length: number] {
  const positions = new Map<string, Positions>();
  let at = 0;
  for (const character of pattern) {
    const [low, high] = positions.get(character) ?? NOWHERE;
    const [here, there] = bit(at);
    positions.set(character, [low | here, high | there]);
    if (character !== '*') at++;
  }
  return [positions, at];
}

const NOWHERE: Positions = [0, 0];

function bit(at: number): Positions {
  return at < WORD_BITS ? [2 ** at, 0] : [0, 2 ** (at - WORD_BITS)];
}
