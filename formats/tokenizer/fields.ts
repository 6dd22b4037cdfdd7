/** Reads the components of a `tokenizer.json`, with errors that name the path. */
import { ZerofleetError } from '../../contracts/index.js';

export function refused(reason: string): ZerofleetError {
  return new ZerofleetError('tokenizer_invalid', `tokenizer.json can't be used: ${reason}`);
}

/** JSON object of a `tokenizer.json`. Unknown fields are ignored, as in the Hugging Face library. */
export class Component {
  private readonly fields: Readonly<Record<string, unknown>>;

  /**
   * @param path names the component in errors
   * @throws ZerofleetError `tokenizer_invalid`
   */
  constructor(
    value: unknown,
    readonly path: string,
  ) {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw refused(`${path} is not an object`);
    this.fields = value as Record<string, unknown>;
  }

  get type(): string {
    return this.string('type');
  }

  value(name: string): unknown {
    return this.fields[name] ?? null;
  }

  boolean(name: string, missing?: boolean): boolean {
    return this.read(name, missing, (value) => typeof value === 'boolean');
  }

  string(name: string, missing?: string): string {
    return this.read(name, missing, (value) => typeof value === 'string');
  }

  /** Reads an integer of at least `least`. */
  count(name: string, least: number, missing?: number): number {
    return this.read(name, missing, (value) => Number.isSafeInteger(value) && (value as number) >= least);
  }

  /** Reads exactly one character. */
  character(name: string, missing?: string): string {
    const text = this.string(name, missing);
    if ([...text].length !== 1) throw this.bad(name);
    return text;
  }

  oneOf<T extends string>(name: string, values: readonly T[], missing?: T): T {
    return this.read(name, missing, (value) => (values as readonly unknown[]).includes(value));
  }

  /** Reads a list of components. */
  components(name: string): Component[] {
    return this.list(name).map((value, index) => new Component(value, `${this.path}.${name}[${index}]`));
  }

  list(name: string): unknown[] {
    return this.read<unknown[]>(name, undefined, Array.isArray);
  }

  component(name: string): Component {
    return new Component(this.value(name), `${this.path}.${name}`);
  }

  /** Reads an optional component. */
  optional(name: string): Component | null {
    return this.value(name) === null ? null : this.component(name);
  }

  /** Returns the error for an unsupported component or option. */
  unread(reason: string): ZerofleetError {
    return refused(`${this.path}: ${reason} is not supported`);
  }

  bad(name: string): ZerofleetError {
    return refused(`${this.path}.${name} is ${shown(this.value(name))}`);
  }

  private read<T>(name: string, missing: T | undefined, holds: (value: unknown) => boolean): T {
    const value = this.value(name) ?? missing;
    if (!holds(value)) throw this.bad(name);
    return value as T;
  }
}

function shown(value: unknown): string {
  return JSON.stringify(value).slice(0, 100);
}
