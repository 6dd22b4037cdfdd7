/** Grammars of the JSON texts that satisfy a schema. */
import { Automaton, type Rule } from './automaton.js';
import { character, number, whiteSpace } from './json-rules.js';
import { readSchema } from './read-schema.js';
import { concrete, type SchemaNode } from './schema-nodes.js';

export interface Grammar {
  states: Automaton['states'];
  /** The text: white space and an object. */
  text: Rule;
}

/** Returns the grammar of a schema. @throws SchemaFault */
export function grammarOf(schema: unknown): Grammar {
  return new GrammarBuilder(readSchema(schema)).build();
}

type NodeOf<Kind extends SchemaNode['kind']> = Extract<SchemaNode, { kind: Kind }>;

class GrammarBuilder {
  private readonly automaton = new Automaton();
  private readonly space = whiteSpace(this.automaton);
  private readonly character = character(this.automaton);
  private readonly string = this.stringRule({ kind: 'string', min: 0, max: null });
  private readonly number = number(this.automaton, false);
  private readonly integer = number(this.automaton, true);
  private readonly rules = new Map<SchemaNode, Rule>();
  /** Rules whose states are to be added: schemas nest deeper than calls of functions may. */
  private readonly pending: [SchemaNode, Rule][] = [];
  private readonly any: SchemaNode = { kind: 'any' };

  constructor(private readonly nodes: readonly SchemaNode[]) {}

  build(): Grammar {
    const { automaton } = this;
    const text = automaton.rule();
    this.value(automaton.call(text.start, this.space), 0, text.end);
    for (let next = this.pending.pop(); next !== undefined; next = this.pending.pop()) this.fill(...next);
    return { states: automaton.states, text };
  }

  /** Adds a value of a node behind a state. */
  private value(from: number, node: number, to: number): void {
    for (const each of concrete(this.nodes, node)) this.automaton.call(from, this.ruleOf(each), to);
  }

  private ruleOf(node: SchemaNode): Rule {
    if (node.kind === 'number' || node.kind === 'integer') return this[node.kind];
    if (node.kind === 'string' && node.min === 0 && node.max === null) return this.string;
    if (node.kind === 'any') return this.known(this.any);
    return this.known(node);
  }

  private known(node: SchemaNode): Rule {
    const known = this.rules.get(node);
    if (known !== undefined) return known;
    const rule = this.automaton.rule();
    this.rules.set(node, rule);
    this.pending.push([node, rule]);
    return rule;
  }

  private fill(node: SchemaNode, rule: Rule): void {
    if (node.kind === 'any') this.anyRule(rule);
    else if (node.kind === 'literals') this.literals(node.values, rule);
    else if (node.kind === 'string') this.stringRule(node, rule);
    else if (node.kind === 'array') this.array(node, rule);
    else if (node.kind === 'object') this.object(node, rule);
    else if (node.kind === 'map') this.map((from, to) => this.value(from, node.value, to), rule);
  }

  private anyRule(rule: Rule): void {
    const { automaton } = this;
    const any = (from: number, to: number) => void automaton.call(from, rule, to);
    for (const scalar of [this.string, this.number]) automaton.call(rule.start, scalar, rule.end);
    this.literals([true, false, null], rule);
    this.map(any, rule);
    this.items(any, { min: 0, max: null }, rule);
  }

  /** Adds texts that share the states of their common beginnings. */
  private literals(values: readonly unknown[], { start, end }: Rule): void {
    const { automaton } = this;
    const children = new Map<string, number>();
    for (const value of values) {
      let state = start;
      for (const character of Array.from(JSON.stringify(value))) {
        const key = `${state} ${character}`;
        const next = children.get(key) ?? this.writtenCharacter(state, character);
        children.set(key, next);
        state = next;
      }
      automaton.skip(state, end);
    }
  }

  /** Adds a character of a literal: characters beyond ASCII may be escaped. */
  private writtenCharacter(from: number, character: string): number {
    const to = this.automaton.text(from, Buffer.from(character));
    if (character <= '\x7f') return to;
    const units = character.split('');
    const escaped = units.map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
    return this.automaton.text(from, Buffer.from(escaped.join('')), to);
  }

  private stringRule({ min, max }: NodeOf<'string'>, rule = this.automaton.rule()): Rule {
    const { automaton, character } = this;
    let state = automaton.oneOf(rule.start, '"');
    for (let length = 0; length < (max ?? min); length++) {
      if (length >= min) automaton.oneOf(state, '"', rule.end);
      state = automaton.call(state, character);
    }
    automaton.oneOf(state, '"', rule.end);
    if (max === null) automaton.call(state, character, state);
    return rule;
  }

  private array({ item, min, max }: NodeOf<'array'>, rule: Rule): void {
    this.items((from, to) => this.value(from, item, to), { min, max }, rule);
  }

  private items(
    item: (from: number, to: number) => void,
    { min, max }: { min: number; max: number | null },
    { start, end }: Rule,
  ): void {
    const { automaton, space } = this;
    let state = automaton.call(automaton.oneOf(start, '['), space);
    if (min === 0) automaton.oneOf(state, ']', end);
    for (let count = 1; count <= (max ?? Math.max(min, 1)); count++) {
      const behind = automaton.state();
      item(state, behind);
      const separator = automaton.call(behind, space);
      if (count >= min) automaton.oneOf(separator, ']', end);
      if (count === max) return;
      state = automaton.call(automaton.oneOf(separator, ','), space);
      if (max === null && count >= min) item(state, behind);
    }
  }

  /** Adds the properties in their order; optional ones may be absent. */
  private object({ properties }: NodeOf<'object'>, { start, end }: Rule): void {
    const { automaton, space } = this;
    const names = [...properties.keys()].map(() => automaton.state());
    const lastRequired = properties.findLastIndex(({ required }) => required);
    const open = automaton.call(automaton.oneOf(start, '{'), space);
    if (lastRequired < 0) automaton.oneOf(open, '}', end);
    if (names[0] !== undefined) automaton.skip(open, names[0]);
    for (const [index, { name, required, value }] of properties.entries()) {
      const [at, next] = [names[index] as number, names[index + 1]];
      if (!required && next !== undefined) automaton.skip(at, next);
      const named = automaton.state();
      this.literals([name], { start: at, end: named });
      const behind = automaton.state();
      this.value(automaton.call(automaton.oneOf(named, ':'), space), value, behind);
      const separator = automaton.call(behind, space);
      if (index >= lastRequired) automaton.oneOf(separator, '}', end);
      if (next !== undefined) automaton.call(automaton.oneOf(separator, ','), space, next);
    }
  }

  private map(value: (from: number, to: number) => void, { start, end }: Rule): void {
    const { automaton, space } = this;
    const open = automaton.call(automaton.oneOf(start, '{'), space);
    const [name, behind] = [automaton.state(), automaton.state()];
    automaton.oneOf(open, '}', end);
    automaton.skip(open, name);
    const colon = automaton.call(name, this.string);
    value(automaton.call(automaton.oneOf(colon, ':'), space), behind);
    const separator = automaton.call(behind, space);
    automaton.oneOf(separator, '}', end);
    automaton.call(automaton.oneOf(separator, ','), space, name);
  }
}
