/** The template library with types: its own declarations cannot be resolved, and it does not export its values. */
import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';

/** Value of an expression. */
export interface Value {
  type: string;
  value: unknown;
  readonly builtins: ReadonlyMap<string, Value>;
  __bool__(): { value: boolean };
  toString(): string;
}

/** Node of a parsed template, with the fields of its type. */
export interface Node {
  type: string;
  [field: string]: unknown;
}

/** Variable whose value is created when a template reads it. */
export interface LazyValue {
  read(): Value;
}

/** Variables. */
export interface Scope {
  readonly parent?: Scope;
  readonly variables: Map<string, Value | LazyValue>;
  setVariable(name: string, value: Value): Value;
  /** Declares a variable with a value of JavaScript. */
  set(name: string, value: unknown): Value;
}

export interface Program extends Node {
  body: Node[];
}

export const newScope = (parent?: Scope) =>
  new Environment(parent as unknown as Environment | undefined) as unknown as Scope;

export const LibraryInterpreter = Interpreter as unknown as new (
  scope: Scope,
) => {
  evaluate(node: Node | undefined, scope: Scope): Value;
  evaluateBlock(statements: readonly Node[], scope: Scope): Value;
  run(program: Program): Value;
};

/** @throws Error */
export function parseSource(source: string): Program {
  return parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true })) as unknown as Program;
}

type Class<T, Methods = unknown> = new (value: unknown) => Value & { value: T } & Methods;

function classOf<T, Methods = unknown>(value: unknown): Class<T, Methods> {
  return newScope().set('value', value).constructor as unknown as Class<T, Methods>;
}

export type NativeFunction = (args: Value[], scope: Scope) => Value;

export const StringValue = classOf<string>('');
export const IntegerValue = classOf<number>(1);
export const FloatValue = classOf<number>(0.5);
export const BooleanValue = classOf<boolean>(true);
export const NullValue = classOf<null>(null);
export const ArrayValue = classOf<Value[]>([]);
export const ObjectValue = classOf<
  ReadonlyMap<string, Value>,
  { keys(): Value & { value: readonly Value[] } }
>({});
export const FunctionValue = classOf<NativeFunction>(() => null);
export const UNDEFINED = newScope().set('value', undefined);
