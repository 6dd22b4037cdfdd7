/**
 * A `tokenizer.model` of SentencePiece as a `tokenizer.json`, so that training, answers and exports have one form of
 * tokenizer. Texts between control symbols get the pieces that SentencePiece gives them. A model for which no
 * `tokenizer.json` does that is refused by name.
 */
import { byteToken } from '../tokenizer/characters.js';
import { Component } from '../tokenizer/fields.js';
import { normalizerOf } from '../tokenizer/normalizers.js';
import { type Extra, extrasOf, type TokenizerDocuments } from './extra-tokens.js';
import { mergesOf } from './merges.js';
import { readSentencepiece, type SentencepieceModel, sentencepieceRefused } from './model-file.js';

const SPACE = '\u2581';

/** More spaces than an answer begins with. */
const MAX_SPACES = 1024;

/** A regular expression holds them. */
const MAX_SYMBOLS = 4096;

const UNIGRAM = 1;
const BPE = 2;
const KINDS: Readonly<Record<number, string>> = { 3: 'word', 4: 'char' };

/** The files that a folder lacks. */
interface ConvertedTokenizer {
  tokenizer: Record<string, unknown>;
  special_tokens_map: Record<string, string>;
}

/** @throws ZerofleetError `tokenizer_invalid` */
export function convertSentencepiece(
  name: string,
  bytes: Uint8Array,
  documents: TokenizerDocuments,
): ConvertedTokenizer {
  const model = readSentencepiece(name, bytes);
  const refuse: Refuse = (problem) => sentencepieceRefused(name, problem);
  checkSettings(model, refuse);
  const ids = new Map<string, number>();
  for (const [id, { text }] of model.pieces.entries()) {
    if (ids.has(text)) throw refuse(`has the piece ${JSON.stringify(text)} twice`);
    ids.set(text, id);
  }
  const unknown = model.pieces.findIndex(({ type }) => type === 'unknown');
  const special = specialTokens(model, ids);
  const prefix = prefixOf(model, documents);
  return {
    tokenizer: {
      version: '1.0',
      truncation: null,
      padding: null,
      added_tokens: addedTokens(
        { model, normalizers: normalizersOf(model, prefix) },
        extrasOf(documents, ids, refuse),
        refuse,
      ),
      normalizer: { type: 'Sequence', normalizers: normalizersOf(model, prefix) },
      pre_tokenizer: prefix === 'first' ? FIRST_PREFIX : null,
      post_processor: postProcessor(special, ids, documents),
      decoder: { type: 'Sequence', decoders: decodersOf(model) },
      model: model.model_type === BPE ? bpeOf(model, { ids, unknown }, refuse) : unigramOf(model, unknown),
    },
    special_tokens_map: special,
  };
}

type Refuse = (problem: string) => Error;

function checkSettings(model: SentencepieceModel, refuse: Refuse): void {
  const { model_type, pieces } = model;
  if (model_type !== UNIGRAM && model_type !== BPE)
    throw refuse(
      `has the model type ${KINDS[model_type] ?? model_type}, which is not supported (unigram and bpe are)`,
    );
  if (model.treat_whitespace_as_suffix)
    throw refuse('has treat_whitespace_as_suffix, which is not supported');
  if (!model.escape_whitespaces) throw refuse('has escape_whitespaces false, which is not supported');
  if (model.denormalizer_charsmap.length > 0) throw refuse('has a denormalizer, which is not supported');
  const numUnknown = pieces.filter(({ type }) => type === 'unknown').length;
  if (numUnknown !== 1) throw refuse(`has ${numUnknown} pieces of the type unknown instead of one`);
  const numSymbols = pieces.filter(({ type }) => type === 'user_defined').length;
  if (model.add_dummy_prefix && numSymbols > MAX_SYMBOLS)
    throw refuse(
      `has ${numSymbols} user-defined symbols; at most ${MAX_SYMBOLS} are supported with add_dummy_prefix`,
    );
  const unused = pieces.find(({ type }) => type === 'unused');
  if (unused) throw refuse(`has the unused piece ${JSON.stringify(unused.text)}, which is not supported`);
  const bytes = new Set(pieces.filter(({ type }) => type === 'byte').map(({ text }) => text));
  const missing = Array.from({ length: 256 }, (_, byte) => byteToken(byte)).find(
    (token) => !bytes.has(token),
  );
  if (model.byte_fallback ? missing !== undefined : bytes.size > 0)
    throw refuse('must have all 256 pieces of bytes with byte_fallback, and none without');
}

/** Special tokens by name, as far as the model has them. */
function specialTokens(model: SentencepieceModel, ids: ReadonlyMap<string, number>): Record<string, string> {
  const isControl = (text: string) => model.pieces[ids.get(text) ?? -1]?.type === 'control';
  const named = { bos_token: model.bos_piece, eos_token: model.eos_piece, pad_token: model.pad_piece };
  return {
    ...Object.fromEntries(Object.entries(named).filter(([, text]) => isControl(text))),
    unk_token: model.pieces.find(({ type }) => type === 'unknown')?.text ?? '',
  };
}

