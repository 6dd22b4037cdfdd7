/**
 * Interpreter of templates whose texts keep their origins. The library concatenates what a block writes as plain
 * strings, so origins are marks in them; as a value of an expression, a text has its origins beside it. A loop over
 * messages also marks where each of them begins.
 */

import { DEFAULT_STYLE, type JsonStyle, toJson } from './json.js';
import {
  ArrayValue,
  LibraryInterpreter,
  type Node,
  NullValue,
  type Program,
  parseSource,
  type Scope,
  StringValue,
  type Value,
} from './library.js';
import { MARK, OriginText, placeMark, TEMPLATE } from './origin-text.js';
import { FieldsValue, isText, METHODS, originsOf, TextValue } from './values.js';

/** Places at which a loop over messages begins and ends. */
export interface LoopPlaces {
  begin: number;
  end: number;
}

/** Statements; all other nodes of a block are expressions, whose values it writes. */
const STATEMENTS: readonly string[] = [
  'Set',
  'If',
  'For',
  'Macro',
  'Break',
  'Continue',
  'Comment',
  'CallStatement',
];
const BLOCKS: readonly string[] = ['body', 'alternate', 'defaultBlock'];

/** Parses a template, and changes it for this interpreter. @throws Error */
export function parseProgram(source: string): Program {
  const program = parseSource(source);
  // The library looks for names in nodes of this class only.
  const Statement = Object.getPrototypeOf(program.constructor) as new () => Node;
  const made = (type: string, fields: object): Node => Object.assign(new Statement(), { ...fields, type });
  const changed = (node: Node): Node => {
    for (const name of BLOCKS) {
      const block = node[name];
      if (Array.isArray(block)) node[name] = block.map(changed);
    }
    const { body } = node;
    switch (node.type) {
      case 'StringLiteral':
        return node;
      case 'FilterStatement': {
        const operand = made('Captured', { body });
        return made('Output', { value: made('FilterExpression', { operand, filter: node.filter }) });
      }
      case 'Set':
        node.value ??= made('Captured', { body });
        return node;
      case 'For':
        node.body = [made('Turn', { variable: node.loopvar }), ...(body as Node[])];
        withIterable(node, (value) => made('Iterable', { value }));
        return node;
      default:
        return STATEMENTS.includes(node.type) ? node : made('Output', { value: node });
    }
  };
  program.body = program.body.map(changed);
  return program;
}

/** Wraps what a loop iterates over, behind the condition of its items if it has one. */
function withIterable(loop: Node, wrapped: (value: unknown) => Node): void {
  const iterable = loop.iterable as Node;
  if (iterable.type === 'SelectExpression') iterable.lhs = wrapped(iterable.lhs);
  else loop.iterable = wrapped(iterable);
}

export class OriginInterpreter extends LibraryInterpreter {
  constructor(
    scope: Scope,
    private readonly places: LoopPlaces,
  ) {
    super(scope);
  }

  override evaluate(node: Node | undefined, scope: Scope): Value {
    switch (node?.type) {
      case 'Constant':
        return node.value as Value;
      case 'Output':
        return this.written(this.evaluate(node.value as Node, scope));
      case 'Captured':
        return withOrigins(super.evaluate({ type: 'Program', body: node.body }, scope));
      case 'CallExpression':
        return withOrigins(super.evaluate(node, scope));
      case 'Turn':
        return beginOfTurn(node, scope);
      case 'Iterable':
        return defined(this.evaluate(node.value as Node, scope), () => new ArrayValue([]));
      case 'For':
        return this.loop(super.evaluate(node, scope));
      case 'BinaryExpression':
        return this.binary(node, scope);
      case 'FilterExpression':
        return this.filtered(node, scope);
      case 'MemberExpression':
        return this.member(node, scope);
      default:
        return super.evaluate(node, scope);
    }
  }

  /** Returns what a block writes: with marks. */
  private written(value: Value): Value {
    if (value instanceof TextValue) return new StringValue(value.origins.marked());
    const content: unknown = value.value;
    const isJson = content instanceof Map || Array.isArray(content);
    return isJson ? new StringValue(toJson(value, DEFAULT_STYLE).marked()) : value;
  }

  /** Marks a loop over messages that writes text. */
  private loop(result: Value): Value {
    const marked = String(result.value);
    if (!marked.startsWith(MARK)) return result;
    const { text } = OriginText.parse(marked);
    if (text.trim() === '') return new StringValue(text);
    return new StringValue(placeMark(this.places.begin) + marked + placeMark(this.places.end));
  }

