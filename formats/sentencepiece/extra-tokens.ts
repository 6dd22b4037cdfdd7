/** Tokens that a folder adds to those of its `tokenizer.model`. */

/** JSON files of the folder; empty for absent ones. */
export interface TokenizerDocuments {
  /** tokenizer_config.json */
  config: Readonly<Record<string, unknown>>;
  /** special_tokens_map.json */
  special_tokens_map: Readonly<Record<string, unknown>>;
  /** added_tokens.json: ids by text */
  added_tokens: Readonly<Record<string, unknown>>;
}

/** A token as `tokenizer.json` has it, without its text. */
export interface Extra {
  id: number;
  special: boolean;
  lstrip: boolean;
  rstrip: boolean;
  single_word: boolean;
}

/**
 * Returns the tokens of `added_tokens_decoder` in `tokenizer_config.json` and of `added_tokens.json`, by text, in the
 * order of their ids.
 * @param ids of the pieces
 */
export function extrasOf(
  { config, special_tokens_map, added_tokens }: TokenizerDocuments,
  ids: ReadonlyMap<string, number>,
  refuse: (problem: string) => Error,
): Map<string, Extra> {
  const special = new Set([...texts(special_tokens_map), ...texts(config)]);
  const found = new Map<string, Extra>();
  for (const [text, id] of Object.entries(added_tokens))
    found.set(text, { ...PLAIN, id: id as number, special: special.has(text) });
  const decoder = config.added_tokens_decoder ?? {};
  for (const [id, token] of Object.entries(decoder)) {
    const { content, ...flags } = (token ?? {}) as Record<string, unknown>;
    if (typeof content !== 'string' || content === '')
      throw refuse(`lacks the text of token ${id} in added_tokens_decoder of tokenizer_config.json`);
    const is = (name: string) => flags[name] === true;
    found.set(content, {
      id: Number(id),
      special: is('special') || special.has(content),
      lstrip: is('lstrip'),
      rstrip: is('rstrip'),
      single_word: is('single_word'),
    });
  }
  for (const [text, { id }] of found) {
    const own = ids.get(text);
    if (own !== undefined && own !== id)
      throw refuse(`has the id ${own} for ${JSON.stringify(text)}, and the folder's added tokens have ${id}`);
  }
  return new Map([...found].sort(([, a], [, b]) => a.id - b.id));
}

const PLAIN = { lstrip: false, rstrip: false, single_word: false };

/** Texts of special tokens, and of lists of them. */
function texts(document: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(document)
    .filter(([name]) => name.endsWith('_token') || name.endsWith('_special_tokens'))
    .flatMap(([, value]) => [value].flat(2))
    .flatMap((value) => {
      const text =
        typeof value === 'object' && value !== null ? (value as { content?: unknown }).content : value;
      return typeof text === 'string' ? [text] : [];
    });
}
