/** Vocabulary of a tokenizer in GGUF's terms. */
import { ZerofleetError } from '../../contracts/index.js';
import { Component } from '../tokenizer/fields.js';
import { Tokenizer } from '../tokenizer/tokenizer.js';

/**
 * Types of tokens. `user`: found in a text wherever its own text stands; `control`: only where special tokens may be.
 */
export const TOKEN_TYPES = { normal: 1, unknown: 2, control: 3, user: 4, unused: 5, byte: 6 } as const;

type TokenType = keyof typeof TOKEN_TYPES;

export interface Token {
  text: string;
  type: TokenType;
}

/** The parts of a `tokenizer.json` that decide about the tokens of a text. */
export interface TokenizerFile {
  tokenizer: Tokenizer;
  model: Component;
  /** Normalizers and pre-tokenizers in order, without the sequences around them. */
  normalizers: readonly Component[];
  preTokenizers: readonly Component[];
  /** Ids of the model's own tokens. */
  ids: ReadonlyMap<string, number>;
  merges: readonly (readonly [left: string, right: string])[];
}

export function unsupported(what: string): ZerofleetError {
  return new ZerofleetError(
    'export_unsupported',
    `GGUF cannot hold the tokenizer: ${what}. Export safetensors instead`,
  );
}

/** @throws ZerofleetError `tokenizer_invalid`, `export_unsupported` for a model other than BPE */
export function tokenizerFile(file: Readonly<Record<string, unknown>>): TokenizerFile {
  const root = new Component(file, 'tokenizer');
  const model = root.component('model');
  const type = model.value('type') ?? (model.value('merges') === null ? null : 'BPE');
  if (type !== 'BPE')
    throw unsupported(`its model is ${String(type)}, and llama.cpp's model families have BPE`);
  const tokenizer = new Tokenizer(file);
  checkOptions(model, tokenizer);
  return {
    tokenizer,
    model,
    normalizers: flattened(root.optional('normalizer'), 'normalizers'),
    preTokenizers: flattened(root.optional('pre_tokenizer'), 'pretokenizers'),
    ids: new Map(Object.entries(model.value('vocab') as Record<string, number>)),
    merges: model.list('merges').map(mergeOf),
  };
}

function mergeOf(merge: unknown): readonly [string, string] {
  const [left = '', right = ''] = typeof merge === 'string' ? merge.split(' ') : (merge as string[]);
  return [left, right];
}

function flattened(component: Component | null, name: string): Component[] {
  if (component === null) return [];
  return component.type === 'Sequence'
    ? component.components(name).flatMap((part) => flattened(part, name))
    : [component];
}

/** Options that llama.cpp does not have. */
function checkOptions(model: Component, { added }: Tokenizer): void {
  for (const name of ['continuing_subword_prefix', 'end_of_word_suffix'])
    if ((model.value(name) ?? '') !== '') throw unsupported(`its model has a ${name}`);
  const bound = added.find(({ lstrip, rstrip, single_word }) => lstrip || rstrip || single_word);
  if (bound === undefined) return;
  const [option] = (['lstrip', 'rstrip', 'single_word'] as const).filter((name) => bound[name]);
  throw unsupported(`the added token ${JSON.stringify(bound.content)} has ${option}`);
}

/**
 * Returns the tokens of a model by id. Ids without a token get an unused one.
 * @param typeOf type of one of the model's own tokens
 */
export function tokenList(
  { tokenizer, ids }: TokenizerFile,
  vocabSize: number,
  typeOf: (text: string) => TokenType,
): Token[] {
  const tokens: (Token | undefined)[] = new Array(vocabSize).fill(undefined);
  const texts = new Set<string>();
  const put = (id: number, token: Token) => {
    tokens[id] = token;
    texts.add(token.text);
  };
  for (const [text, id] of ids) put(id, { text, type: typeOf(text) });
  for (const { id, content, special } of tokenizer.added)
    put(id, { text: content, type: special ? 'control' : 'user' });
  return Array.from(tokens, (token, id) => token ?? { text: unusedText(id, texts), type: 'unused' });
}

/** llama.cpp requires that all texts differ. */
function unusedText(id: number, texts: ReadonlySet<string>): string {
  const text = `[PAD${id}]`;
  return texts.has(text) ? `[UNUSED${id}]` : text;
}
