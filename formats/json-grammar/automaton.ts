/**
 * Automata over bytes with calls, as a grammar needs them. A rule has a start and an end. A state may call a rule, and
 * continues in another state when the rule has ended.
 */

export interface Rule {
  start: number;
  end: number;
}

interface ByteEdge {
  first: number;
  last: number;
  to: number;
}

/** A state. The end of a rule has no edges. */
interface AutomatonState {
  bytes: ByteEdge[];
  calls: { rule: Rule; to: number }[];
  empty: number[];
}

/** Builds an automaton. Methods that take a state and return another one append to it. */
export class Automaton {
  readonly states: AutomatonState[] = [];

  state(): number {
    return this.states.push({ bytes: [], calls: [], empty: [] }) - 1;
  }

  rule(): Rule {
    return { start: this.state(), end: this.state() };
  }

  /** Adds an edge for the bytes `first` to `last`. */
  range(from: number, first: number, last: number, to = this.state()): number {
    this.at(from).bytes.push({ first, last, to });
    return to;
  }

  /** Adds an edge for each of some ASCII characters. */
  oneOf(from: number, characters: string, to = this.state()): number {
    for (const character of characters)
      this.range(from, character.charCodeAt(0), character.charCodeAt(0), to);
    return to;
  }

  text(from: number, bytes: Uint8Array, to?: number): number {
    let state = from;
    for (const [index, byte] of bytes.entries())
      state = this.range(state, byte, byte, index === bytes.length - 1 ? to : undefined);
    return state;
  }

  call(from: number, rule: Rule, to = this.state()): number {
    this.at(from).calls.push({ rule, to });
    return to;
  }

  skip(from: number, to: number): void {
    this.at(from).empty.push(to);
  }

  private at(state: number): AutomatonState {
    return this.states[state] as AutomatonState;
  }
}
