import type { Grammar } from './grammar.js';

/** State of a text that the grammar does not have. */
export const DEAD = -1;
const UNKNOWN = -2;
/** Readings of a text that are followed at once. Further ones are left out: those of later choices. */
const MAX_READINGS = 512;
/** Numbers of states and stacks from which a matcher is to be replaced. The table of a state has 1 KB. */
const MAX_STATES = 4096;
const MAX_STACKS = 65_536;
/** More than the states of an automaton: a reading and a stack are known by one number. */
const STATES = 2 ** 24;

/** States in which unfinished calls go on, the innermost one first. */
interface Stack {
  to: number;
  below: Stack | null;
  /** Unique among the stacks of a matcher. */
  id: number;
}

interface Reading {
  state: number;
  stack: Stack | null;
}

/** All readings of a text. It can be moved to another matcher of the grammar. */
export type Position = readonly Reading[];

/**
 * Follows texts through a grammar, byte by byte. A state is a position with a number; it is a function of the text.
 * States and their edges are computed when they are first needed.
 */
export class Matcher {
  private readonly tables: Int32Array[] = [];
  private readonly positions: Position[] = [];
  private readonly numbers = new Map<string, number>();
  private readonly stacks = new Map<number, Stack>();
  private readonly own = new Set<Stack>();

  constructor(private readonly grammar: Grammar) {}

  /** True if a new matcher should take over, which needs less memory. */
  get isFull(): boolean {
    return this.tables.length >= MAX_STATES || this.stacks.size >= MAX_STACKS;
  }

  /** The position before the text. */
  get start(): Position {
    return [{ state: this.grammar.text.start, stack: null }];
  }

  stateOf(position: Position): number {
    return this.numberOf(
      position.map(({ state, stack }) => ({ state, stack: stack && this.adopted(stack) })),
    );
  }

  positionOf(state: number): Position {
    return this.positions[state] ?? [];
  }

  /** Returns whether the text ends here. Such a text never goes on. */
  isComplete(state: number): boolean {
    return this.positionOf(state).some((reading) => this.isEnd(reading));
  }

  /** Returns the state behind one more byte. */
  next(state: number, byte: number): number {
    const table = this.tables[state] as Int32Array;
    const known = table[byte] as number;
    if (known !== UNKNOWN) return known;
    const moved: Reading[] = [];
    // All bytes of this range lead to the same state.
    let [begin, end] = [0, 0xff];
    for (const { state: from, stack } of this.positionOf(state)) {
      for (const { first, last, to } of this.grammar.states[from]?.bytes ?? []) {
        if (first > byte) end = Math.min(end, first - 1);
        else if (last < byte) begin = Math.max(begin, last + 1);
        else {
          begin = Math.max(begin, first);
          end = Math.min(end, last);
          moved.push({ state: to, stack });
        }
      }
    }
    const found = moved.length === 0 ? DEAD : this.numberOf(moved);
    table.fill(found, begin, end + 1);
    return found;
  }

  private numberOf(readings: readonly Reading[]): number {
    const position = this.closure(readings);
    const key = position.map(keyOf).join(' ');
    const known = this.numbers.get(key);
    if (known !== undefined) return known;
    const number = this.tables.push(new Int32Array(256).fill(UNKNOWN)) - 1;
    this.positions.push(position);
    this.numbers.set(key, number);
    return number;
  }

  /** Follows calls, ends of rules and empty edges. Returns the readings that wait for a byte, and that of the end. */
  private closure(readings: readonly Reading[]): Position {
    const found: Reading[] = [];
    const seen = new Set<number>();
    const left = readings.toReversed();
    for (let reading = left.pop(); reading !== undefined; reading = left.pop()) {
      const key = keyOf(reading);
      if (seen.has(key)) continue;
      seen.add(key);
      const waits = (this.grammar.states[reading.state]?.bytes.length ?? 0) > 0;
      if ((waits && found.length < MAX_READINGS) || this.isEnd(reading)) found.push(reading);
      left.push(...this.withoutByte(reading).reverse());
    }
    return found;
  }

  /** Returns the readings that a reading becomes without a byte. */
  private withoutByte({ state, stack }: Reading): Reading[] {
    const { bytes, calls, empty } = this.grammar.states[state] as Grammar['states'][number];
    if (bytes.length + calls.length + empty.length === 0)
      return stack === null ? [] : [{ state: stack.to, stack: stack.below }];
    const called = calls.map(({ rule, to }) => ({ state: rule.start, stack: this.pushed(to, stack) }));
    return [...empty.map((to) => ({ state: to, stack })), ...called];
  }

  private isEnd({ state, stack }: Reading): boolean {
    return stack === null && state === this.grammar.text.end;
  }

  private pushed(to: number, below: Stack | null): Stack {
    const key = keyOf({ state: to, stack: below });
    const known = this.stacks.get(key);
    if (known !== undefined) return known;
    const stack = { to, below, id: this.stacks.size + 1 };
    this.stacks.set(key, stack);
    this.own.add(stack);
    return stack;
  }

  /** Returns this matcher's stack that equals one of another matcher. */
  private adopted(stack: Stack): Stack {
    const chain: number[] = [];
    let below: Stack | null = stack;
    for (; below !== null && !this.own.has(below); below = below.below) chain.push(below.to);
    for (const to of chain.reverse()) below = this.pushed(to, below);
    return below as Stack;
  }
}

function keyOf({ state, stack }: Reading): number {
  return (stack?.id ?? 0) * STATES + state;
}
