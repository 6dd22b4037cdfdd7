/**
 * Interpreter of templates whose texts keep their origins: of the library, with blocks, loops, filters and parts of
 * texts of its own. A loop over messages also marks where each of them begins.
 */

import { asText, TEXT_FILTERS, VALUE_FILTERS } from './filters.js';
import { DEFAULT_STYLE, toJson } from './json.js';
import {
  ArrayValue,
  LibraryInterpreter,
  type Node,
  newScope,
  ObjectValue,
  type Scope,
  StringValue,
  UNDEFINED,
  type Value,
} from './library.js';
import { OriginText, type Run, TEMPLATE } from './origin-text.js';
import { FieldsValue, isText, LoopState, METHODS, originsOf, TextValue } from './values.js';

/** Origins that mark where a loop over messages begins and ends. */
interface LoopMarks {
  begin: number;
  end: number;
}

/** Thrown by the statements `break` and `continue`. */
const BREAK = Symbol('break');
const CONTINUE = Symbol('continue');

export class OriginInterpreter extends LibraryInterpreter {
  constructor(
    scope: Scope,
    private readonly marks: LoopMarks,
  ) {
    super(scope);
  }

  override evaluate(node: Node | undefined, scope: Scope): Value {
    switch (node?.type) {
      case 'Constant':
        return node.value as Value;
      case 'StringLiteral':
      case 'IntegerLiteral':
      case 'FloatLiteral':
        node.constant ??= super.evaluate(node, scope);
        return node.constant as Value;
      case 'Identifier':
        return lookUp(node.value as string, scope);
      case 'For':
        return this.loop(node, scope);
      case 'Break':
        throw BREAK;
      case 'Continue':
        throw CONTINUE;
      case 'BinaryExpression':
        return this.binary(node, scope);
      case 'FilterExpression':
        return this.filtered(node, scope);
      case 'FilterStatement':
        return this.filtered({ ...node, operand: { type: 'Program', body: node.body } }, scope);
      case 'MemberExpression':
        return this.member(node, scope);
      default:
        return super.evaluate(node, scope);
    }
  }

  /** Returns what statements write. */
  override evaluateBlock(statements: readonly Node[], scope: Scope): Value {
    const runs: Run[] = [];
    for (const statement of statements) write(runs, this.evaluate(statement, scope));
    return textOfRuns(runs);
  }

  private loop(node: Node, outer: Scope): Value {
    const scope = newScope(outer);
    const items = this.items(node, scope);
    const runs: Run[] = [];
    let iterated = false;
    for (const [index, item] of items.entries()) {
      scope.variables.set('loop', new LoopState(items, index));
      bind(node.loopvar as Node, item, scope);
      try {
        const written = this.evaluateBlock(node.body as Node[], scope);
        if ((node.loopvar as Node).type === 'Identifier' && item instanceof FieldsValue && item.turn !== null)
          append(runs, { text: '', origin: item.turn });
        write(runs, written);
        iterated = true;
      } catch (thrown) {
        if (thrown === BREAK) break;
        if (thrown !== CONTINUE) throw thrown;
      }
    }
    if (!iterated) write(runs, this.evaluateBlock(node.defaultBlock as Node[], scope));
    return this.marked(runs);
  }

  /** Marks a loop over messages that writes text. */
  private marked(runs: readonly Run[]): Value {
    if ((runs[0]?.origin ?? TEMPLATE) === TEMPLATE) return textOfRuns(runs);
    if (runs.every(({ text }) => text.trim() === ''))
      return new StringValue(runs.map(({ text }) => text).join(''));
    const { begin, end } = this.marks;
    return textOfRuns([{ text: '', origin: begin }, ...runs, { text: '', origin: end }]);
  }

  /** Returns what a loop iterates over. */
  private items({ iterable, loopvar }: Node, scope: Scope): readonly Value[] {
    const { type, lhs, test } = iterable as Node;
    const isFiltered = type === 'SelectExpression';
    const value = this.evaluate((isFiltered ? lhs : iterable) as Node, scope);
    const items = itemsOf(value);
    if (!isFiltered) return items;
    return items.filter((item) => {
      const inner = newScope(scope);
      bind(loopvar as Node, item, inner);
      return this.evaluate(test as Node, inner).__bool__().value;
    });
  }

  private binary(node: Node, scope: Scope): Value {
    if (!isSum(node)) return super.evaluate(node, scope);
    node.parts ??= partsOf(node);
    const parts = node.parts as readonly Part[];
    const values = parts.map(({ value }) => this.evaluate(value, scope));
    if (values.every(isText)) return new TextValue(OriginText.concat(values.map(originsOf)));
    return values.reduce((left, right, index) => this.sum(left, right, parts[index] as Part, scope));
  }

  private sum(left: Value, right: Value, { operator }: Part, scope: Scope): Value {
    const sides = [left, right];
    if (!sides.some(isText) || sides.some(({ value }) => value === null || value === undefined))
      return super.evaluate(
        { type: 'BinaryExpression', operator, left: constant(left), right: constant(right) },
        scope,
      );
    return new TextValue(OriginText.concat(sides.map(asText)));
  }

