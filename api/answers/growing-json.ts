const SPACE = /\s/;

interface Level {
  is_object: boolean;
  /** Of the value that is read; null in an array, and before the first key. */
  key: string | null;
  expects_key: boolean;
}

/**
 * Reads a JSON object that grows, up to its end. Finds a text and a value in it by the fields that lead to them, before
 * the object is complete. Keeps neither the object nor the value.
 */
export class GrowingJson {
  /** The text at `name`. */
  name: string | null = null;
  /** Text of the value that was read since `takeValue`; null before the value. */
  private value: string | null = null;
  private isInValue = false;
  private isText = false;
  /** Characters of the last `push` that belong to the object; null while it grows. */
  end: number | null = null;
  hasFailed = false;
  private readonly levels: Level[] = [];
  /** The string that is read, as it is written. */
  private string: string | null = null;
  private isEscaped = false;

  constructor(private readonly paths: { name: readonly string[] | null; value: readonly string[] }) {}

  get hasValue(): boolean {
    return this.value !== null;
  }

  push(text: string): void {
    for (let at = 0; at < text.length && this.end === null && !this.hasFailed; at++) {
      const character = text[at] as string;
      const wasInValue = this.isInValue;
      this.read(character);
      if (wasInValue || this.isInValue) this.value += character;
      if (this.levels.length === 0 && !this.hasFailed) this.end = at + 1;
    }
  }

  /** Returns the text of the value since the last call. A value that is a text itself is returned at its end. */
  takeValue(): string {
    if (this.isText && this.isInValue) return '';
    const taken = this.value ?? '';
    if (this.value !== null) this.value = '';
    return this.isText && taken !== '' ? (JSON.parse(taken) as string) : taken;
  }

  private read(character: string): void {
    if (this.string !== null) this.readString(character);
    else if (this.levels.length === 0 && character !== '{') this.hasFailed = true;
    else if (SPACE.test(character)) return;
    else if (character === '{' || character === '[') this.open(character === '{');
    else if (character === '}' || character === ']') this.close(character === '}');
    else if (character === '"') this.beginString();
    else if (character === ',') this.nextItem();
  }

  private open(isObject: boolean): void {
    this.beginValue();
    this.levels.push({ is_object: isObject, key: null, expects_key: isObject });
  }

  private close(isObject: boolean): void {
    if (this.levels.pop()?.is_object !== isObject) this.hasFailed = true;
    else this.endValue();
  }

  private beginString(): void {
    if (!this.levels.at(-1)?.expects_key) {
      this.beginValue();
      this.isText ||= this.isInValue && this.isAt(this.paths.value);
    }
    this.string = '"';
  }

  private readString(character: string): void {
    this.string += character;
    if (this.isEscaped) this.isEscaped = false;
    else if (character === '\\') this.isEscaped = true;
    else if (character === '"') {
      const json = this.string as string;
      this.string = null;
      this.takeString(json);
    }
  }

  private takeString(json: string): void {
    const level = this.levels.at(-1);
    const isName = this.paths.name !== null && this.isAt(this.paths.name);
    if (!level?.expects_key && !isName) {
      this.endValue();
      return;
    }
    try {
      const text: string = JSON.parse(json);
      if (level?.expects_key) Object.assign(level, { key: text, expects_key: false });
      else this.name = text;
    } catch {
      this.hasFailed = true;
    }
  }

  private nextItem(): void {
    const level = this.levels.at(-1);
    if (level) Object.assign(level, { key: null, expects_key: level.is_object });
  }

  private beginValue(): void {
    if (this.value !== null || !this.isAt(this.paths.value)) return;
    this.value = '';
    this.isInValue = true;
  }

  private endValue(): void {
    if (this.isAt(this.paths.value)) this.isInValue = false;
  }

  private isAt(path: readonly string[]): boolean {
    return path.length === this.levels.length && this.levels.every(({ key }, depth) => key === path[depth]);
  }
}
