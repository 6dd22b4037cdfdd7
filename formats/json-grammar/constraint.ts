/** Answers of which each token must continue a text of a grammar. */
import { grammarOf } from './grammar.js';
import { DEAD, Matcher, type Position } from './matcher.js';
import { allow, type TokenMask, type Vocabulary } from './vocabulary.js';

/** Form of an answer: for one of the choices, the tokens of a head, and then a JSON object of a schema. */
export interface Constraint {
  choices: readonly { head: readonly number[]; schema: string }[];
}

/** Schemas and masks that are kept. */
const MAX_GRAMMARS = 16;
const MAX_MASKS = 256;

/** The grammar of a schema, with the masks that were computed. */
class MaskedGrammar {
  private readonly grammar;
  private matcher: Matcher;
  private readonly masks = new Map<number, TokenMask>();

  constructor(
    schema: string,
    private readonly vocabulary: Vocabulary,
  ) {
    this.grammar = grammarOf(JSON.parse(schema));
    this.matcher = new Matcher(this.grammar);
  }

  get start(): Position {
    return this.matcher.start;
  }

  /** Returns the position behind a token; null if the grammar has no such text. */
  behind(position: Position, bytes: Uint8Array): Position | null {
    let state = this.matcher.stateOf(position);
    for (const byte of bytes) {
      if (state === DEAD) return null;
      state = this.matcher.next(state, byte);
    }
    return state === DEAD ? null : this.matcher.positionOf(state);
  }

  isComplete(position: Position): boolean {
    return this.matcher.isComplete(this.matcher.stateOf(position));
  }

  allowed(position: Position): TokenMask {
    if (this.matcher.isFull || this.masks.size >= MAX_MASKS) {
      this.masks.clear();
      if (this.matcher.isFull) this.matcher = new Matcher(this.grammar);
    }
    const state = this.matcher.stateOf(position);
    const mask = this.masks.get(state) ?? this.vocabulary.allowed(this.matcher, state);
    this.masks.set(state, mask);
    return mask;
  }
}

/** Grammars by schema. */
export class Grammars {
  private readonly known = new Map<string, MaskedGrammar>();

  constructor(readonly vocabulary: Vocabulary) {}

  /** @throws SchemaFault */
  grammarFor(schema: string): MaskedGrammar {
    const grammar = this.known.get(schema) ?? new MaskedGrammar(schema, this.vocabulary);
    this.known.delete(schema);
    this.known.set(schema, grammar);
    const [oldest] = this.known.keys();
    if (this.known.size > MAX_GRAMMARS && oldest !== undefined) this.known.delete(oldest);
    return grammar;
  }
}

/** An answer that grows by tokens which its constraint allows. */
export class ConstrainedAnswer {
  numTokens = 0;
  private choices: { head: readonly number[]; grammar: MaskedGrammar; position: Position }[];

  /** @throws SchemaFault */
  constructor(
    { choices }: Constraint,
    private readonly grammars: Grammars,
  ) {
    this.choices = choices.map(({ head, schema }) => {
      const grammar = grammars.grammarFor(schema);
      return { head, grammar, position: grammar.start };
    });
  }

  /** Adds a token. */
  push(token: number): void {
    const tokenIndex = this.numTokens++;
    this.choices = this.choices.flatMap((choice) => {
      if (tokenIndex < choice.head.length) return choice.head[tokenIndex] === token ? [choice] : [];
      const position = choice.grammar.behind(choice.position, this.grammars.vocabulary.bytesOf(token));
      return position === null ? [] : [{ ...choice, position }];
    });
  }

  get isComplete(): boolean {
    return this.choices.some(
      ({ head, grammar, position }) => this.numTokens >= head.length && grammar.isComplete(position),
    );
  }

  /** Returns the tokens that may follow; a new mask. */
  allowed(): TokenMask {
    const mask = this.grammars.vocabulary.none();
    for (const { head, grammar, position } of this.choices) {
      const next = head[this.numTokens];
      if (next !== undefined) allow(mask, next);
      else
        for (const [word, bits] of grammar.allowed(position).entries()) mask[word] = (mask[word] ?? 0) | bits;
    }
    return mask;
  }
}