  private binary(node: Node, scope: Scope): Value {
    const { value: operator } = node.operator as { value: string };
    if (operator !== '+' && operator !== '~') return super.evaluate(node, scope);
    const left = this.evaluate(node.left as Node, scope);
    const right = this.evaluate(node.right as Node, scope);
    const sides = [left, right];
    if (!sides.some(isText) || sides.some(({ value }) => value === null || value === undefined))
      return super.evaluate({ ...node, left: constant(left), right: constant(right) }, scope);
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

  /** A part of a text by its place keeps its origins. */
  private member(node: Node, scope: Scope): Value {
    const property = node.property as Node;
    if (node.computed !== true || property.type === 'StringLiteral') return super.evaluate(node, scope);
    const object = this.evaluate(node.object as Node, scope);
    if (!isText(object)) return super.evaluate({ ...node, object: constant(object) }, scope);
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

/** An undefined value is empty in loops and filters of texts, as in Jinja. */
function defined(value: Value, empty: () => Value): Value {
  return value.type === 'UndefinedValue' ? empty() : value;
}

function constant(value: Value): Node {
  return { type: 'Constant', value };
}

/** Returns a text of a block with its origins. */
function withOrigins(value: Value): Value {
  if (!isText(value) || value instanceof TextValue || !value.value.includes(MARK)) return value;
  return new TextValue(OriginText.parse(value.value));
}

function beginOfTurn({ variable }: Node, scope: Scope): Value {
  const { type, value: name } = variable as { type: string; value: string };
  const message = type === 'Identifier' ? scope.lookupVariable(name) : null;
  const turn = message instanceof FieldsValue ? message.turn : null;
  return turn === null ? new NullValue(null) : new StringValue(placeMark(turn));
}

/** @throws Error for a value that Python would not concatenate with a text */
function asText(value: Value): OriginText {
  if (isText(value)) return originsOf(value);
  const { value: content } = value;
  if (content instanceof Map || Array.isArray(content) || typeof content === 'function')
    throw new Error('it adds a value that is no text to a text; the filter tojson makes a text of a value');
  return OriginText.of(value.toString(), TEMPLATE);
}

type Filter = (operand: Value, args: readonly Value[], options: ReadonlyMap<string, Value>) => Value;

const TEXT_FILTERS: ReadonlyMap<string, Filter> = new Map([
  ...['trim', 'upper', 'lower', 'title', 'capitalize', 'replace'].map((name): [string, Filter] => [
    name,
    (operand, args) => METHODS[name]?.(originsOf(operand), args) ?? operand,
  ]),
  ['tojson', tojson],
  ['indent', indented],
  ['join', (operand, args) => joined(originsOf(operand).characters(), args)],
]);
const VALUE_FILTERS: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ['tojson', tojson],
  [
    'items',
    (operand) => {
      if (operand instanceof FieldsValue) return operand.items();
      throw new Error('the filter items needs an object');
    },
  ],
  [
    'join',
    (operand, args, options) => {
      if (!Array.isArray(operand.value)) throw new Error('the filter join needs a list');
      const separator = options.get('d');
      return joined(operand.value.map(asText), separator ? [separator] : args);
    },
  ],
]);

function tojson(operand: Value, _: readonly Value[], options: ReadonlyMap<string, Value>): Value {
  return new TextValue(toJson(operand, styleOf(options)));
}

function indented(operand: Value, args: readonly Value[], options: ReadonlyMap<string, Value>): Value {
  const option = (place: number, name: string) => (args[place] ?? options.get(name))?.value;
  const [first, blank] = [option(1, 'first') === true, option(2, 'blank') === true];
  const margin = OriginText.of(' '.repeat(Number(option(0, 'width') ?? 4)), TEMPLATE);
  const lines = originsOf(operand)
    .split('\n')
    .map((line, index) =>
      (index === 0 && !first) || (line.text === '' && !blank) ? line : OriginText.concat([margin, line]),
    );
  return new TextValue(OriginText.join(lines, OriginText.of('\n', TEMPLATE)));
}

function joined(parts: readonly OriginText[], [separator]: readonly Value[]): Value {
  return new TextValue(
    OriginText.join(parts, separator ? originsOf(separator) : OriginText.of('', TEMPLATE)),
  );
}

function styleOf(options: ReadonlyMap<string, Value>): JsonStyle {
  const value = (name: string): unknown => options.get(name)?.value;
  const [indent, separators] = [value('indent'), value('separators')];
  return {
    indent: typeof indent === 'number' ? indent : null,
    ensure_ascii: value('ensure_ascii') === true,
    sort_keys: value('sort_keys') === true,
    separators: Array.isArray(separators)
      ? (separators.map(({ value }: { value: string }) => value) as [string, string])
      : null,
  };
}
