/**
 * Formulas of `multi` graders:
 *
 *   sum    = product {("+" | "-") product}
 *   product = factor {("*" | "/") factor}
 *   factor = "-" factor | power
 *   power  = atom ["^" factor]
 *   atom   = number | name | name "(" sum {"," sum} ")" | "(" sum ")"
 */

type Values = Readonly<Record<string, number>>;
/** Computes the formula's value from scores by name. */
type Formula = (values: Values) => number;

/** A formula that cannot be read. */
export class FormulaFault extends Error {}

interface Callable {
  arity: 1 | 'any';
  compute(...values: number[]): number;
}

const FUNCTIONS: ReadonlyMap<string, Callable> = new Map([
  ['min', { arity: 'any', compute: Math.min }],
  ['max', { arity: 'any', compute: Math.max }],
  ['abs', { arity: 1, compute: Math.abs }],
  ['floor', { arity: 1, compute: Math.floor }],
  ['ceil', { arity: 1, compute: Math.ceil }],
  ['exp', { arity: 1, compute: Math.exp }],
  ['sqrt', { arity: 1, compute: Math.sqrt }],
  ['log', { arity: 1, compute: Math.log }],
]);

const TOKEN = /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|([-+*/^(),]))/y;
/** Nested parts; each takes a few frames of the stack. */
const MAX_DEPTH = 100;

interface Token {
  kind: 'number' | 'name' | 'sign' | 'end';
  text: string;
  /** Position in the formula, from 1. */
  at: number;
}

/** @param names names of the scores. @throws FormulaFault */
export function parseFormula(text: string, names: readonly string[]): Formula {
  return new Parser(tokensOf(text), names).whole();
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  const end = text.trimEnd().length;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < end) {
    const begin = TOKEN.lastIndex;
    const [whole, number, name, sign] = TOKEN.exec(text) ?? [];
    if (whole === undefined)
      throw new FormulaFault(`unknown character at ${begin + 1}: ${text.slice(begin, begin + 20)}`);
    const found = number ?? name ?? sign ?? '';
    const kind = number !== undefined ? 'number' : name !== undefined ? 'name' : 'sign';
    tokens.push({ kind, text: found, at: begin + whole.length - found.length + 1 });
  }
  return [...tokens, { kind: 'end', text: 'the end', at: end + 1 }];
}

class Parser {
  private position = 0;
  private depth = 0;

  constructor(
    private readonly tokens: readonly Token[],
    private readonly names: readonly string[],
  ) {}

  whole(): Formula {
    const formula = this.sum();
    if (this.next.kind !== 'end') throw this.fault('an operator');
    return formula;
  }

  private get next(): Token {
    return this.tokens[this.position] as Token;
  }

  private take(...signs: string[]): string | null {
    const { kind, text } = this.next;
    if (kind !== 'sign' || !signs.includes(text)) return null;
    this.position += 1;
    return text;
  }

  private fault(wanted: string): FormulaFault {
    return new FormulaFault(`${wanted} is expected at ${this.next.at}, before ${this.next.text}`);
  }

  private sum(): Formula {
    this.depth += 1;
    if (this.depth > MAX_DEPTH)
      throw new FormulaFault(`more than ${MAX_DEPTH} nested parts at ${this.next.at}`);
    let left = this.product();
    for (let sign = this.take('+', '-'); sign !== null; sign = this.take('+', '-')) {
      const [a, b] = [left, this.product()];
      left = sign === '+' ? (values) => a(values) + b(values) : (values) => a(values) - b(values);
    }
    this.depth -= 1;
    return left;
  }

  private product(): Formula {
    let left = this.factor();
    for (let sign = this.take('*', '/'); sign !== null; sign = this.take('*', '/')) {
      const [a, b] = [left, this.factor()];
      left = sign === '*' ? (values) => a(values) * b(values) : (values) => a(values) / b(values);
    }
    return left;
  }

  private factor(): Formula {
    this.depth += 1;
    if (this.depth > MAX_DEPTH)
      throw new FormulaFault(`more than ${MAX_DEPTH} nested parts at ${this.next.at}`);
    let formula: Formula;
    if (this.take('-') !== null) {
      const inner = this.factor();
      formula = (values) => -inner(values);
    } else formula = this.power();
    this.depth -= 1;
    return formula;
  }

  private power(): Formula {
    const base = this.atom();
    if (this.take('^') === null) return base;
    const exponent = this.factor();
    return (values) => base(values) ** exponent(values);
  }

  private atom(): Formula {
    if (this.take('(') !== null) {
      const inner = this.sum();
      if (this.take(')') === null) throw this.fault(')');
      return inner;
    }
    const token = this.next;
    if (token.kind !== 'number' && token.kind !== 'name') throw this.fault('a number, a name or (');
    this.position += 1;
    if (token.kind === 'number') {
      const number = Number(token.text);
      return () => number;
    }
    if (this.take('(') !== null) return this.call(token);
    if (!this.names.includes(token.text))
      throw new FormulaFault(`no grader is named ${token.text}; there are ${this.names.join(', ')}`);
    return (values) => values[token.text] ?? Number.NaN;
  }

  private call({ text: name, at }: Token): Formula {
    const called = FUNCTIONS.get(name);
    if (called === undefined)
      throw new FormulaFault(
        `there is no function ${name} at ${at}; there are ${[...FUNCTIONS.keys()].join(', ')}`,
      );
    const args = [this.sum()];
    while (this.take(',') !== null) args.push(this.sum());
    if (this.take(')') === null) throw this.fault(')');
    if (called.arity === 1 && args.length > 1) throw new FormulaFault(`${name} at ${at} has one argument`);
    return (values) => called.compute(...args.map((arg) => arg(values)));
  }
}