  private filtered(node: Node, scope: Scope): Value {
    const filter = node.filter as Node;
    const { callee, args: given = [] } = filter as { callee?: Node; args?: Node[] };
    const name = String((callee ?? filter).value);
    const value = this.evaluate(node.operand as Node, scope);
    const operand = METHODS[name] || name === 'length' ? defined(value, () => new StringValue('')) : value;
    const own = (isText(operand) ? TEXT_FILTERS : VALUE_FILTERS).get(name);
    if (own === undefined) return super.evaluate({ ...node, operand: constant(operand) }, scope);
    const args: Value[] = [];
    const options = new Map<string, Value>();
    for (const arg of given) {
      const { key, value } = arg as { key?: { value: string }; value?: Node };
      if (arg.type === 'KeywordArgumentExpression' && key)
        options.set(key.value, this.evaluate(value, scope));
      else args.push(this.evaluate(arg, scope));
    }
    return own(operand, args, options);
  }

  /** A slice of a text keeps its origins. */
  private member(node: Node, scope: Scope): Value {
    const property = node.property as Node;
    const object = this.evaluate(node.object as Node, scope);
    if (property.type === (node.computed === true ? 'StringLiteral' : 'Identifier'))
      return fieldOf(object, property.value as string);
    if (node.computed !== true || !isText(object))
      return super.evaluate({ ...node, object: constant(object) }, scope);
    const characters = new ArrayValue(
      originsOf(object)
        .characters()
        .map((part) => new TextValue(part)),
    );
    const found = super.evaluate({ ...node, object: constant(characters) }, scope);
    if (!Array.isArray(found.value)) return found;
    return new TextValue(OriginText.concat(found.value.map(originsOf)));
  }
}

/** Part of a sum, behind its operator. */
interface Part {
  operator: unknown;
  value: Node;
}

function isSum({ type, operator }: Node): boolean {
  return type === 'BinaryExpression' && ['+', '~'].includes((operator as { value: string }).value);
}

function partsOf(node: Node): Part[] {
  const { operator, left, right } = node as Node & { left: Node; right: Node };
  const before = isSum(left) ? partsOf(left) : [{ operator, value: left }];
  return [...before, { operator, value: right }];
}

/** Appends what a block writes for a value. */
function write(runs: Run[], value: Value): void {
  if (value instanceof TextValue) {
    for (const run of value.origins.runs) append(runs, run);
    return;
  }
  const content: unknown = value.value;
  if (content === null || content === undefined) return;
  const isJson = content instanceof Map || Array.isArray(content);
  if (isJson) for (const run of toJson(value, DEFAULT_STYLE).runs) append(runs, run);
  else append(runs, { text: value.toString(), origin: TEMPLATE });
}

/** Appends a run. A mark has no text, and an origin. */
function append(runs: Run[], run: Run): void {
  const last = runs.at(-1);
  if (run.origin !== TEMPLATE) runs.push(run);
  else if (last?.origin === TEMPLATE)
    runs[runs.length - 1] = { text: last.text + run.text, origin: TEMPLATE };
  else if (run.text !== '') runs.push(run);
}

/** Returns a text of a block; without origins if all of it is the template's. */
function textOfRuns(runs: readonly Run[]): Value {
  const [first] = runs;
  if (first === undefined) return new StringValue('');
  if (runs.length === 1 && first.origin === TEMPLATE) return new StringValue(first.text);
  return new TextValue(new OriginText(runs));
}

/** Returns a variable, or an undefined value. */
function lookUp(name: string, scope: Scope): Value {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) {
    const found = at.variables.get(name);
    if (found !== undefined) return 'read' in found ? found.read() : found;
  }
  return UNDEFINED;
}

function fieldOf(value: Value, name: string): Value {
  const fields: unknown = value.value;
  const field = fields instanceof Map ? (fields.get(name) as Value | undefined) : undefined;
  return field ?? value.builtins.get(name) ?? UNDEFINED;
}

/** Assigns an item to the variables of a loop. */
function bind(variable: Node, item: Value, scope: Scope): void {
  if (variable.type === 'Identifier') {
    scope.setVariable(variable.value as string, item);
    return;
  }
  const names = variable.value as Node[];
  if (item.type !== 'ArrayValue') throw new Error(`Cannot unpack non-iterable type: ${item.type}`);
  const values = item.value as Value[];
  if (names.length !== values.length)
    throw new Error(`Too ${names.length > values.length ? 'few' : 'many'} items to unpack`);
  for (const [index, name] of names.entries()) {
    if (name.type !== 'Identifier') throw new Error(`Cannot unpack non-identifier type: ${name.type}`);
    scope.setVariable(name.value as string, values[index] as Value);
  }
}

/** Returns what a loop over a value iterates over; an undefined value is empty, as in Jinja. */
function itemsOf(value: Value): readonly Value[] {
  if (value instanceof ObjectValue) return value.keys().value;
  if (value instanceof ArrayValue) return value.value;
  if (value.type === 'UndefinedValue') return [];
  throw new Error(`Expected iterable or object type in for loop: got ${value.type}`);
}

/** An undefined value is empty in loops and filters of texts, as in Jinja. */
function defined(value: Value, empty: () => Value): Value {
  return value.type === 'UndefinedValue' ? empty() : value;
}

function constant(value: Value): Node {
  return { type: 'Constant', value };
}