function addedTokens(
  { model, normalizers }: { model: SentencepieceModel; normalizers: readonly object[] },
  extras: ReadonlyMap<string, Extra>,
  refuse: Refuse,
): Record<string, unknown>[] {
  const normalize = normalizerOf(new Component({ type: 'Sequence', normalizers }, 'normalizer'));
  const rest = new Map(extras);
  const own = model.pieces.flatMap(({ text, type }, id) => {
    const extra = rest.get(text);
    rest.delete(text);
    const base = { ...DEFAULTS, ...extra, id, content: text };
    if (type === 'control' || type === 'unknown') return [{ ...base, special: true }];
    if (type !== 'user_defined') return extra ? [base] : [];
    // SentencePiece looks for these symbols in the whole text, and puts no space behind them.
    if (normalize(text).replaceAll(' ', SPACE) !== text.replaceAll(' ', SPACE))
      throw refuse(`has the user-defined symbol ${JSON.stringify(text)}, which its normalizer changes`);
    return [{ ...base, special: extra?.special ?? false, normalized: true }];
  });
  return [...own, ...[...rest].map(([content, extra]) => ({ ...DEFAULTS, ...extra, content }))];
}

const DEFAULTS = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: false };

/** Where a text gets a space before it: nowhere, behind each special token, or only at its beginning. */
type Prefix = 'never' | 'always' | 'first';

const FIRST_PREFIX = { type: 'Metaspace', replacement: SPACE, prepend_scheme: 'first', split: false };

/** As LlamaTokenizer of transformers, which puts it behind each special token unless `legacy` is false. */
function prefixOf(model: SentencepieceModel, { config }: TokenizerDocuments): Prefix {
  if (!model.add_dummy_prefix) return 'never';
  // Spaces that are removed would hide where a text begins.
  return config.legacy === false && !model.remove_extra_whitespaces ? 'first' : 'always';
}

function normalizersOf(model: SentencepieceModel, prefix: Prefix): Record<string, unknown>[] {
  const replace = (pattern: { String: string } | { Regex: string }, content: string) => ({
    type: 'Replace',
    pattern,
    content,
  });
  const charsmap = model.precompiled_charsmap;
  return [
    ...(charsmap.length > 0
      ? [
          {
            type: 'Precompiled',
            precompiled_charsmap: charsmap.toString('base64'),
            longest_match: true,
          },
        ]
      : []),
    ...(model.remove_extra_whitespaces
      ? [
          replace({ Regex: ' {2,}' }, ' '),
          replace({ Regex: '\\A ' }, ''),
          replace({ Regex: `(?<![ ${SPACE}])[ ${SPACE}]+\\z` }, ''),
        ]
      : []),
    ...(prefix === 'always' ? [prepend(model)] : []),
    ...(prefix === 'first' ? [] : [replace({ String: ' ' }, SPACE)]),
  ];
}

/** Puts a space before a text. A pattern leaves the texts of user-defined symbols alone: they are normalized, too. */
function prepend({ pieces }: SentencepieceModel): Record<string, unknown> {
  const symbols = pieces.filter(({ type }) => type === 'user_defined').map(({ text }) => escaped(text));
  if (symbols.length === 0) return { type: 'Prepend', prepend: SPACE };
  const pattern = { Regex: `\\A(?!(?:${symbols.join('|')})?\\z)` };
  return { type: 'Replace', pattern, content: SPACE };
}

function escaped(text: string): string {
  return text.replace(/[\^$.*+?()[\]{}|\\/#-]/g, '\\$&');
}

function decodersOf(model: SentencepieceModel): Record<string, unknown>[] {
  // SentencePiece removes what it adds, or every space at the beginning.
  const start = model.remove_extra_whitespaces ? MAX_SPACES : Number(model.add_dummy_prefix);
  return [
    { type: 'Replace', pattern: { String: SPACE }, content: ' ' },
    { type: 'ByteFallback' },
    { type: 'Fuse' },
    ...(start > 0 ? [{ type: 'Strip', content: ' ', start, stop: 0 }] : []),
  ];
}

/** As LlamaTokenizer of transformers: a text begins with `bos_token`, unless the configuration says otherwise. */
function postProcessor(
  special: Readonly<Record<string, string>>,
  ids: ReadonlyMap<string, number>,
  { config }: TokenizerDocuments,
): Record<string, unknown> | null {
  const adds = (field: string, name: string, missing: boolean) =>
    (config[field] ?? missing) === true && special[name] !== undefined ? [special[name]] : [];
  const before = adds('add_bos_token', 'bos_token', true);
  const after = adds('add_eos_token', 'eos_token', false);
  const used = [...before, ...after];
  if (used.length === 0) return null;
  const token = (id: string) => ({ SpecialToken: { id, type_id: 0 } });
  const text = (id: string) => ({ Sequence: { id, type_id: 0 } });
  const around = (id: string) => [...before.map(token), text(id), ...after.map(token)];
  return {
    type: 'TemplateProcessing',
    single: around('A'),
    pair: [...around('A'), ...around('B')],
    special_tokens: Object.fromEntries(used.map((id) => [id, { id, ids: [ids.get(id)], tokens: [id] }])),
  };
}

interface Vocab {
  ids: ReadonlyMap<string, number>;
  /** Id of the unknown piece. */
  unknown: number;
}

function bpeOf(model: SentencepieceModel, { ids, unknown }: Vocab, refuse: Refuse): Record<string, unknown> {
  return {
    type: 'BPE',
    dropout: null,
    unk_token: model.pieces[unknown]?.text,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: true,
    byte_fallback: model.byte_fallback,
    ignore_merges: false,
    vocab: Object.fromEntries(ids),
    merges: mergesOf(model.pieces, refuse),
  };
}

function unigramOf({ pieces, byte_fallback }: SentencepieceModel, unknown: number): Record<string, unknown> {
  return {
    type: 'Unigram',
    unk_id: unknown,
    vocab: pieces.map(({ text, score }) => [text, score]),
    byte_fallback,
  };
}
