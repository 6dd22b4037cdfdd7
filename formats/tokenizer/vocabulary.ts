import { byteToken } from './characters.js';
import { type Component, refused } from './fields.js';

/** Tokens of a model. */
export class Vocabulary {
  private readonly tokens = new Map<number, string>();

  /** @param reserved tokens that no text spells */
  constructor(
    readonly ids: ReadonlyMap<string, number>,
    private readonly reserved: ReadonlySet<string>,
  ) {
    for (const [token, id] of ids) this.tokens.set(id, token);
  }

  /** Reads the object `vocab`, with ids that were checked before. */
  static read(component: Component, reserved: ReadonlySet<string>): Vocabulary {
    const ids = new Map(Object.entries(component.value('vocab') as Record<string, number>));
    return new Vocabulary(ids, reserved);
  }

  id(token: string): number | undefined {
    return this.ids.get(token);
  }

  /** Returns the token that a text spells. */
  spelled(text: string): number | undefined {
    return this.reserved.has(text) ? undefined : this.ids.get(text);
  }

  token(id: number): string | undefined {
    return this.tokens.get(id);
  }

  /** Returns the id of a token that the model names. */
  named(token: string, path: string): number {
    const id = this.ids.get(token);
    if (id === undefined) throw refused(`${path} is ${JSON.stringify(token)}, which is not a token`);
    return id;
  }

  /** Returns the tokens of a text's bytes; null if one is missing. */
  bytes(text: string): number[] | null {
    const found: number[] = [];
    for (const byte of Buffer.from(text)) {
      const id = this.ids.get(byteToken(byte));
      if (id === undefined) return null;
      found.push(id);
    }
    return found;
  }
}
