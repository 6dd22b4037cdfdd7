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
  private is_in_value = false;
  private is_text = false;
  /** Characters of the last `push` that belong to the object; null while it grows. */
  end: number | null = null;
  has_failed = false;
  private readonly levels: Level[] = [];
  /** The string that is read, as it is written. */
  private string: string | null = null;
  private is_escaped = false;

  constructor(private readonly paths: { name: readonly string[] | null; value: readonly string[] }) {}

  get hasValue(): boolean {
    return this.value !== null;
  }

  push(text: string): void {
    for (let at = 0; at < text.length && this.end === null && !this.has_failed; at++) {
      const character = text[at] as string;
      const was_in_value = this.is_in_value;
      this.read(character);
      if (was_in_value || this.is_in_value) this.value += character;
      if (this.levels.length === 0 && !this.has_failed) this.end = at + 1;
    }
  }

  /** Returns the text of the value since the last call. A value that is a text itself is returned at its end. */
  takeValue(): string {
    if (this.is_text && this.is_in_value) return '';
    const taken = this.value ?? '';
    if (this.value !== null) this.value = '';
    return this.is_text && taken !== '' ? (JSON.parse(taken) as string) : taken;
  }

  private read(character: string): void {
    if (this.string !== null) this.readString(character);
    else if (this.levels.length === 0 && character !== '{') this.has_failed = true;
    else if (SPACE.test(character)) return;
    else if (character === '{' || character === '[') this.open(character === '{');
    else if (character === '}' || character === ']') this.close(character === '}');
    else if (character === '"') this.beginString();
    else if (character === ',') this.nextItem();
  }

  private open(is_object: boolean): void {
    this.beginValue();
    this.levels.push({ is_object, key: null, expects_key: is_object });
  }

  private close(is_object: boolean): void {
    if (this.levels.pop()?.is_object !== is_object) this.has_failed = true;
    else this.endValue();
  }

  private beginString(): void {
    if (!this.levels.at(-1)?.expects_key) {
      this.beginValue();
      this.is_text ||= this.is_in_value && this.isAt(this.paths.value);
    }
    this.string = '"';
  }

  private readString(character: string): void {
    this.string += character;
    if (this.is_escaped) this.is_escaped = false;
    else if (character === '\\') this.is_escaped = true;
    else if (character === '"') {
      const json = this.string as string;
      this.string = null;
      this.takeString(json);
    }
  }

  private takeString(json: string): void {
    const level = this.levels.at(-1);
    const is_name = this.paths.name !== null && this.isAt(this.paths.name);
    if (!level?.expects_key && !is_name) {
      this.endValue();
      return;
    }
    try {
      const text: string = JSON.parse(json);
      if (level?.expects_key) Object.assign(level, { key: text, expects_key: false });
      else this.name = text;
    } catch {
      this.has_failed = true;
    }
  }

  private nextItem(): void {
    const level = this.levels.at(-1);
    if (level) Object.assign(level, { key: null, expects_key: level.is_object });
  }

  private beginValue(): void {
    if (this.value !== null || !this.isAt(this.paths.value)) return;
    this.value = '';
    this.is_in_value = true;
  }

  private endValue(): void {
    if (this.isAt(this.paths.value)) this.is_in_value = false;
  }

  private isAt(path: readonly string[]): boolean {
    return path.length === this.levels.length && this.levels.every(({ key }, depth) => key === path[depth]);
  }
}
